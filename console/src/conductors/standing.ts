/** How conductors stand, as the server answers it, and what the page makes of it. */

import type { Tone } from "../components/state";
import { formatDuration } from "../components/spans";
import { quoteValue } from "../fleet/quote";

export interface Load {
    threads_busy: number;
    threads_most: number;
    /** Nodes that are worked on. */
    working: number;
    /** Jobs that wait for a thread. */
    queue: number;
    pools: { name: string; busy: number; most: number }[];
    /** BMCs that do not answer this conductor. */
    breakers: { address: string; since: string; reason: string }[];
}

export interface Standing {
    hostname: string;
    state: string;
    release: string;
    rpc_version: string;
    conductor_group: string;
    alive: boolean;
    draining: boolean;
    heartbeat_age: number;
    drivers: string[];
    nodes: number;
    locked: number;
    load: Load | null;
    load_error: string | null;
}

export interface Leaving {
    nodes: number;
    moves: { to: string; nodes: number }[];
    orphans: number;
    busy: number;
}

const TRUSTED_S = 30; // after an answer: later only an event says that a conductor has fallen silent

/** Return how a conductor's state is to be taken. */
export function toneOfStanding({ alive, draining, state }: Pick<Standing, "alive" | "draining" | "state">): Tone {
    if (draining) return state === "draining" ? "waiting" : "idle";
    return alive ? "good" : "bad";
}

/**
 * Return how old a heartbeat is, in words.
 *
 * @param read seconds since the server said how old it is.
 * @param connected whether events come: one would tell of a silence.
 */
export function describeHeartbeat(one: Pick<Standing, "alive" | "heartbeat_age">, read: number, connected: boolean): string {
    if (one.alive && connected && read > TRUSTED_S) {
        return `on time, ${formatDuration(Math.round(one.heartbeat_age))} old when it was read`;
    }
    return `${formatDuration(Math.round(one.heartbeat_age + Math.max(0, read)))} ago`;
}

/** Return a conductor's part of all nodes that conductors own. */
export function shareOf(one: Pick<Standing, "nodes">, all: Pick<Standing, "nodes">[]): number {
    const total = all.reduce((sum, other) => sum + other.nodes, 0);
    return total === 0 ? 0 : one.nodes / total;
}

/** Return conductors by conductor group, the default group first. */
export function groupsOf<T extends Pick<Standing, "conductor_group">>(all: T[]): [string, T[]][] {
    const groups = new Map<string, T[]>();
    for (const one of all) groups.set(one.conductor_group, [...(groups.get(one.conductor_group) ?? []), one]);
    return [...groups].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Return the filter of the fleet for the nodes that a conductor owns. */
export function filterOf(host: string): string {
    return `conductor:${quoteValue(host)}`;
}

/** Return a number with what it counts. */
export function counted(count: number, one: string, many = `${one}s`): string {
    return `${count} ${count === 1 ? one : many}`;
}
