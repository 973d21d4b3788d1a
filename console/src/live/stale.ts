/** Answers that become different though nothing happens: time alone makes a node overdue, or ends a short lock. */

import { useEffect } from "preact/hooks";

import { parseTime } from "../components/time";
import type { Resource } from "./resource";

const LEAST_MS = 1000;
const LONGEST_MS = 24 * 60 * 60 * 1000; // timers of browsers end at 24 days

interface Aging {
    at: string;
    stale_at: string | null;
}

/** Read an answer again, once, when it is different, of which no event tells. The times are of the server's clock. */
export function useStale(of: Resource<Aging>): void {
    const found = of.data.value;
    useEffect(() => {
        if (!found?.stale_at) return undefined;
        const left = parseTime(found.stale_at) - parseTime(found.at) + LEAST_MS;
        const timer = setTimeout(of.reload, Math.min(LONGEST_MS, Math.max(LEAST_MS, left)));
        return () => clearTimeout(timer);
    }, [found]);
}
