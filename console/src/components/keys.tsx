/** The keyboard: what each screen offers by letter, and the dialog that lists it. */

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { load, save } from "../storage";
import { Dialog } from "./dialog";

export interface Key {
    /** One key (`/`, `d`), or two in a row (`g h`). */
    key: string;
    text: string;
    run: () => void;
}

const WITHIN_MS = 1500; // between the two keys of a pair

const sets = signal<{ name: string; keys: Key[] }[]>([]);
const helpIsOpen = signal(false);

/** Single letters can be turned off: speech input types them by accident. */
const enabled = signal(load("keys", true));

let first = "";
let firstAt = 0;

/** Offer keys while a component is shown. */
export function useKeys(name: string, keys: Key[]): void {
    const latest = useRef(keys);
    latest.current = keys;
    useEffect(() => {
        const set = {
            name,
            get keys() {
                return latest.current;
            },
        };
        sets.value = [...sets.peek(), set];
        return () => {
            sets.value = sets.peek().filter((one) => one !== set);
        };
    }, [name]);
}

export function showKeys(): void {
    helpIsOpen.value = true;
}

function isTyping(target: EventTarget | null): boolean {
    const fields = "input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable], .xterm";
    return target instanceof HTMLElement && target.closest(fields) !== null;
}

/** Listen to the keyboard; called once. */
export function startKeys(): void {
    document.addEventListener("keydown", (event) => {
        if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
        if (document.querySelector("dialog[open]") || !enabled.peek() || event.key.length !== 1) return;
        if (event.target instanceof Element && event.target.closest("[role=menu]")) return;
        const pair = Date.now() - firstAt < WITHIN_MS ? `${first} ${event.key}` : "";
        const all = sets.peek().flatMap((set) => set.keys);
        const found = all.findLast((one) => one.key === pair) ?? all.findLast((one) => one.key === event.key);
        [first, firstAt] = [event.key, Date.now()];
        if (!found) return;
        first = "";
        event.preventDefault();
        found.run();
    });
}

/** Shows all keys that can be used now. */
export function KeysDialog(): JSX.Element | null {
    if (!helpIsOpen.value) return null;
    const toggle = (): void => {
        enabled.value = !enabled.value;
        save("keys", enabled.value);
    };
    return (
        <Dialog title="Keyboard" onClose={() => (helpIsOpen.value = false)}>
            {sets.value.map((set) => (
                <section key={set.name} class="keys">
                    <h3>{set.name}</h3>
                    <dl>
                        {set.keys.map((one) => (
                            <div key={one.key}>
                                <dt>
                                    {one.key.split(" ").map((part) => (
                                        <kbd key={part}>{part}</kbd>
                                    ))}
                                </dt>
                                <dd>{one.text}</dd>
                            </div>
                        ))}
                    </dl>
                </section>
            ))}
            <p class="muted">Tab and arrow keys go everywhere; Escape closes what is open.</p>
            <label class="check">
                <input type="checkbox" checked={enabled.value} onChange={toggle} /> Use these keys
            </label>
        </Dialog>
    );
}
