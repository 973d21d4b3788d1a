/** Home: the nodes that need an operator, the work under way, and how many nodes there are of what. */

import type { ComponentChildren, JSX } from "preact";

import { useState } from "preact/hooks";

import type { Overview, TriageGroup, TriageNode, Work } from "../api/types";
import { CommandButton } from "../components/command";
import { Icon, type IconName } from "../components/icon";
import { Loaded } from "../components/loading";
import { formatNumber } from "../components/number";
import { StateBadge, toneOf } from "../components/state";
import { Elapsed, formatDuration, parseTime, Time } from "../components/time";
import { quoteValue } from "../fleet/quote";
import { useNow } from "../live/clock";
import { useLive } from "../live/resource";
import { useStale } from "../live/stale";
import { part } from "../paths";
import { address } from "../router";
import { NextButton } from "../verbs/next";

const ICONS: Record<TriageGroup["cause"], IconName> = {
    failed: "alert",
    overdue: "clock",
    unresponsive: "plug",
    held: "pause",
    waiting: "clock",
    maintenance: "wrench",
};

const FIRST = 5; // nodes of a cause that show at once

/** Return where the fleet shows all nodes that match. */
const fleetOf = (filter: string): string => address(`/fleet?filter=${part(filter)}`);

const COMMAND = { own: [["top"]], requests: [{ method: "GET" as const, path: "/ingot/v1/overview" }] };

/** Shows the start page. */
export function HomePage(): JSX.Element {
    const overview = useLive<Overview>("/ingot/v1/overview");
    useStale(overview);
    return (
        <>
            <div class="page-head">
                <h1>Home</h1>
                <div class="page-actions">
                    <CommandButton command={COMMAND} />
                </div>
            </div>
            <Loaded of={overview}>
                {(found) => (
                    <div class="home">
                        <div class="home-main">
                            <Triage groups={found.triage} />
                            <WorkPanel work={found.work} count={found.work_count ?? found.work.length} />
                        </div>
                        <Counts counts={found.counts} />
                    </div>
                )}
            </Loaded>
        </>
    );
}

function Triage({ groups }: { groups: TriageGroup[] }): JSX.Element {
    const count = groups.reduce((sum, group) => sum + group.count, 0);
    return (
        <section class="panel" aria-labelledby="needs">
            <div class="panel-head">
                <h2 id="needs">Needs attention</h2>
                <span class="count">{formatNumber(count)}</span>
            </div>
            {count === 0 && (
                <p class="quiet">
                    <Icon name="check" /> Nothing needs attention.
                </p>
            )}
            {groups.map((group) => (
                <Group key={group.cause} group={group} />
            ))}
        </section>
    );
}

function Group({ group }: { group: TriageGroup }): JSX.Element {
    const [isWhole, setWhole] = useState(false);
    const shown = isWhole ? group.nodes : group.nodes.slice(0, FIRST);
    const folded = group.nodes.length - shown.length;
    const left = group.count - group.nodes.length;
    return (
        <details class="group" open={group.cause !== "waiting" && group.cause !== "maintenance"}>
            <summary>
                <span class={`group-icon group-${group.cause}`}>
                    <Icon name={ICONS[group.cause]} />
                </span>
                <h3>{group.title}</h3>
                <span class="count">{formatNumber(group.count)}</span>
            </summary>
            <ul class="needs">
                {shown.map((node) => (
                    <Need key={node.uuid} node={node} />
                ))}
            </ul>
            {folded > 0 && (
                <p class="group-more">
                    <button type="button" class="button button-small" onClick={() => setWhole(true)}>
                        Show {folded} more
                    </button>
                </p>
            )}
            {folded === 0 && left > 0 && (
                <p class="group-more">
                    <a href={fleetOf(`needs:${group.cause}`)}>
                        All {formatNumber(group.count)}
                        <span class="visually-hidden">: {group.title}</span>
                    </a>
                </p>
            )}
        </details>
    );
}

function NodeLink({ node }: { node: { uuid: string; name: string | null } }): JSX.Element {
    return <a href={address(`/nodes/${part(node.name ?? node.uuid)}`)}>{node.name ?? node.uuid}</a>;
}

function Need({ node }: { node: TriageNode }): JSX.Element {
    return (
        <li class="need">
            <div class="need-head">
                <strong>
                    <NodeLink node={node} />
                </strong>
                <StateBadge state={node.provision_state} />
                {node.since && (
                    <span class="muted">
                        <Time at={node.since} both />
                    </span>
                )}
                {node.by && <span class="muted">by {node.by}</span>}
            </div>
            <p class="need-reason">
                {node.step && !node.reason?.includes(node.step) && <code>{node.step}</code>} {node.reason}
            </p>
            <div class="need-next">
                <span>{node.next.text}</span>
                <NextButton node={node} next={node.next} />
            </div>
        </li>
    );
}

const BASES: Record<string, string> = {
    node: "its own past",
    class: "nodes of its class",
    all: "all nodes",
};

function WorkPanel({ work, count }: { work: Work[]; count: number }): JSX.Element {
    return (
        <section class="panel" aria-labelledby="work">
            <div class="panel-head">
                <h2 id="work">Work under way</h2>
                <span class="count">{formatNumber(count)}</span>
            </div>
            {work.length === 0 && <p class="quiet">No node has anything to do.</p>}
            <ul class="works">
                {work.map((one) => (
                    <WorkRow key={one.uuid} work={one} />
                ))}
            </ul>
            {count > work.length && (
                <p class="group-more">
                    <a href={fleetOf("state:working,waiting")}>and {formatNumber(count - work.length)} more</a>
                </p>
            )}
        </section>
    );
}

/** Return how far work is, which goes on between two answers of the server. */
function progressOf(work: Work, now: number): number | null {
    const began = work.run_started_at ?? work.started_at;
    if (work.eta === null || !began) return work.progress;
    const [from, to] = [parseTime(began), parseTime(work.eta)];
    if (to <= from) return work.progress;
    return Math.min(0.99, Math.max(work.progress ?? 0, (now - from) / (to - from)));
}

function WorkRow({ work }: { work: Work }): JSX.Element {
    const now = useNow();
    const progress = progressOf(work, now);
    const eta = work.eta === null ? null : parseTime(work.eta);
    const isLate = eta !== null && eta < now;
    const what = work.step ?? work.flow;
    return (
        <li class="work">
            <div class="work-head">
                <strong>
                    <NodeLink node={work} />
                </strong>
                <span class="muted">{work.flow}</span>
                <code>{what}</code>
                {work.index !== null && work.steps !== null && work.steps > 0 && (
                    <span class="muted nowrap">
                        step {Math.min(work.index + 1, work.steps)} of {work.steps}
                    </span>
                )}
                <span class="work-end">
                    {work.started_at && <Elapsed since={work.started_at} both />}
                    {eta !== null && (
                        <span class={isLate ? "late" : "muted"}>
                            {isLate ? "expected" : "ends"} <Time at={work.eta} both />
                        </span>
                    )}
                </span>
            </div>
            {eta !== null && <p class="work-basis muted">{basisOf(work)}</p>}
            <Bar progress={progress} isLate={isLate} label={`${work.name ?? work.uuid}: ${work.flow}`} />
        </li>
    );
}

function basisOf(work: Work): string {
    const usual = work.expected_seconds === null ? "" : `usually ${formatDuration(work.expected_seconds)}, `;
    return `${usual}by ${BASES[work.basis ?? "all"] ?? "the past"}`;
}

/** Shows how far something is; without a known part only that it goes on. */
function Bar({ progress, isLate, label }: { progress: number | null; isLate: boolean; label: string }): JSX.Element {
    const part = progress === null ? undefined : Math.round(progress * 100);
    return (
        <div
            class={["bar", isLate && "bar-late", part === undefined && "bar-unknown"].filter(Boolean).join(" ")}
            role="progressbar"
            aria-label={label}
            aria-valuenow={part}
            aria-valuemin={0}
            aria-valuemax={100}
        >
            <div class="bar-part" style={{ "--part": String(progress ?? 0) }} />
        </div>
    );
}

function Counts({ counts }: { counts: Overview["counts"] }): JSX.Element {
    const term = (key: string, value: string): string => `${key}:${quoteValue(value)}`;
    return (
        <aside class="home-counts" aria-label="Counts">
            <p class="total">
                <a href={address("/fleet")}>
                    <strong>{formatNumber(counts.total)}</strong> nodes
                </a>
            </p>
            <CountList title="By state" of={counts.by_state} total={counts.total} filter={(state) => term("state", state)}>
                {(state) => <StateBadge state={state} />}
            </CountList>
            <CountList title="By conductor" of={counts.by_conductor} total={counts.total} filter={(name) => term("conductor", name)} />
            <CountList title="By class" of={counts.by_class} total={counts.total} filter={(name) => term("class", name)} />
        </aside>
    );
}

interface CountListProps {
    title: string;
    of: Record<string, number>;
    total: number;
    filter: (name: string) => string;
    children?: (name: string) => ComponentChildren;
}

function CountList({ title, of, total, filter, children }: CountListProps): JSX.Element | null {
    const rows = Object.entries(of).sort(([, a], [, b]) => b - a);
    if (rows.length === 0) return null;
    return (
        <section class="panel">
            <div class="panel-head">
                <h2>{title}</h2>
            </div>
            <ul class="counts">
                {rows.map(([name, count]) => (
                    <li key={name}>
                        <a href={fleetOf(name ? filter(name) : `${filter("")}""`)}>
                            {children?.(name) ?? (name || "none")}
                            <span class="counts-number">{formatNumber(count)}</span>
                        </a>
                        <div class={`counts-bar tone-${children ? toneOf(name) : "idle"}`} style={{ "--part": String(count / total) }} />
                    </li>
                ))}
            </ul>
        </section>
    );
}
