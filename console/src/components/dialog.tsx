/** Dialogs: the browser's own, which keep the focus inside, close with Escape and give the focus back. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

import { Icon } from "./icon";

interface DialogProps {
    title: ComponentChildren;
    onClose: () => void;
    children: ComponentChildren;
    /** Buttons at the end. */
    actions?: ComponentChildren;
    wide?: boolean;
}

/** Shows a dialog as long as it is rendered. */
export function Dialog({ title, onClose, children, actions, wide = false }: DialogProps): JSX.Element {
    const element = useRef<HTMLDialogElement>(null);
    const heading = useId();
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
                onClose();
            }}
            onClick={(event) => event.target === element.current && onClose()}
        >
            <div class="dialog-box">
                <header class="dialog-head">
                    <h2 id={heading} tabIndex={-1}>
                        {title}
                    </h2>
                    <button type="button" class="button-plain" aria-label="Close" onClick={onClose}>
                        <Icon name="cross" />
                    </button>
                </header>
                <div class="dialog-body">{children}</div>
                {actions && <footer class="dialog-actions">{actions}</footer>}
            </div>
        </dialog>
    );
}

/** Focus the first field, or else the title: the button that the browser would take closes the dialog. */
function focusFirst(dialog: HTMLDialogElement | null): void {
    const fields = dialog?.querySelectorAll<HTMLElement>(".dialog-body :is(input, select, textarea)") ?? [];
    const field = [...fields].find((one) => one.checkVisibility());
    (field ?? dialog?.querySelector("h2"))?.focus();
}
