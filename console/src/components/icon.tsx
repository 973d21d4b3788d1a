/** Small pictures, drawn here: the page loads nothing from elsewhere. */

import type { JSX } from "preact";

const PATHS = {
    check: "M3 8.5l3.2 3.2L13 5",
    cross: "M4 4l8 8M12 4l-8 8",
    alert: "M8 2.5L14.5 13.5H1.5zM8 6.5v3.2M8 11.4v.6",
    clock: "M8 2a6 6 0 100 12A6 6 0 008 2zM8 5v3.2l2.2 1.4",
    pause: "M5.5 4v8M10.5 4v8",
    gear: "M8 5.6a2.4 2.4 0 100 4.8 2.4 2.4 0 000-4.8zM8 2v1.6M8 12.4V14M2 8h1.6M12.4 8H14M3.8 3.8l1.1 1.1M11.1 11.1l1.1 1.1M12.2 3.8l-1.1 1.1M4.9 11.1l-1.1 1.1",
    dot: "M8 6.2a1.8 1.8 0 100 3.6 1.8 1.8 0 000-3.6z",
    circle: "M8 3a5 5 0 100 10A5 5 0 008 3z",
    plug: "M6 2v3.5M10 2v3.5M4 5.5h8v2.2a4 4 0 01-8 0zM8 11.7V14",
    lock: "M4.5 7.5h7v5.5h-7zM6 7.5V5.4a2 2 0 014 0v2.1",
    wrench: "M10.5 2.6a3.4 3.4 0 00-3.3 4.6L2.8 11.6l1.7 1.7 4.4-4.4a3.4 3.4 0 004.5-4.3L11.3 6.7 9.4 4.8l2.1-2.1z",
    terminal: "M2.5 3.5h11v9h-11zM5 6.5l2 1.7-2 1.7M8.5 10h2.5",
    copy: "M5.5 5.5h7v8h-7zM3.5 10.5v-8h7",
    search: "M7 3a4 4 0 100 8 4 4 0 000-8zM10 10l3.5 3.5",
    menu: "M3 5h10M3 8h10M3 11h10",
    sun: "M8 5a3 3 0 100 6 3 3 0 000-6zM8 1.5v1.5M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M12.6 3.4l-1 1M4.4 11.6l-1 1",
    moon: "M13 9.5A5.5 5.5 0 116.5 3 4.5 4.5 0 0013 9.5z",
    auto: "M8 2.5a5.5 5.5 0 100 11zM8 2.5a5.5 5.5 0 010 11",
    down: "M4 6l4 4 4-4",
    up: "M4 10l4-4 4 4",
    plus: "M8 3v10M3 8h10",
    columns: "M2.5 3.5h11v9h-11zM6.2 3.5v9M9.8 3.5v9",
    user: "M8 3a2.5 2.5 0 100 5 2.5 2.5 0 000-5zM3 13.5a5 5 0 0110 0",
    refresh: "M13 8a5 5 0 11-1.5-3.6M13 2.5v2.6h-2.6",
} as const;

export type IconName = keyof typeof PATHS;

/** Shows a picture beside a word: it says nothing to a screen reader. */
export function Icon({ name }: { name: IconName }): JSX.Element {
    return (
        <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
            <path d={PATHS[name]} />
        </svg>
    );
}
