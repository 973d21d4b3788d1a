/** The time, as components see it: it moves on while any of them is shown. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

const TICK_MS = 1000;
const LEAST_OFFSET_MS = 2000; // the server tells whole seconds, and an answer takes its time

const now = signal(Date.now());

/** Milliseconds by which the clock of the server is ahead of that of this computer. */
let offset = 0;

let users = 0;
let timer: ReturnType<typeof setInterval> | undefined;

/** Learn the time of the server from the header Date of an answer. */
export function noteServerTime(date: string | null): void {
    const time = Date.parse(date ?? "");
    if (Number.isNaN(time)) return;
    const found = time - Date.now();
    offset = Math.abs(found) < LEAST_OFFSET_MS ? 0 : found;
}

/** Return the time of the server in milliseconds: what times of its answers are compared with. */
export function serverNow(): number {
    return Date.now() + offset;
}

/** Return the time of the server in milliseconds, and render again as it passes. */
export function useNow(): number {
    return useBrowserNow() + offset;
}

/** Return the time of this computer in milliseconds, for what is measured here, and render again as it passes. */
export function useBrowserNow(): number {
    useEffect(() => {
        users += 1;
        if (users === 1) {
            now.value = Date.now();
            timer = setInterval(() => {
                now.value = Date.now();
            }, TICK_MS);
        }
        return () => {
            users -= 1;
            if (users === 0) clearInterval(timer);
        };
    }, []);
    return now.value;
}
