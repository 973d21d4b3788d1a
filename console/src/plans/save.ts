/** Saving and deleting deploy templates and runbooks, and the same as commands. */

import { get, patch, post, put, remove } from "../api/client";
import type { Command } from "../components/command";
import { part } from "../paths";
import { bodyOf, changedTraits, changesOf, creationOf, splitNames, type Draft } from "./draft";
import { KINDS, type Kind, type Saved } from "./kinds";

type Requests = Command["requests"];

/** Return the requests that save a draft. */
function requestsOf(kind: Kind, saved: Saved | null, draft: Draft, ident: string): Requests {
    const { path } = KINDS[kind];
    const requests: Requests = [];
    if (saved === null) requests.push({ method: "POST", path, body: creationOf(kind, draft) });
    const changes = saved ? changesOf(kind, saved, draft) : [];
    if (changes.length) requests.push({ method: "PATCH", path: `${path}/${part(ident)}`, body: changes });
    const traits = changedTraits(kind, saved, draft);
    if (traits) requests.push({ method: "PUT", path: `${path}/${part(ident)}/traits`, body: { traits } });
    return requests;
}

/** Return whether a draft is not as it is saved. */
export function isChanged(kind: Kind, saved: Saved | null, draft: Draft): boolean {
    return saved === null || changesOf(kind, saved, draft).length > 0 || changedTraits(kind, saved, draft) !== null;
}

/** Return how a draft is saved from a shell. */
export function commandOf(kind: Kind, saved: Saved | null, draft: Draft): Command {
    const { path, cli } = KINDS[kind];
    const ident = saved?.name ?? draft.name.trim();
    const steps = JSON.stringify(bodyOf(kind, draft)["steps"]);
    const requests = requestsOf(kind, saved, draft, ident);
    if (requests.length === 0) {
        return { cli: [[...cli, "show", ident]], requests: [{ method: "GET", path: `${path}/${part(ident)}` }] };
    }
    if (saved) return { requests };
    const named = kind === "template" ? ["--steps", steps, ident] : ["--name", ident, "--steps", steps];
    const isSimple = requests.length === 1 && !draft.description && !draft.disable_ramdisk && !draft.public && !draft.owner && !draft.extra.trim();
    return { requests, ...(isSimple ? { cli: [[...cli, "create", ...named]] } : {}) };
}

/** Some of what was asked for is saved, and what is wrong with the rest. */
export class HalfSaved extends Error {
    constructor(
        readonly saved: Saved,
        readonly cause: unknown,
    ) {
        super("Half saved");
    }
}

/**
 * Save a draft, and return it as it is then.
 *
 * @throws ApiError with why the server refuses; nothing is saved.
 * @throws HalfSaved all but the traits is saved.
 */
export async function save(kind: Kind, saved: Saved | null, draft: Draft): Promise<Saved> {
    const { path } = KINDS[kind];
    const changes = saved ? changesOf(kind, saved, draft) : [];
    const traits = changedTraits(kind, saved, draft);
    let found = saved ?? (await post<Saved>(path, creationOf(kind, draft)));
    if (changes.length) found = await patch<Saved>(`${path}/${part(found.uuid)}`, changes);
    if (traits === null) return found;
    try {
        await put(`${path}/${part(found.uuid)}/traits`, { traits: splitNames(draft.traits) });
    } catch (error) {
        throw new HalfSaved(found, error);
    }
    return get<Saved>(`${path}/${part(found.uuid)}`);
}

/** Delete a deploy template or runbook. */
export async function discard(kind: Kind, saved: Saved): Promise<void> {
    await remove(`${KINDS[kind].path}/${part(saved.uuid)}`);
}
