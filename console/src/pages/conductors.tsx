/** Conductors: which are alive, what each owns and has to do, and draining one. */

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";

import { DrainDialog, UndrainDialog } from "../conductors/drain";
import { describeHeartbeat, filterOf, groupsOf, shareOf, toneOfStanding, type Load, type Standing } from "../conductors/standing";
import { Action, useReason } from "../components/action";
import { CommandButton } from "../components/command";
import { Fact } from "../components/fact";
import { Icon } from "../components/icon";
import { useKeys } from "../components/keys";
import { Empty, Loaded } from "../components/loading";
import { formatNumber } from "../components/number";
import { ToneBadge } from "../components/state";
import { Time } from "../components/time";
import { useBrowserNow } from "../live/clock";
import { feedState, type IngotEvent } from "../live/feed";
import { useLive } from "../live/resource";
import { part } from "../paths";
import { address } from "../router";

const PATH = "/ingot/v1/conductors";
const DRAIN = "ingot:conductors:drain";
const GAP_MS = 500;
const GAP_OF_WORK_MS = 5000; // each answer asks all conductors how much they have to do

const COMMAND = { cli: [["baremetal", "conductor", "list"]], requests: [{ method: "GET" as const, path: PATH }] };

const OF_WORK = new Set<string>(["provision", "step", "lock"]);

/** Return whether an event may change who owns, locks and does what. */
function concerns(event: IngotEvent): boolean {
    return event.kind === "conductor" || OF_WORK.has(event.kind);
}

function gapOf(event: IngotEvent): number {
    return OF_WORK.has(event.kind) ? GAP_OF_WORK_MS : GAP_MS;
}

interface Asked {
    host: string;
    drains: boolean;
}

/** Shows the conductors. */
export function ConductorsPage(): JSX.Element {
    const found = useLive<{ conductors: Standing[] }>(PATH, concerns, gapOf);
    const [asked, setAsked] = useState<Asked | null>(null);
    useKeys("Conductors", [{ key: "r", text: "Read again", run: found.reload }]);
    const DialogOf = asked?.drains ? DrainDialog : UndrainDialog;
    return (
        <>
            <div class="page-head">
                <h1>Conductors</h1>
                <div class="page-actions">
                    <CommandButton command={COMMAND} />
                    <button type="button" class="button" onClick={found.reload}>
                        <Icon name="refresh" /> Read again
                    </button>
                </div>
            </div>
            <Loaded of={found}>
                {({ conductors }) =>
                    conductors.length ? (
                        <Groups all={conductors} ask={setAsked} />
                    ) : (
                        <Empty>No conductor has ever registered: start one with ingot-conductor.</Empty>
                    )
                }
            </Loaded>
            {asked && <DialogOf host={asked.host} close={() => setAsked(null)} done={found.reload} />}
        </>
    );
}

interface GroupsProps {
    all: Standing[];
    ask: (asked: Asked) => void;
}

function Groups({ all, ask }: GroupsProps): JSX.Element {
    const readAt = useMemo(() => Date.now(), [all]);
    return (
        <>
            {groupsOf(all).map(([group, members]) => (
                <section key={group} class="panel" aria-label={group ? `Conductor group ${group}` : "Default conductor group"}>
                    <div class="panel-head">
                        <h2>{group ? `Group ${group}` : "Default group"}</h2>
                        <span class="count">{formatNumber(members.length)}</span>
                    </div>
                    <ul class="units">
                        {members.map((one) => (
                            <Conductor key={one.hostname} of={one} all={all} readAt={readAt} ask={ask} />
                        ))}
                    </ul>
                </section>
            ))}
        </>
    );
}

interface ConductorProps extends GroupsProps {
    of: Standing;
    readAt: number;
}

function Conductor({ of: one, all, readAt, ask }: ConductorProps): JSX.Element {
    const reason = useReason()(DRAIN);
    const verb = one.draining ? "Undrain" : "Drain";
    return (
        <li class="unit">
            <div class="unit-head">
                <h3 class="mono">{one.hostname}</h3>
                <ToneBadge tone={toneOfStanding(one)} text={one.state} />
                <Heartbeat of={one} readAt={readAt} />
                <span class="muted" title={`RPC version ${one.rpc_version}`}>
                    release {one.release}
                </span>
                <span class="unit-actions">
                    <Action
                        class="button button-small"
                        reason={reason}
                        label={`${verb} ${one.hostname}`}
                        run={() => ask({ host: one.hostname, drains: !one.draining })}
                    >
                        {verb}…
                    </Action>
                </span>
            </div>
            <dl class="unit-facts">
                <Fact title="Nodes">
                    <Share of={one} all={all} />
                </Fact>
                <Fact title="Locked">{formatNumber(one.locked)}</Fact>
                <Work load={one.load} error={one.load_error} />
                <Fact title="Hardware types">{one.drivers.join(", ") || "none"}</Fact>
            </dl>
            {one.load && <Breakers of={one.load.breakers} />}
        </li>
    );
}

function Heartbeat({ of: one, readAt }: { of: Standing; readAt: number }): JSX.Element {
    const read = (useBrowserNow() - readAt) / 1000;
    const text = describeHeartbeat(one, read, feedState.value === "connected");
    return (
        <span class={one.alive ? "muted" : "late"} title={`${Math.round(one.heartbeat_age)} s old when it was read`}>
            heartbeat {text}
        </span>
    );
}

function Share({ of: one, all }: { of: Standing; all: Standing[] }): JSX.Element {
    const share = shareOf(one, all);
    return (
        <>
            <a href={address(`/fleet?filter=${part(filterOf(one.hostname))}`)}>
                {formatNumber(one.nodes)}
                <span class="visually-hidden"> nodes of {one.hostname}</span>
            </a>
            <span class="muted">, {Math.round(share * 100)} % of the ring</span>
            <span class="share" style={{ "--part": String(share) }} />
        </>
    );
}

function Work({ load, error }: { load: Load | null; error: string | null }): JSX.Element {
    if (load === null) return <Fact title="Work">{error ?? "Unknown"}</Fact>;
    const pools = load.pools.map((pool) => `${pool.name}: ${pool.busy} of ${pool.most}`).join(", ");
    return (
        <>
            <Fact title="Threads">
                <span title={pools}>
                    {formatNumber(load.threads_busy)} of {formatNumber(load.threads_most)} busy
                </span>
                <span class="share" style={{ "--part": String(load.threads_busy / Math.max(1, load.threads_most)) }} />
            </Fact>
            <Fact title="Queue">
                <span class={load.queue ? "late" : ""}>{formatNumber(load.queue)} waiting</span>
                <span class="muted">, {formatNumber(load.working)} under way</span>
            </Fact>
        </>
    );
}

function Breakers({ of: breakers }: { of: Load["breakers"] }): JSX.Element | null {
    if (breakers.length === 0) return null;
    return (
        <details class="unit-more">
            <summary>
                <Icon name="plug" /> {formatNumber(breakers.length)} {breakers.length === 1 ? "BMC does" : "BMCs do"} not answer
            </summary>
            <ul class="breakers">
                {breakers.map((one) => (
                    <li key={one.address}>
                        <code>{one.address}</code> <Time at={one.since} both /> <span>{one.reason}</span>
                    </li>
                ))}
            </ul>
        </details>
    );
}
