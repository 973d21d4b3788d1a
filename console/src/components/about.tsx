/** What this console is, and whose work is in it. */

import { signal } from "@preact/signals";
import type { JSX } from "preact";

import { session } from "../api/session";
import { address } from "../router";
import { Dialog } from "./dialog";

const isOpen = signal(false);

export function showAbout(): void {
    isOpen.value = true;
}

/** Shows the dialog while it is open; there is one of these. */
export function AboutDialog(): JSX.Element | null {
    if (!isOpen.value) return null;
    return (
        <Dialog title="About" onClose={() => (isOpen.value = false)}>
            <p>The console of Ingot {session.value?.release}.</p>
            <p>
                It contains software of others:{" "}
                <a href={address("/THIRD-PARTY.txt")} target="_blank" rel="noreferrer">
                    their licences
                </a>
                .
            </p>
        </Dialog>
    );
}
