/** The address bar as a signal: paths below /console, and their query. */

import { computed, signal } from "@preact/signals";

import { CONSOLE } from "./paths";

const href = signal(location.href);

export const path = computed(() => {
    const { pathname } = new URL(href.value);
    const below = pathname.startsWith(CONSOLE) ? pathname.slice(CONSOLE.length) : "/";
    return below.replace(/\/+$/, "") || "/";
});

export const query = computed(() => new URL(href.value).searchParams);

/** Return the address of a page: `to` begins with a slash and may have a query. */
export function address(to: string): string {
    return CONSOLE + to;
}

const guards = new Set<() => boolean>();

/**
 * Have a question asked before the user leaves what is shown now; the result ends that.
 *
 * @param ask returns whether the user may leave.
 */
export function guardLeave(ask: () => boolean): () => void {
    guards.add(ask);
    return () => guards.delete(ask);
}

function mayLeave(): boolean {
    return [...guards].every((ask) => ask());
}

/** The place of the entry in the history of this tab, by which the way back to it is known. */
let place = 0;

/** Whether the next entry is one that was come back to because the user stays. */
let isRestoring = false;

function placeOf(state: unknown): number | null {
    const found = typeof state === "object" && state !== null && "place" in state ? state.place : null;
    return typeof found === "number" ? found : null;
}

/** Show another page, or change the query of this one, unless the user stays. */
export function navigate(to: string, { replace = false } = {}): void {
    const next = address(to);
    const staysHere = replace && new URL(next, location.href).pathname === location.pathname;
    if (!staysHere && !mayLeave()) return;
    if (replace) history.replaceState({ place }, "", next);
    else {
        place += 1;
        history.pushState({ place }, "", next);
    }
    const before = path.value;
    href.value = location.href;
    if (path.value !== before) scrollTo(0, 0);
}

/** Change some parameters of this page's query; an empty value removes one. */
export function setQuery(values: Record<string, string>, { replace = true } = {}): void {
    const next = new URLSearchParams(query.value);
    for (const [name, value] of Object.entries(values)) {
        if (value) next.set(name, value);
        else next.delete(name);
    }
    const text = next.toString();
    navigate(path.value + (text ? `?${text}` : ""), { replace });
}

/** Return the variable parts of a path if it has the form of a pattern (`/nodes/:node`). */
export function match(pattern: string, given: string): Record<string, string> | null {
    const [expected, parts] = [pattern.split("/"), given.split("/")];
    if (expected.length !== parts.length) return null;
    const found: Record<string, string> = {};
    for (const [at, name] of expected.entries()) {
        const value = parts[at] ?? "";
        if (name.startsWith(":")) found[name.slice(1)] = decode(value);
        else if (name !== value) return null;
    }
    return found;
}

/** Return a part of a path as it was before it was encoded; one that was typed, `100%`, may never have been. */
function decode(text: string): string {
    try {
        return decodeURIComponent(text);
    } catch {
        return text;
    }
}

/** The browser has gone to another entry of its history; go back to where the user was if that is not to be left. */
function follow({ state }: { state: unknown }): void {
    const to = placeOf(state);
    if (isRestoring) {
        isRestoring = false;
        return;
    }
    if (to === null) {
        // An entry that was not made here: a link within the page (#main).
        place += 1;
        history.replaceState({ place }, "");
    } else if (to !== place && !mayLeave()) {
        isRestoring = true;
        history.go(place - to);
        return;
    } else place = to;
    href.value = location.href;
}

/** Follow links and the buttons of the browser. */
export function startRouter(): void {
    place = placeOf(history.state) ?? 0;
    history.replaceState({ ...(history.state as object | null), place }, "");
    addEventListener("popstate", follow);
    document.addEventListener("click", (event) => {
        if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
        const link = event.target instanceof Element ? event.target.closest("a") : null;
        if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
        if (!link.pathname.startsWith(`${CONSOLE}/`) || link.pathname.startsWith(`${CONSOLE}/assets/`)) return;
        if (link.hash && link.pathname === location.pathname) return;
        event.preventDefault();
        navigate(link.pathname.slice(CONSOLE.length) + link.search);
    });
}
