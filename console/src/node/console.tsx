/** The tab Console: what the machine says on its serial line, beside the step that runs; typing only when asked for. */

import type { JSX } from "preact";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";

import { explain, put } from "../api/client";
import { Action, useReason } from "../components/action";
import { CommandButton } from "../components/command";
import { Dialog } from "../components/dialog";
import { download } from "../components/download";
import { Icon } from "../components/icon";
import { Empty, Loaded, Problem } from "../components/loading";
import { Elapsed, formatDuration } from "../components/time";
import { toast, toastError } from "../components/toasts";
import { useBrowserNow } from "../live/clock";
import { whenConnected } from "../live/feed";
import { ofNode, useLive } from "../live/resource";
import { part } from "../paths";
import { load, save } from "../storage";
import { Line } from "./line";
import { describeStatus, describeUsers, findRunning, TAKEN } from "./serial";
import type { SerialScreen } from "./terminal";
import type { Explanation, NodeDetail, Timeline } from "./types";
import { spellFlow } from "./words";

type ConsoleNode = Pick<NodeDetail, "uuid" | "name" | "console_enabled" | "console_interface">;

type Present = Timeline & { explanation: Explanation | null };

const READ = "ingot:node:console:read";
const WRITE = "ingot:node:console:write";
const SWITCH = "baremetal:node:set_console_state";
const SPOKEN = "console.spoken";

/** Shows the serial console of a node. */
export function ConsoleTab({ node }: { node: ConsoleNode }): JSX.Element {
    const reason = useReason(node.uuid)(READ);
    if (reason !== null) return <Empty>{reason}</Empty>;
    if (node.console_interface === "no-console") {
        return (
            <Empty>
                This node has no serial console: its console_interface is no-console. Where the BMC speaks IPMI, set it to
                ipmitool-sol.
            </Empty>
        );
    }
    return <SerialConsole key={node.uuid} node={node} />;
}

/** Return the connection and, once it is loaded, the terminal that shows it in an element. */
function useConsole(node: ConsoleNode, leave: () => void, describedBy: string) {
    const host = useRef<HTMLDivElement>(null);
    const [screen, setScreen] = useState<SerialScreen | null>(null);
    const [failure, setFailure] = useState<string | null>(null);
    const shown = useRef<SerialScreen | null>(null);
    const line = useMemo(() => {
        const onScreen = {
            clear: () => shown.current?.clear(),
            show: (said: Uint8Array, isPast: boolean) => shown.current?.show(said, isPast),
        };
        return new Line(node.uuid, onScreen, (why) => toast(why, "bad"));
    }, [node.uuid]);
    useEffect(() => {
        let stopped = false;
        const start = async (): Promise<void> => {
            const { SerialScreen } = await import("./terminal").catch(() => {
                throw new Error("The terminal could not be loaded. If the console was upgraded, reload the page.");
            });
            if (stopped || !host.current) return;
            const label = `Serial console of ${node.name ?? node.uuid}`;
            shown.current = new SerialScreen(host.current, { label, describedBy, type: line.type, leave });
            setScreen(shown.current);
            line.open("read");
        };
        start().catch((error: unknown) => setFailure(explain(error)));
        const end = whenConnected(() => canReturn(line) && line.retry());
        return () => {
            stopped = true;
            end();
            line.leave();
            shown.current?.dispose();
            shown.current = null;
        };
    }, [line]);
    return { host, line, screen, failure };
}

/** Return whether a connection that ended comes back when the page is connected again. */
function canReturn(line: Line): boolean {
    if (line.phase.peek() === "ended") return line.ending.peek()?.code === 401; // there is a new session now
    return line.phase.peek() === "lost" && line.retryAt.peek() !== null;
}

function SerialConsole({ node }: { node: ConsoleNode }): JSX.Element {
    const hint = useId();
    const bar = useRef<HTMLDivElement>(null);
    const leave = (): void => bar.current?.querySelector("button")?.focus();
    const { host, line, screen, failure } = useConsole(node, leave, hint);
    const [isSpoken, setSpoken] = useState(() => load(SPOKEN, false));
    const types = line.phase.value === "open" && line.status.value?.mode === "write";
    useEffect(() => screen?.setTyping(types), [screen, types]);
    useEffect(() => {
        screen?.setSpoken(isSpoken);
        save(SPOKEN, isSpoken);
    }, [screen, isSpoken]);
    return (
        <div class="serial">
            <section class="panel serial-main" aria-label="Serial console">
                <div class="serial-bar" ref={bar}>
                    <TypeButton node={node} line={line} types={types} />
                    <BreakButton line={line} types={types} />
                    <button type="button" class="button" onClick={() => void downloadLog(node)}>
                        Download
                    </button>
                    <SwitchButton node={node} />
                    <CommandButton command={commandOf(node)} />
                    <Sign line={line} />
                </div>
                {failure !== null && <Problem text={failure} retry={() => location.reload()} retryText="Reload" />}
                <Broken line={line} />
                <div class={line.phase.value === "open" ? "serial-frame" : "serial-frame is-stale"}>
                    <div class="serial-host" ref={host} />
                </div>
                <div class="serial-foot">
                    <p id={hint} class="muted">
                        <kbd>Ctrl</kbd> <kbd>Shift</kbd> <kbd>E</kbd>, or <kbd>Escape</kbd> and then <kbd>Tab</kbd>, leaves the
                        terminal.
                    </p>
                    <label class="check">
                        <input
                            type="checkbox"
                            checked={isSpoken}
                            onChange={(event) => setSpoken(event.currentTarget.checked)}
                        />
                        Read output aloud
                    </label>
                </div>
            </section>
            <RunningStep node={node.uuid} />
        </div>
    );
}

function commandOf({ uuid, name }: ConsoleNode) {
    const ident = name ?? uuid;
    const path = `/ingot/v1/nodes/${part(ident)}/console/log`;
    return {
        cli: [["baremetal", "node", "console", "show", ident]],
        requests: [{ method: "GET" as const, path }],
    };
}

/** Shows whether the console is connected, who types, and how many read. */
function Sign({ line }: { line: Line }): JSX.Element {
    const [phase, status] = [line.phase.value, line.status.value];
    const { text, tone } =
        phase === "open" && status
            ? describeStatus(status)
            : phase === "connecting"
              ? { text: "Connecting", tone: "waiting" as const }
              : { text: phase === "lost" ? "Connection lost" : "Not connected", tone: "bad" as const };
    return (
        <p class={`serial-sign serial-${tone}`} role="status">
            <Icon name={tone === "good" ? "check" : tone === "bad" ? "alert" : "clock"} />
            <span>{text}</span>
            {phase === "open" && status && <span class="muted">{describeUsers(status)}</span>}
        </p>
    );
}

/** Shows that the terminal is stale, why, and what can be done, while the console is not connected. */
function Broken({ line }: { line: Line }): JSX.Element | null {
    const [phase, ending] = [line.phase.value, line.ending.value];
    const [isAsked, setAsked] = useState(false);
    if (!ending || phase === "open") return null;
    return (
        <div class="problem serial-broken">
            <Icon name="alert" />
            <span role="alert">
                <strong>{phase === "ended" ? "Not connected." : "Connection lost."}</strong> {ending.text} The output
                below is old.
            </span>
            {phase === "ended" && ending.code === TAKEN && (
                <button type="button" class="button" onClick={() => setAsked(true)}>
                    Take over
                </button>
            )}
            <RetryButton line={line} />
            {isAsked && (
                <TakeOver
                    text="Another client of the BMC has the console. Taking it over ends that one’s session, and you type here then."
                    close={() => setAsked(false)}
                    run={() => line.open("write", true)}
                />
            )}
        </div>
    );
}

function RetryButton({ line }: { line: Line }): JSX.Element {
    const now = useBrowserNow();
    const at = line.retryAt.value;
    const seconds = at === null ? 0 : Math.ceil((at - now) / 1000);
    return (
        <button type="button" class="button" onClick={line.retry}>
            {seconds > 1 ? `Try again (in ${seconds} s)` : "Try again"}
        </button>
    );
}

function TakeOver({ text, close, run }: { text: string; close: () => void; run: () => void }): JSX.Element {
    const take = (): void => {
        close();
        run();
    };
    return (
        <Dialog
            title="Take over the console"
            onClose={close}
            actions={
                <>
                    <button type="button" class="button" onClick={close}>
                        Cancel
                    </button>
                    <button type="button" class="button button-danger" onClick={take}>
                        Take over
                    </button>
                </>
            }
        >
            <p>{text}</p>
        </Dialog>
    );
}

interface BarProps {
    node: ConsoleNode;
    line: Line;
    types: boolean;
}

/** Begins and ends typing; where another user types, only after a question. */
function TypeButton({ node, line, types }: BarProps): JSX.Element {
    const refusal = useReason(node.uuid)(WRITE);
    const [isAsked, setAsked] = useState(false);
    const writer = line.status.value?.writer ?? null;
    const other = types ? null : writer;
    const reason = refusal ?? (line.phase.value === "open" ? null : "The console is not connected.");
    const run = (): void => {
        if (types) line.open("read");
        else if (other !== null) setAsked(true);
        else line.open("write");
    };
    return (
        <>
            <Action class={types ? "button" : "button button-primary"} reason={reason} run={run}>
                <Icon name="terminal" /> {types ? "Stop typing" : other !== null ? "Take over" : "Type"}
            </Action>
            {isAsked && (
                <TakeOver
                    text={`${other ?? "Another user"} types here now, and learns that you do. Keys of both never mix: the other one goes on reading.`}
                    close={() => setAsked(false)}
                    run={() => line.open("write", true)}
                />
            )}
        </>
    );
}

function BreakButton({ line, types }: Omit<BarProps, "node">): JSX.Element {
    return (
        <Action
            reason={types ? null : "Only who types can send a break."}
            about="For SysRq and for terminal servers"
            run={() => line.sendBreak()}
        >
            Send break
        </Action>
    );
}

/** Has the conductor keep the console open, or not. */
function SwitchButton({ node }: { node: ConsoleNode }): JSX.Element {
    const refusal = useReason(node.uuid)(SWITCH);
    const [isEnabled, setEnabled] = useState(node.console_enabled);
    const [isBusy, setBusy] = useState(false);
    useEffect(() => setEnabled(node.console_enabled), [node.console_enabled]);
    const about = isEnabled
        ? "It is kept open also without readers. Disabling it ends all readers."
        : "Keeps it open also without readers, so that what the machine says is kept.";
    const turn = async (): Promise<void> => {
        if (isBusy) return;
        setBusy(true);
        try {
            await put(`/v1/nodes/${part(node.uuid)}/states/console`, { enabled: !isEnabled });
            setEnabled(!isEnabled);
            toast(isEnabled ? "The console is disabled." : "The console is enabled: it is kept open.");
        } catch (error) {
            toastError(error);
        } finally {
            setBusy(false);
        }
    };
    return (
        <Action reason={refusal} about={about} run={() => void turn()}>
            {isEnabled ? "Disable" : "Enable"}
        </Action>
    );
}

/** Have the browser save what the machine has said since it was switched on. */
async function downloadLog({ uuid, name }: ConsoleNode): Promise<void> {
    await download(`/ingot/v1/nodes/${part(uuid)}/console/log`, `${name ?? uuid}-console.log`).catch(toastError);
}

/** Shows what Ingot does with the machine now. */
function RunningStep({ node }: { node: string }): JSX.Element {
    const timeline = useLive<Present>(`/ingot/v1/nodes/${part(node)}/timeline`, ofNode(node));
    return (
        <aside class="panel serial-step" aria-labelledby="serial-step">
            <div class="panel-head">
                <h2 id="serial-step">Runs now</h2>
            </div>
            <div class="panel-body">
                <Loaded of={timeline}>{(found) => <Step timeline={found} />}</Loaded>
            </div>
        </aside>
    );
}

function Step({ timeline }: { timeline: Present }): JSX.Element {
    const found = findRunning(timeline.steps);
    const waitsFor = timeline.explanation?.waits_for;
    if (!found) {
        return (
            <>
                <p>{waitsFor ?? "No step runs."}</p>
                {timeline.last_error && <p class="serial-error">{timeline.last_error}</p>}
            </>
        );
    }
    const { step, next } = found;
    return (
        <dl class="serial-facts">
            <dt>{spellFlow(timeline.flow)}</dt>
            <dd>
                <code>
                    {step.interface}.{step.step}
                </code>{" "}
                <span class="muted">{step.state}</span>
                {step.attempt > 1 && <span class="muted">, attempt {step.attempt}</span>}
            </dd>
            {step.started_at && (
                <>
                    <dt>For</dt>
                    <dd>
                        <Elapsed since={step.started_at} />
                        {step.usual_duration !== null && (
                            <span class="muted">, usually {formatDuration(step.usual_duration)}</span>
                        )}
                    </dd>
                </>
            )}
            {waitsFor && (
                <>
                    <dt>Waits for</dt>
                    <dd>{waitsFor}</dd>
                </>
            )}
            {next && (
                <>
                    <dt>Then</dt>
                    <dd>
                        <code>
                            {next.interface}.{next.step}
                        </code>
                    </dd>
                </>
            )}
        </dl>
    );
}
