/** What opens the dialog of a verb: a button, a menu or a letter anywhere in the console. */

import { signal } from "@preact/signals";

import { verbRun } from "./run";
import type { VerbName } from "./verbs";

export interface VerbNode {
    uuid: string;
    name: string | null;
    provision_state?: string | null;
}

/** One verb for some nodes, or for all that match a filter of the fleet. */
export interface VerbRequest {
    verb: VerbName;
    nodes?: VerbNode[];
    /** `except`: UUIDs of nodes that match and are not meant. */
    matching?: { filter: string; count: number; except?: string[] };
    /** Arguments that are filled in already. */
    body?: Record<string, unknown>;
}

export const verbRequest = signal<VerbRequest | null>(null);

/** Open the dialog of a verb. */
export function openVerb(request: VerbRequest): void {
    verbRun.value = null;
    verbRequest.value = request;
}

/** Close the dialog, and forget what became of its nodes. */
export function closeVerb(): void {
    verbRequest.value = null;
    verbRun.value = null;
}
