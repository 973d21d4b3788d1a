/** Dialogs: the browser's own, which keep the focus inside, close with Escape and give the focus back. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

import { Icon } from "./icon";
import { DialogToasts } from "./toasts";

interface DialogProps {
    title: ComponentChildren;
    onClose: () => void;
    /** Why it cannot be closed now, for what is under way would go on unseen; null: it can. */
    busy?: string | null;
    children: ComponentChildren;
    /** Buttons at the end. */
    actions?: ComponentChildren;
    wide?: boolean;
}

/** Shows a dialog as long as it is rendered. */
export function Dialog({ title, onClose, busy = null, children, actions, wide = false }: DialogProps): JSX.Element {
    const element = useRef<HTMLDialogElement>(null);
    const isTyped = useRef(false); // something was typed or chosen: only an explicit act discards it
    const isPressedOutside = useRef(false);
    const heading = useId();
    const leave = (): void => {
        if (busy === null) onClose();
    };
    useEffect(() => {
        const dialog = element.current;
        const before = document.activeElement;
        dialog?.showModal();
        focusFirst(dialog);
        return () => {
            dialog?.close();
            if (before instanceof HTMLElement && before.isConnected) before.focus();
        };
    }, []);
    return (
        <dialog
            ref={element}
            class={wide ? "dialog dialog-wide" : "dialog"}
            aria-labelledby={heading}
            onCancel={(event) => {
                event.preventDefault();
                leave();
            }}
            onClose={() => {
                // A browser closes a dialog without asking when Escape is pressed again.
                if (!element.current?.isConnected) return;
                if (busy === null) onClose();
                else element.current.showModal();
            }}
            onInput={() => (isTyped.current = true)}
            onPointerDown={(event) => (isPressedOutside.current = event.target === element.current)}
            onClick={(event) => {
                // A text that is selected with the pointer may end outside.
                if (event.target === element.current && isPressedOutside.current && !isTyped.current) leave();
            }}
        >
            <div class="dialog-box">
                <header class="dialog-head">
                    <h2 id={heading} tabIndex={-1}>
                        {title}
                    </h2>
                    <button
                        type="button"
                        class="button-plain"
                        aria-label="Close"
                        aria-disabled={busy !== null}
                        title={busy ?? undefined}
                        onClick={leave}
                    >
                        <Icon name="cross" />
                    </button>
                </header>
                <div class="dialog-body">{children}</div>
                {actions && <footer class="dialog-actions">{actions}</footer>}
            </div>
            <DialogToasts />
        </dialog>
    );
}

/** Focus the first field, or else the title: the button that the browser would take closes the dialog. */
function focusFirst(dialog: HTMLDialogElement | null): void {
    const fields = dialog?.querySelectorAll<HTMLElement>(".dialog-body :is(input, select, textarea)") ?? [];
    const field = [...fields].find((one) => one.checkVisibility());
    (field ?? dialog?.querySelector("h2"))?.focus();
}
