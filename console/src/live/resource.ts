/** Answers of the API that stay current: read once, and again when an event concerns them. */

import { signal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";

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
        readonly path: string,
        private readonly concerns: (event: IngotEvent) => boolean,
        private readonly gap: Gap = GAP_MS,
        /** Where it is read once it is known, if that is another path: a name may change. */
        private readonly pathOf: (known: T) => string = () => this.path,
    ) {}

    start(): void {
        this.ends.push(subscribe(this.take));
        this.ends.push(whenConnected((isAgain) => (isAgain ? this.renew() : this.reload())));
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

    /** Read it now: a request from before the connection was lost may never be answered. */
    private renew(): void {
        this.clearTimer();
        void this.read();
    }

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
        this.controller?.abort();
        this.again = this.dueAt = Infinity;
        this.controller = controller;
        this.began = Date.now();
        this.loading.value = true;
        try {
            const known = this.data.peek();
            this.data.value = await get<T>(known === null ? this.path : this.pathOf(known), controller.signal);
            this.error.value = null;
        } catch (error) {
            if (controller.signal.aborted) return;
            this.error.value = error instanceof ApiError ? error : new ApiError(String(error), 0);
        } finally {
            if (this.controller === controller) {
                this.loading.value = false;
                this.controller = null;
            }
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

/** Return whether two paths ask for the same list, of which one may be longer. */
export function isSameList(one: string, other: string): boolean {
    const [first = "", second = ""] = [one, other].map((path) => path.replace(/([?&])limit=\d+/, "$1"));
    return first === second;
}

/**
 * Return an answer of the API that is read again when an event concerns it.
 *
 * @param path null: nothing is read. While a list becomes longer (`limit`), the shorter one stays.
 * @param concerns whether an event may change the answer.
 * @param gap milliseconds between two requests, where an answer costs the server more than most; other events may be
 *     more urgent.
 * @param pathOf where an answer that is known is read again, if not at `path`.
 */
export function useLive<T>(
    path: string | null,
    concerns: (event: IngotEvent) => boolean = () => true,
    gap: Gap = GAP_MS,
    pathOf?: (known: T) => string,
): Resource<T> {
    const before = useRef<Reader<T> | null>(null);
    const reader = useMemo(() => {
        if (path === null) return null;
        const made = new Reader<T>(path, concerns, gap, pathOf);
        if (before.current && isSameList(before.current.path, path)) made.data.value = before.current.data.peek();
        return made;
    }, [path]);
    before.current = reader;
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
