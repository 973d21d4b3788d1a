/** The time, as components see it: it moves on while any of them is shown. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

const TICK_MS = 1000;

export const now = signal(Date.now());

let users = 0;
let timer: ReturnType<typeof setInterval> | undefined;

/** Return the time in milliseconds, and render again as it passes. */
export function useNow(): number {
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
