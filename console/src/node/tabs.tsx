/** Tabs: arrow keys move among them, Enter or Space opens one; Tab goes on to what it shows. */

import type { JSX } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";

export interface Tab {
    name: string;
    title: string;
    show: () => JSX.Element;
}

interface TabsProps {
    label: string;
    tabs: Tab[];
    chosen: Tab;
    choose: (tab: Tab) => void;
}

const MOVES: Record<string, (at: number, last: number) => number> = {
    ArrowRight: (at, last) => (at >= last ? 0 : at + 1),
    ArrowLeft: (at, last) => (at <= 0 ? last : at - 1),
    Home: () => 0,
    End: (_at, last) => last,
};

function steer(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
    const all = [...event.currentTarget.querySelectorAll<HTMLElement>("[role=tab]")];
    const to = MOVES[event.key]?.(
        all.findIndex((one) => one === document.activeElement),
        all.length - 1,
    );
    if (to === undefined) return;
    all[to]?.focus();
    event.preventDefault();
}

/** Scroll a row of tabs, and nothing else, so that the chosen one can be seen. */
function show(row: HTMLElement): void {
    const tab = row.querySelector("[aria-selected=true]")?.getBoundingClientRect();
    const box = row.getBoundingClientRect();
    if (tab) row.scrollLeft += Math.max(0, tab.right - box.right) + Math.min(0, tab.left - box.left);
}

/** Shows tabs and what the chosen one has. */
export function Tabs({ label, tabs, chosen, choose }: TabsProps): JSX.Element {
    const id = useId();
    const row = useRef<HTMLDivElement>(null);
    useLayoutEffect(() => {
        const element = row.current;
        if (!element) return undefined;
        const observer = new ResizeObserver(() => show(element));
        observer.observe(element); // which calls it at once, too
        return () => observer.disconnect();
    }, [chosen.name]);
    return (
        <>
            <div ref={row} role="tablist" aria-label={label} class="tabs node-tabs" onKeyDown={steer}>
                {tabs.map((tab) => (
                    <button
                        type="button"
                        key={tab.name}
                        role="tab"
                        id={`${id}-${tab.name}`}
                        aria-selected={tab === chosen}
                        aria-controls={tab === chosen ? `${id}-panel` : undefined}
                        tabIndex={tab === chosen ? 0 : -1}
                        onClick={() => choose(tab)}
                    >
                        {tab.title}
                    </button>
                ))}
            </div>
            <div
                key={chosen.name}
                role="tabpanel"
                id={`${id}-panel`}
                class="node-panel"
                aria-labelledby={`${id}-${chosen.name}`}
                tabIndex={0}
            >
                {chosen.show()}
            </div>
        </>
    );
}
