/** Times in two ways: how long ago, and when. */

import type { JSX } from "preact";

import { useNow } from "../live/clock";
import { formatDuration, formatRelative, parseTime } from "./spans";

const SAME_DAY = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const OTHER_DAY = new Intl.DateTimeFormat(undefined, {
    year: "numeric",
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
});
const COMPLETE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });

/** Return when something was: the time of today, or the date as well. */
export function formatAbsolute(at: number, now: number): string {
    const same = new Date(at).toDateString() === new Date(now).toDateString();
    return (same ? SAME_DAY : OTHER_DAY).format(at);
}

interface TimeProps {
    at: string | null | undefined;
    /** Both ways side by side, or the absolute time only in the title. */
    both?: boolean;
}

/** Shows how long ago something was, and when. */
export function Time({ at, both = false }: TimeProps): JSX.Element | null {
    const now = useNow();
    const time = at ? parseTime(at) : NaN;
    if (!at || Number.isNaN(time)) return null;
    return (
        <time dateTime={at} title={COMPLETE.format(time)} class="time">
            {formatRelative(time, now)}
            {both && " "}
            {both && <span class="time-absolute">{formatAbsolute(time, now)}</span>}
        </time>
    );
}

/** Shows how long something has been going on, and since when: beside it, or only in the title. */
export function Elapsed({ since, both = false }: { since: string; both?: boolean }): JSX.Element {
    const now = useNow();
    const time = parseTime(since);
    return (
        <time dateTime={since} title={`since ${COMPLETE.format(time)}`} class="time">
            {formatDuration(Math.round((now - time) / 1000))}
            {both && <span class="time-absolute"> since {formatAbsolute(time, now)}</span>}
        </time>
    );
}

export { formatDuration, formatRelative, parseTime };
