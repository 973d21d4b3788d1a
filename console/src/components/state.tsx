/** Provision and power states: a word, a color and a shape, as color alone says too little. */

import type { JSX } from "preact";

import { Icon, type IconName } from "./icon";

export type Tone = "good" | "busy" | "waiting" | "bad" | "idle";

const ICONS: Record<Tone, IconName> = { good: "check", busy: "gear", waiting: "clock", bad: "alert", idle: "circle" };

const GOOD = new Set(["active", "available", "rescue"]);
const IDLE = new Set(["enroll", "manageable"]);

/** Return how a provision state is to be taken. */
export function toneOf(state: string | null): Tone {
    if (state === null || IDLE.has(state)) return "idle";
    if (GOOD.has(state)) return "good";
    if (/fail|error/.test(state)) return "bad";
    return /wait|hold/.test(state) ? "waiting" : "busy";
}

/** Shows a provision state, and where it is going. */
export function StateBadge({ state, target }: { state: string | null; target?: string | null }): JSX.Element {
    const tone = toneOf(state);
    return (
        <span class={`state state-${tone}`}>
            <Icon name={ICONS[tone]} />
            <span class="state-name">{state ?? "unknown"}</span>
            {target && target !== state && <span class="state-target">to {target}</span>}
        </span>
    );
}

/** Shows a state of something else than a node. */
export function ToneBadge({ tone, text }: { tone: Tone; text: string }): JSX.Element {
    return (
        <span class={`state state-${tone}`}>
            <Icon name={ICONS[tone]} />
            <span class="state-name">{text}</span>
        </span>
    );
}

/** Shows whether a machine has power. */
export function PowerBadge({ state }: { state: string | null }): JSX.Element {
    const on = state === "power on";
    const text = state === null ? "unknown" : state.replace(/^power /, "");
    const tone = state === "error" ? "bad" : state === null ? "unknown" : on ? "on" : "off";
    return <span class={`power power-${tone}`}>{text}</span>;
}
