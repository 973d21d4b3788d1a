/** Menus of actions, used with arrow keys; what may not be done is in them with the reason. */

import type { ComponentChildren, JSX } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";

import { Icon } from "./icon";
import { keepInView } from "./inview";

export interface MenuItem {
    text: string;
    run: () => void;
    /** Why it cannot be used now. */
    disabled?: string | null;
    checked?: boolean;
    danger?: boolean;
    /** The letter that does the same. */
    key?: string;
}

interface MenuProps {
    label: ComponentChildren;
    items: MenuItem[];
    /** What a screen reader says instead of the label. */
    title?: string;
    class?: string;
    /** Whether the menu stays when an item is chosen: for choices that are made in a row. */
    stays?: boolean;
}

const MOVES: Record<string, (at: number, last: number) => number> = {
    ArrowDown: (at, last) => (at >= last ? 0 : at + 1),
    ArrowUp: (at, last) => (at <= 0 ? last : at - 1),
    Home: () => 0,
    End: (_at, last) => last,
};

/** Shows a button that opens a menu. */
export function Menu({ label, items, title, class: name = "button", stays = false }: MenuProps): JSX.Element {
    const [open, setOpen] = useState(false);
    const box = useRef<HTMLDivElement>(null);
    const button = useRef<HTMLButtonElement>(null);
    const id = useId();

    useLayoutEffect(() => {
        if (!open) return;
        const end = keepInView(box.current?.querySelector<HTMLElement>("[role=menu]"));
        list(box.current)[0]?.focus();
        const close = (event: Event): void => {
            if (event.target instanceof Node && !box.current?.contains(event.target)) setOpen(false);
        };
        document.addEventListener("pointerdown", close);
        return () => {
            end();
            document.removeEventListener("pointerdown", close);
        };
    }, [open]);

    const shut = (): void => {
        setOpen(false);
        button.current?.focus();
    };
    const choose = (item: MenuItem): void => {
        if (item.disabled) return;
        if (!stays) shut();
        item.run();
    };
    return (
        <div
            class="menu"
            ref={box}
            onKeyDown={(event) => open && steer(event, box.current, shut)}
            onFocusOut={(event) => {
                if (event.relatedTarget instanceof Node && !box.current?.contains(event.relatedTarget)) setOpen(false);
            }}
        >
            <button
                type="button"
                ref={button}
                class={name}
                aria-haspopup="menu"
                aria-expanded={open}
                aria-controls={open ? id : undefined}
                aria-label={title}
                onClick={() => setOpen(!open)}
            >
                {label}
                <Icon name="down" />
            </button>
            {open && (
                <div role="menu" id={id} class="menu-list" aria-label={title ?? "Actions"}>
                    {items.map((item) => (
                        <button
                            type="button"
                            key={item.text}
                            role={item.checked === undefined ? "menuitem" : "menuitemcheckbox"}
                            aria-checked={item.checked}
                            aria-disabled={Boolean(item.disabled)}
                            tabIndex={-1}
                            class={item.danger ? "menu-item menu-danger" : "menu-item"}
                            onClick={() => choose(item)}
                        >
                            <span class="menu-text">
                                {item.text}
                                {item.disabled && <span class="menu-reason">{item.disabled}</span>}
                            </span>
                            {item.checked && <Icon name="check" />}
                            {item.key && <kbd>{item.key}</kbd>}
                        </button>
                    ))}
                </div>
            )}
        </div>
    );
}

function list(box: HTMLElement | null): HTMLElement[] {
    return box ? [...box.querySelectorAll<HTMLElement>("[role^=menuitem]")] : [];
}

function steer(event: KeyboardEvent, box: HTMLElement | null, shut: () => void): void {
    const items = list(box);
    const at = items.findIndex((item) => item === document.activeElement);
    const move = MOVES[event.key];
    if (move) items[move(at, items.length - 1)]?.focus();
    else if (event.key === "Escape") shut();
    else if (event.key.length === 1 && /\w/.test(event.key)) {
        const after = [...items.slice(at + 1), ...items.slice(0, at + 1)];
        after.find((item) => item.textContent?.toLowerCase().startsWith(event.key.toLowerCase()))?.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
}
