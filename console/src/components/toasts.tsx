/** Short messages at the edge of the screen; errors stay until they are closed. */

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useLayoutEffect, useMemo } from "preact/hooks";

import { explain } from "../api/client";
import { Icon } from "./icon";

type Tone = "good" | "bad";

interface Toast {
    id: number;
    text: string;
    tone: Tone;
}

const SHOWN_MS = 6000;

const toasts = signal<Toast[]>([]);
let latest = 0;

/** Show a message. */
export function toast(text: string, tone: Tone = "good"): void {
    const id = ++latest;
    toasts.value = [...toasts.value.filter((one) => one.text !== text), { id, text, tone }].slice(-4);
    if (tone === "good") setTimeout(() => close(id), SHOWN_MS);
}

/** Show what an error says. */
export function toastError(error: unknown): void {
    toast(explain(error), "bad");
}

function close(id: number): void {
    toasts.value = toasts.value.filter((one) => one.id !== id);
}

/** Dialogs that are open, the topmost last: whatever is outside of it can be neither read nor clicked. */
const dialogs = signal<symbol[]>([]);

/** Shows the messages while no dialog is open; there is one of these. */
export function Toasts(): JSX.Element {
    return <Messages isShown={dialogs.value.length === 0} />;
}

/** Shows the messages inside a dialog, as long as it is the topmost. */
export function DialogToasts(): JSX.Element {
    const own = useMemo(() => Symbol(), []);
    useLayoutEffect(() => {
        dialogs.value = [...dialogs.peek(), own];
        return () => {
            dialogs.value = dialogs.peek().filter((one) => one !== own);
        };
    }, [own]);
    return <Messages isShown={dialogs.value.at(-1) === own} />;
}

function Messages({ isShown }: { isShown: boolean }): JSX.Element {
    return (
        <div class="toasts" role="status" aria-live="polite">
            {isShown &&
                toasts.value.map((one) => (
                    <div key={one.id} class={`toast toast-${one.tone}`}>
                        <Icon name={one.tone === "bad" ? "alert" : "check"} />
                        <span>{one.text}</span>
                        <button type="button" class="button-plain" aria-label="Close message" onClick={() => close(one.id)}>
                            <Icon name="cross" />
                        </button>
                    </div>
                ))}
        </div>
    );
}
