/** Whole lists of the API, which answers them in pages. */

import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

import { ApiError, get } from "../api/client";
import type { IngotEvent } from "./feed";
import { useLive, type Resource } from "./resource";

/** One page: entries under the key of the list, and where the next page is. */
export type Page = Record<string, unknown>;

/** Return the path of the next page; null: this is the last. Its address may be one that only a proxy knows. */
export function nextOf(path: string, page: Page): string | null {
    const next = page["next"];
    return typeof next === "string" ? path.replace(/\?.*$/, "") + new URL(next, location.href).search : null;
}

/** Return all entries of a list of which the first page is known. */
export async function readRest<T>(path: string, key: string, first: Page, aborted: AbortSignal): Promise<T[]> {
    const found: T[] = [];
    for (let [page, at]: [Page, string | null] = [first, path]; ; page = await get<Page>(at, aborted)) {
        found.push(...((page[key] ?? []) as T[]));
        at = nextOf(path, page);
        if (at === null) return found;
    }
}

/** Return a list that is read again, all of its pages, when an event concerns it. */
export function useList<T>(path: string, key: string, concerns: (event: IngotEvent) => boolean): Resource<T[]> {
    const first = useLive<Page>(path, concerns);
    const list = useMemo(() => ({ data: signal<T[] | null>(null), error: signal<ApiError | null>(null) }), [path]);
    const [page, error] = [first.data.value, first.error.value];
    useEffect(() => {
        if (page === null) return undefined;
        const controller = new AbortController();
        readRest<T>(path, key, page, controller.signal)
            .then((found) => {
                list.data.value = found;
                list.error.value = null;
            })
            .catch((problem: unknown) => {
                if (!controller.signal.aborted) list.error.value = problem instanceof ApiError ? problem : new ApiError(String(problem), 0);
            });
        return () => controller.abort();
    }, [list, page]);
    useEffect(() => {
        if (error !== null) list.error.value = error;
    }, [list, error]);
    return { ...list, loading: first.loading, reload: first.reload };
}
