/** The nodes that a verb is for, and asking all of them through the bulk API, in parts. */

import { get, post } from "../api/client";
import type { Bulk, BulkResult, Fleet } from "../api/types";
import type { VerbNode, VerbRequest } from "./request";
import { verbOf, type Verb } from "./verbs";

const PAGE = 1000; // nodes of a page of the fleet
const PART = 100; // nodes of a bulk request: what is done shows early, and none runs into the limit of time

/** How the body of a request is called with. */
export type Body = Record<string, unknown>;

/** Return how many nodes a request is for. */
export function countOf(request: VerbRequest): number {
    if (!request.matching) return request.nodes?.length ?? 0;
    return Math.max(0, request.matching.count - (request.matching.except?.length ?? 0));
}

/** Return the nodes that a request is for; those that match a filter are read now. */
export async function findNodes(request: VerbRequest): Promise<VerbNode[]> {
    if (!request.matching) return request.nodes ?? [];
    const { filter, except = [] } = request.matching;
    const found: VerbNode[] = [];
    const left = new Set(except);
    for (let offset = 0; ; offset += PAGE) {
        const page = await get<Fleet>(`/ingot/v1/fleet?${new URLSearchParams({ filter, offset: `${offset}`, limit: `${PAGE}` })}`);
        found.push(...page.nodes.filter((node) => !left.has(node.uuid)));
        if (page.nodes.length === 0 || offset + page.nodes.length >= page.matching) return found;
    }
}

/** Return the body of the single request of a verb; null: it takes none. */
export function bodyOf(verb: Verb, given: Body): Body | null {
    const body = verb.target === undefined ? given : { target: verb.target, ...given };
    return verb.action === "clear_maintenance" ? null : body;
}

interface Progress {
    dryRun: boolean;
    /** Called with all results so far. */
    report: (results: BulkResult[]) => void;
    stopped: () => boolean;
}

/**
 * Ask nodes for a verb, or only whether it would be accepted.
 *
 * @throws ApiError a request as a whole was refused.
 */
export async function ask(verb: Verb, given: Body, nodes: string[], progress: Progress): Promise<BulkResult[]> {
    const body = bodyOf(verb, given);
    const results: BulkResult[] = [];
    for (let at = 0; at < nodes.length && !progress.stopped(); at += PART) {
        const answer = await post<Bulk>("/ingot/v1/bulk", {
            action: verb.action,
            ...(body === null ? {} : { body }),
            nodes: nodes.slice(at, at + PART),
            dry_run: progress.dryRun,
        });
        results.push(...answer.results);
        progress.report([...results]);
    }
    return results;
}

/** Return the verb of a request. */
export function verbIn(request: VerbRequest): Verb {
    return verbOf(request.verb);
}
