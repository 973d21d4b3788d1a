/** Buttons of what may be refused: disabled with the reason, which a click or a key says aloud. */

import type { ComponentChildren, JSX } from "preact";

import { usePermission } from "../api/permissions";
import { toast } from "./toasts";

interface ActionProps {
    /** Why it cannot be used; null: it can. */
    reason: string | null;
    run: () => void;
    /** What a screen reader says instead of the content. */
    label?: string;
    class?: string;
    /** What it does, where its words do not say all. */
    about?: string;
    children: ComponentChildren;
}

/** Shows a button; one that cannot be used stays reachable, so that its reason is. */
export function Action({ reason, run, label, class: name = "button", about, children }: ActionProps): JSX.Element {
    return (
        <button
            type="button"
            class={name}
            aria-disabled={reason !== null}
            aria-label={label}
            title={reason ?? about}
            onClick={() => (reason === null ? run() : toast(reason, "bad"))}
        >
            {children}
        </button>
    );
}

/** Return why the user may not do what a rule of policy is for, with a node if one is named; null: it is allowed. */
export function useReason(node: string | null = null): (rule: string) => string | null {
    const allows = usePermission(node);
    return (rule) => allows(rule).reason;
}
