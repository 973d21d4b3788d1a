/** Copying to the clipboard. */

import type { JSX } from "preact";

import { Icon } from "./icon";
import { toast } from "./toasts";

async function copy(text: string): Promise<void> {
    try {
        await navigator.clipboard.writeText(text);
        toast("Copied.");
    } catch {
        toast("The browser does not let this page copy: select the text instead.", "bad");
    }
}

/** Shows a button that copies a text; `of` says what the text is, where there is more than one such button. */
export function CopyButton({ text, of }: { text: string; of?: string }): JSX.Element {
    return (
        <button
            type="button"
            class="button-plain"
            aria-label={of && `Copy ${of}`}
            title={of && `Copy ${of}`}
            onClick={() => void copy(text)}
        >
            <Icon name="copy" /> {!of && "Copy"}
        </button>
    );
}
