/** More of a list whose latest entries are shown. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

interface OlderProps {
    /** Whether there are older entries. */
    isThere: boolean;
    show: () => void;
    text: string;
}

/** Shows a button for older entries. Where it was pressed last, words take its place, and the focus from it. */
export function Older({ isThere, show, text }: OlderProps): JSX.Element | null {
    const [wasPressed, setPressed] = useState(false);
    const end = useRef<HTMLParagraphElement>(null);
    const isEnd = wasPressed && !isThere;
    useEffect(() => {
        if (isEnd && document.activeElement === document.body) end.current?.focus({ preventScroll: true });
    }, [isEnd]);
    if (isEnd) {
        return (
            <p class="group-more muted" ref={end} tabIndex={-1}>
                There are no older ones.
            </p>
        );
    }
    if (!isThere) return null;
    const press = (): void => {
        setPressed(true);
        show();
    };
    return (
        <p class="group-more">
            <button type="button" class="button button-small" onClick={press}>
                {text}
            </button>
        </p>
    );
}
