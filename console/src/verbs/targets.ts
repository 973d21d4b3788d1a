/** The nodes that a verb is for, and asking all of them through the bulk API, in parts. */

import { get, post } from "../api/client";
import type { Bulk, BulkResult, Fleet } from "../api/types";
import type { VerbNode, VerbRequest } from "./request";
import { verbOf, type Verb } from "./verbs";

const PAGE = 1000; // nodes of a page of the fleet; the server may send fewer
const BACK = 100; // places that a reader goes back when the list has moved

/** Nodes of a bulk request: what is done shows early, and none runs into the limit of time. */
export const PART = 100;

/** How the body of a request is called with. */
export type Body = Record<string, unknown>;

/** Return how many nodes a request is for. */
export function countOf(request: VerbRequest): number {
    if (!request.matching) return request.nodes?.length ?? 0;
    return Math.max(0, request.matching.count - (request.matching.except?.length ?? 0));
}

/**
 * Return all nodes that match a filter now.
 *
 * The list changes while its pages are read: nodes of other places come and go, and the rest moves. So it is read in an
 * order that nothing changes, and each page begins with what the one before has ended with; where it does not, places
 * are read again.
 */
export async function readMatching(filter: string): Promise<VerbNode[]> {
    const found = new Map<string, VerbNode>();
    let [offset, last, overlaps] = [0, "", false];
    for (;;) {
        const sent = new URLSearchParams({ ...(filter && { filter }), sort: "uuid", offset: `${offset}`, limit: `${PAGE}` });
        const { nodes, matching } = await get<Fleet>(`/ingot/v1/fleet?${sent}`);
        if (overlaps && (nodes[0] === undefined || nodes[0].uuid > last)) {
            offset = Math.max(0, offset - BACK);
            overlaps = offset > 0;
            continue;
        }
        for (const { uuid, name, provision_state } of nodes) found.set(uuid, { uuid, name, provision_state });
        last = nodes.at(-1)?.uuid ?? last;
        const next = offset + nodes.length;
        if (next >= matching || nodes.length === 0) return [...found.values()];
        overlaps = nodes.length > 1; // a server that sends one at a time has no room for two
        offset = overlaps ? next - 1 : next;
    }
}

/** Return the nodes that a request is for; those that match a filter are read now. */
export async function findNodes(request: VerbRequest): Promise<VerbNode[]> {
    if (!request.matching) return request.nodes ?? [];
    const left = new Set(request.matching.except);
    const found = await readMatching(request.matching.filter);
    return found.filter((node) => !left.has(node.uuid));
}

/** Return the body of the single request of a verb; null: it takes none. */
export function bodyOf(verb: Verb, given: Body): Body | null {
    const body = verb.target === undefined ? given : { target: verb.target, ...given };
    return verb.action === "clear_maintenance" ? null : body;
}

/** Return the body of a bulk request for nodes that are named or that match. */
export function bulkOf(verb: Verb, given: Body, which: { nodes: string[] } | { matching: string }): Body {
    const body = bodyOf(verb, given);
    return { action: verb.action, ...(body === null ? {} : { body }), ...which };
}

/** Return nodes in parts, each for one request. */
export function splitNodes(nodes: string[]): string[][] {
    return Array.from({ length: Math.ceil(nodes.length / PART) }, (_part, at) => nodes.slice(at * PART, (at + 1) * PART));
}

/**
 * Ask a part of the nodes for a verb, or only whether it would be accepted.
 *
 * @throws ApiError the request as a whole was refused.
 */
export async function ask(verb: Verb, given: Body, nodes: string[], dryRun: boolean): Promise<BulkResult[]> {
    const answer = await post<Bulk>("/ingot/v1/bulk", { ...bulkOf(verb, given, { nodes }), dry_run: dryRun });
    return answer.results;
}

/** Return the verb of a request. */
export function verbIn(request: VerbRequest): Verb {
    return verbOf(request.verb);
}
