/** The inbox: machines that were discovered, which an operator accepts as nodes or discards. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { remove } from "../api/client";
import { Action, useReason } from "../components/action";
import { CommandButton, CommandFold } from "../components/command";
import { Dialog } from "../components/dialog";
import { Fact } from "../components/fact";
import { Icon } from "../components/icon";
import { useKeys } from "../components/keys";
import { Empty, Loaded, Problem } from "../components/loading";
import { formatNumber } from "../components/number";
import { useRequest } from "../components/request";
import { Time } from "../components/time";
import { CREATE } from "../enroll/dialog";
import { AcceptDialog } from "../inbox/accept";
import { describeDisks, describeHardware, FIELDS, matches, nameOf, type Entry } from "../inbox/entry";
import { useList } from "../live/list";
import { useLive } from "../live/resource";
import { part } from "../paths";
import { query, setQuery } from "../router";

const PATH = "/ingot/v1/inbox";
const LIST = `${PATH}?sort_key=seen_at&sort_dir=desc&fields=${FIELDS.join(",")}`;

const COMMAND = { requests: [{ method: "GET" as const, path: PATH }] };

interface Asked {
    entry: Entry;
    verb: "accept" | "discard";
}

/** Shows the inbox. */
export function InboxPage(): JSX.Element {
    const found = useList<Entry>(LIST, "inbox", (event) => event.kind === "inbox");
    const [asked, setAsked] = useState<Asked | null>(null);
    useKeys("Inbox", [{ key: "r", text: "Read again", run: found.reload }]);
    const close = (): void => setAsked(null);
    return (
        <>
            <div class="page-head">
                <h1>Inbox</h1>
                {found.data.value && (
                    <span class="muted" role="status">
                        {formatNumber(found.data.value.length)} discovered
                    </span>
                )}
                <div class="page-actions">
                    <CommandButton command={COMMAND} />
                    <button type="button" class="button" onClick={found.reload}>
                        <Icon name="refresh" /> Read again
                    </button>
                </div>
            </div>
            <Loaded of={found}>
                {(all) => (all.length ? <Entries all={all} ask={setAsked} /> : <Nothing />)}
            </Loaded>
            {asked?.verb === "accept" && <AcceptDialog entry={asked.entry} close={close} done={found.reload} />}
            {asked?.verb === "discard" && <DiscardDialog entry={asked.entry} close={close} done={found.reload} />}
        </>
    );
}

function Nothing(): JSX.Element {
    return (
        <div class="panel">
            <div class="panel-body stack">
                <p>
                    <strong>No unknown machine has called.</strong> Machines come here when they boot from the network and discovery is
                    on. To switch it on, set in the configuration of the API and restart it:
                </p>
                <pre tabIndex={0} aria-label="Configuration of discovery">
                    <code>{"[auto_discovery]\nenabled = true\ndriver = ipmi\n\n[deploy]\ndeploy_kernel = http://…/vmlinuz\ndeploy_ramdisk = http://…/initrd.img"}</code>
                </pre>
                <p class="muted">
                    Then switch the machine on: it boots the agent, and is here after a minute or two. Machines whose MAC addresses
                    have ports do not come here.
                </p>
            </div>
        </div>
    );
}

interface EntriesProps {
    all: Entry[];
    ask: (asked: Asked) => void;
}

function Entries({ all, ask }: EntriesProps): JSX.Element {
    const text = query.value.get("filter") ?? "";
    const shown = text.trim() ? all.filter((entry) => matches(entry, text.trim())) : all;
    return (
        <>
            <input
                class="input"
                type="search"
                data-search
                aria-label="Search the inbox"
                placeholder="address, maker, product, serial number"
                autocomplete="off"
                spellcheck={false}
                value={text}
                onInput={(event) => setQuery({ filter: event.currentTarget.value })}
            />
            {shown.length === 0 && <Empty>No machine here has “{text.trim()}”.</Empty>}
            {shown.length > 0 && (
                <ul class="panel units">
                    {shown.map((entry) => (
                        <Machine key={entry.uuid} entry={entry} ask={ask} />
                    ))}
                </ul>
            )}
        </>
    );
}

function Machine({ entry, ask }: { entry: Entry; ask: EntriesProps["ask"] }): JSX.Element {
    const reasonFor = useReason();
    const name = nameOf(entry);
    return (
        <li class="unit">
            <div class="unit-head">
                <h2>{name}</h2>
                {entry.serial_number && <span class="muted">serial {entry.serial_number}</span>}
                <span class="unit-actions">
                    <Action
                        class="button button-small button-primary"
                        reason={reasonFor("ingot:inbox:accept") ?? reasonFor(CREATE)}
                        label={`Accept ${name}`}
                        run={() => ask({ entry, verb: "accept" })}
                    >
                        Accept…
                    </Action>
                    <Action
                        class="button button-small"
                        reason={reasonFor("ingot:inbox:delete")}
                        label={`Discard ${name}`}
                        run={() => ask({ entry, verb: "discard" })}
                    >
                        Discard…
                    </Action>
                </span>
            </div>
            <dl class="unit-facts">
                <Fact title="MAC addresses">
                    <Addresses of={entry} />
                </Fact>
                <Fact title="Hardware">{describeHardware(entry) || "not said"}</Fact>
                <Fact title="Disks">{describeDisks(entry.disk_sizes) || "not said"}</Fact>
                <Fact title="Boot mode">{entry.boot_mode ?? "not said"}</Fact>
                <Fact title="BMC, as it says">
                    <span class="mono">{entry.bmc_address ?? "not said"}</span>
                </Fact>
                <Fact title="Called from">
                    <span class="mono">{entry.client_address}</span>
                </Fact>
                <Fact title="First seen">
                    <Time at={entry.created_at} both />
                </Fact>
                <Fact title="Last seen">
                    <Time at={entry.seen_at} both /> <span class="muted">({entry.seen_count === 1 ? "once" : `${formatNumber(entry.seen_count)} times`})</span>
                </Fact>
            </dl>
            <Inventory uuid={entry.uuid} />
        </li>
    );
}

function Addresses({ of: entry }: { of: Entry }): JSX.Element {
    return (
        <ul class="mono">
            {(entry.addresses ?? []).map((mac) => (
                <li key={mac}>
                    {mac}
                    {mac === entry.boot_address && <span class="muted"> booted</span>}
                </li>
            ))}
        </ul>
    );
}

interface Whole {
    inventory: unknown;
    plugin_data: unknown;
}

function Inventory({ uuid }: { uuid: string }): JSX.Element {
    const [isOpen, setOpen] = useState(false);
    const whole = useLive<Whole>(isOpen ? `${PATH}/${part(uuid)}?fields=inventory,plugin_data` : null, () => false);
    return (
        <details class="unit-more" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
            <summary>Inventory</summary>
            {isOpen && (
                <Loaded of={whole}>
                    {(found) => (
                        <pre class="unit-json" tabIndex={0} aria-label="Inventory as JSON">
                            <code>{JSON.stringify(found, null, 2)}</code>
                        </pre>
                    )}
                </Loaded>
            )}
        </details>
    );
}

interface DiscardProps {
    entry: Entry;
    close: () => void;
    done: () => void;
}

function DiscardDialog({ entry, close, done }: DiscardProps): JSX.Element {
    const path = `${PATH}/${part(entry.uuid)}`;
    const { error, isBusy, run } = useRequest(() => remove(path), `${nameOf(entry)} is discarded.`, { close, done });
    return (
        <Dialog
            title={`Discard ${nameOf(entry)}`}
            onClose={close}
            actions={
                <>
                    <button type="button" class="button" onClick={close}>
                        Cancel
                    </button>
                    <button type="button" class="button button-danger" disabled={isBusy} onClick={() => void run()}>
                        Discard
                    </button>
                </>
            }
        >
            <p>
                What was found in <span class="mono">{entry.boot_address ?? entry.addresses?.[0] ?? entry.uuid}</span> is deleted. It
                comes back when the machine boots the agent again.
            </p>
            {error && <Problem text={error} />}
            <CommandFold command={() => ({ requests: [{ method: "DELETE", path }] })} />
        </Dialog>
    );
}
