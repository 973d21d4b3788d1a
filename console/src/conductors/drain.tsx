/** Draining a conductor and taking it back: what moves where, before it is done. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { put, remove } from "../api/client";
import { CommandPanel, type Command } from "../components/command";
import { Dialog } from "../components/dialog";
import { Icon } from "../components/icon";
import { Loaded, Problem } from "../components/loading";
import { formatNumber } from "../components/number";
import { useRequest } from "../components/request";
import { useLive } from "../live/resource";
import { part } from "../paths";
import { counted, type Leaving } from "./standing";

interface DialogProps {
    host: string;
    close: () => void;
    /** Called when the server has accepted it. */
    done: () => void;
}

const pathOf = (host: string): string => `/ingot/v1/conductors/${part(host)}`;

/** Shows what moves if a conductor leaves the ring, and has it leave. */
export function DrainDialog(props: DialogProps): JSX.Element {
    const { host, close } = props;
    const leaving = useLive<Leaving>(`${pathOf(host)}/leaving`, (event) => event.kind === "conductor");
    const [isForced, setForced] = useState(false);
    const orphans = leaving.data.value?.orphans ?? 0;
    const path = `${pathOf(host)}/drain${orphans && isForced ? "?force=true" : ""}`;
    const { error, isBusy, run } = useRequest(() => put(path), `${host} hands over its nodes.`, props);
    const isReady = leaving.data.value !== null && !isBusy && (orphans === 0 || isForced);
    return (
        <Dialog
            title={`Drain ${host}`}
            onClose={close}
            actions={
                <>
                    <button type="button" class="button" onClick={close}>
                        Cancel
                    </button>
                    <button type="button" class="button button-danger" disabled={!isReady} onClick={() => void run()}>
                        Drain
                    </button>
                </>
            }
        >
            <p>It hands over its nodes and takes no new ones. It finishes the steps that run, and stays online until it is stopped.</p>
            {error && <Problem text={error} />}
            <Loaded of={leaving}>{(found) => <Preview of={found} />}</Loaded>
            {orphans > 0 && (
                <label class="check">
                    <input type="checkbox" checked={isForced} onChange={(event) => setForced(event.currentTarget.checked)} />
                    Drain it all the same, and leave {counted(orphans, "node")} without a conductor
                </label>
            )}
            <AsCommand command={{ requests: [{ method: "PUT", path }] }} />
        </Dialog>
    );
}

function Preview({ of: found }: { of: Leaving }): JSX.Element {
    return (
        <section class="part" aria-label="What moves">
            <h3>{found.nodes === 0 ? "No node moves" : `${counted(found.nodes, "node moves", "nodes move")}`}</h3>
            {found.moves.length > 0 && (
                <ul class="moves" tabIndex={0} aria-label="Conductors that get them">
                    {found.moves.map(({ to, nodes }) => (
                        <li key={to}>
                            <span class="mono">{to}</span>
                            <span class="moves-number">{formatNumber(nodes)}</span>
                            <span class="share" style={{ "--part": String(nodes / Math.max(1, found.nodes)) }} />
                        </li>
                    ))}
                </ul>
            )}
            {found.orphans > 0 && (
                <Problem
                    text={`No conductor would serve ${counted(found.orphans, "node")}: no other conductor has their driver and group. Nothing can be done with them until one starts.`}
                />
            )}
            {found.busy > 0 && (
                <p>
                    <Icon name="lock" /> {counted(found.busy, "node is", "nodes are")} locked by it now: each moves when its step ends.
                </p>
            )}
            {found.busy === 0 && found.nodes > 0 && <p class="muted">It has no node locked: all move at its next heartbeat.</p>}
        </section>
    );
}

/** Asks whether a conductor is to come back to the ring, and has it come. */
export function UndrainDialog(props: DialogProps): JSX.Element {
    const { host, close } = props;
    const path = `${pathOf(host)}/drain`;
    const { error, isBusy, run } = useRequest(() => remove(path), `${host} takes nodes again.`, props);
    return (
        <Dialog
            title={`Take ${host} back`}
            onClose={close}
            actions={
                <>
                    <button type="button" class="button" onClick={close}>
                        Cancel
                    </button>
                    <button type="button" class="button button-primary" disabled={isBusy} onClick={() => void run()}>
                        Undrain
                    </button>
                </>
            }
        >
            <p>It comes back to the ring at its next heartbeat, if it runs, and takes its share of the nodes from the others.</p>
            {error && <Problem text={error} />}
            <AsCommand command={{ requests: [{ method: "DELETE", path }] }} />
        </Dialog>
    );
}

function AsCommand({ command }: { command: Command }): JSX.Element {
    return (
        <details class="fold">
            <summary>As a command</summary>
            <CommandPanel command={command} />
        </details>
    );
}
