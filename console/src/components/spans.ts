/** Times and durations in words. */

const UNITS: [number, string][] = [
    [86_400, "d"],
    [3600, "h"],
    [60, "min"],
    [1, "s"],
];

/** Return seconds as people say them: `0.4 s`, `45 s`, `3 min 20 s`, `2 h 5 min`, `4 d`. */
export function formatDuration(seconds: number): string {
    const tenths = Math.round(seconds * 10) / 10;
    if (tenths > 0 && tenths < 10) return `${tenths} s`;
    let rest = Math.max(0, Math.round(seconds));
    const parts: string[] = [];
    for (const [size, unit] of UNITS) {
        const count = Math.floor(rest / size);
        rest -= count * size;
        if (count) parts.push(`${count} ${unit}`);
        else if (parts.length) break;
        if (parts.length === 2) break;
    }
    return parts.join(" ") || "0 s";
}

/** Return how long ago, or in how long, in one unit. */
export function formatRelative(at: number, now: number): string {
    const seconds = (now - at) / 1000;
    const size = Math.abs(seconds);
    if (size < 5) return "now";
    const [unit, name] = UNITS.find(([unit]) => size >= unit) ?? [1, "s"];
    const text = `${Math.floor(size / unit)} ${name}`;
    return seconds < 0 ? `in ${text}` : `${text} ago`;
}

/** Return a time of the API as milliseconds: without a zone it is UTC. */
export function parseTime(text: string): number {
    return Date.parse(/(Z|[+-]\d\d:?\d\d)$/.test(text) ? text : `${text}Z`);
}
