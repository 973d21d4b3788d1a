/** A verb that nodes are asked for, in parts. It belongs to no component: what became of each node outlasts a login. */

import { signal } from "@preact/signals";

import { ApiError, explain } from "../api/client";
import { session } from "../api/session";
import type { BulkResult } from "../api/types";
import { ask, splitNodes, type Body } from "./targets";
import type { Verb } from "./verbs";

/** Return whether nodes may have been asked though there is no answer. */
function isUnsure(error: unknown): boolean {
    return !(error instanceof ApiError) || error.status === 0 || error.status >= 500;
}

function nameUser(): string {
    const { user, project } = session.value ?? {};
    return `${user} ${project}`;
}

/** A verb for some nodes, which are asked from `go()` on. */
export class VerbRun {
    readonly results = signal<BulkResult[]>([]);
    /** Nodes that were not asked, or of which that is not known. */
    readonly rest = signal<string[]>([]);
    /** How many of the rest were in a request without an answer. */
    readonly unsure = signal(0);
    readonly running = signal(false);
    readonly failure = signal<string | null>(null);
    readonly stopping = signal(false);
    private readonly user = nameUser();

    constructor(
        private readonly verb: Verb,
        private readonly body: Body,
        nodes: string[],
    ) {
        this.rest.value = nodes;
    }

    /** Whether the user who is logged in has started it. */
    get isOwn(): boolean {
        return this.user === nameUser();
    }

    /** Whether each node was asked and has accepted. */
    get isComplete(): boolean {
        return this.rest.value.length === 0 && this.results.value.every((one) => one.accepted);
    }

    /** Ask the nodes that were not asked yet. What goes wrong is in `failure`, and the rest can be asked later. */
    async go(): Promise<void> {
        if (this.running.value) return;
        this.running.value = true;
        this.stopping.value = false;
        this.failure.value = null;
        this.unsure.value = 0;
        for (const part of splitNodes(this.rest.value)) {
            if (this.stopping.value) break;
            try {
                const results = await ask(this.verb, this.body, part, false);
                this.results.value = [...this.results.value, ...results];
                this.rest.value = this.rest.value.slice(part.length);
            } catch (error) {
                this.failure.value = explain(error);
                this.unsure.value = isUnsure(error) ? part.length : 0;
                break;
            }
        }
        this.running.value = false;
    }

    /** Ask no more nodes after the request that is under way. */
    stop = (): void => {
        this.stopping.value = true;
    };
}

/** What the dialog of a verb is doing; null: nothing was asked for yet. */
export const verbRun = signal<VerbRun | null>(null);
