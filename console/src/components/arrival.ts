/** Where the focus goes when another page is shown: to its title, which a screen reader then reads. */

import { useEffect, useRef } from "preact/hooks";

const PATIENCE_MS = 10_000; // for a title that comes with an answer

function isFree(main: HTMLElement): boolean {
    const focused = document.activeElement;
    return !document.querySelector("dialog[open]") && (focused === main || !main.contains(focused));
}

function focusTitle(main: HTMLElement): boolean {
    const title = main.querySelector("h1");
    if (!title) return false;
    title.tabIndex = -1;
    title.focus({ preventScroll: true });
    return true;
}

/** Focus the title of a page that has come with another path, unless the page has focused something else itself. */
export function useArrival(path: string): void {
    const before = useRef(path);
    useEffect(() => {
        const main = document.getElementById("main");
        if (path === before.current || !main) return undefined;
        before.current = path;
        if (!isFree(main) || focusTitle(main)) return undefined;
        main.focus({ preventScroll: true });
        const observer = new MutationObserver(() => {
            if (!isFree(main) || focusTitle(main)) observer.disconnect();
        });
        observer.observe(main, { childList: true, subtree: true });
        const timer = setTimeout(() => observer.disconnect(), PATIENCE_MS);
        return () => {
            observer.disconnect();
            clearTimeout(timer);
        };
    }, [path]);
}
