/** Answers of the API that stay current: read once, and again when an event concerns them. */

import { signal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

import { ApiError, get } from "../api/client";
import { subscribe, whenConnected, type IngotEvent } from "./feed";

const GAP_MS = 500; // between two requests, however many events come

/** Milliseconds between two requests, for all events or for each. */
export type Gap = number | ((event: IngotEvent) => number);

export interface Resource<T> {
    data: ReadonlySignal<T | null>;
    error: ReadonlySignal<ApiError | null>;
    loading: ReadonlySignal<boolean>;
    /** Read it again soon; requests at the same time become one. */
    reload: () => void;
}

/** One path of the API. Events in a row are answered by one request now and one afterwards. */
export class Reader<T> implements Resource<T> {
    readonly data = signal<T | null>(null);
    readonly error = signal<ApiError | null>(null);
    readonly loading = signal(false);
    private readonly ends: (() => void)[] = [];
    private controller: AbortController | null = null;
    private timer: ReturnType<typeof setTimeout> | undefined;
    private dueAt = Infinity; // of the timer
    private began = 0;
    private again = Infinity; // the gap after the request that is under way

    constructor(
        private readonly path: string,
        private readonly concerns: (event: IngotEvent) => boolean,
        private readonly gap: Gap = GAP_MS,
    ) {}

    start(): void {
        this.ends.push(subscribe(this.take));
        this.ends.push(whenConnected(this.reload));
        this.reload();
    }

    private readonly take = (event: IngotEvent): void => {
        if (event.kind === "missed") this.reload();
        else if (this.concerns(event)) this.readAfter(typeof this.gap === "number" ? this.gap : this.gap(event));
    };

    stop(): void {
        for (const end of this.ends.splice(0)) end();
        this.clearTimer();
        this.controller?.abort();
    }

    readonly reload = (): void => this.readAfter(typeof this.gap === "number" ? this.gap : GAP_MS);

    private readAfter(gap: number): void {
        if (this.controller) {
            this.again = Math.min(this.again, gap);
            return;
        }
        const at = this.began + gap;
        if (at >= this.dueAt) return;
        this.clearTimer();
        const wait = at - Date.now();
        if (wait <= 0) {
            void this.read();
            return;
        }
        this.dueAt = at;
        this.timer = setTimeout(() => void this.read(), wait);
    }

    private clearTimer(): void {
        clearTimeout(this.timer);
        this.dueAt = Infinity;
    }

    private async read(): Promise<void> {
        const controller = new AbortController();
        this.dueAt = Infinity;
        this.controller = controller;
        this.began = Date.now();
        this.loading.value = true;
        try {
            this.data.value = await get<T>(this.path, controller.signal);
            this.error.value = null;
        } catch (error) {
            if (controller.signal.aborted) return;
            this.error.value = error instanceof ApiError ? error : new ApiError(String(error), 0);
        } finally {
            this.loading.value = false;
            this.controller = null;
        }
        const gap = this.again;
        this.again = Infinity;
        if (gap !== Infinity) this.readAfter(gap);
    }
}

const EMPTY: Resource<never> = {
    data: signal(null),
    error: signal(null),
    loading: signal(false),
    reload: () => undefined,
};

/**
 * Return an answer of the API that is read again when an event concerns it.
 *
 * @param path null: nothing is read.
 * @param concerns whether an event may change the answer.
 * @param gap milliseconds between two requests, where an answer costs the server more than most; other events may be
 *     more urgent.
 */
export function useLive<T>(
    path: string | null,
    concerns: (event: IngotEvent) => boolean = () => true,
    gap: Gap = GAP_MS,
): Resource<T> {
    const reader = useMemo(() => (path === null ? null : new Reader<T>(path, concerns, gap)), [path]);
    useEffect(() => {
        reader?.start();
        return () => reader?.stop();
    }, [reader]);
    return reader ?? EMPTY;
}

/** A condition for `useLive`: a plan was made, changed or deleted. */
export function ofPlans(event: IngotEvent): boolean {
    return event.kind === "plan";
}

/** Return a condition for `useLive`: events of one node. */
export function ofNode(uuid: string): (event: IngotEvent) => boolean {
    return (event) => event.node_uuid === uuid || event.node_name === uuid;
}
