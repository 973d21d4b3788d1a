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

/** Show another page, or change the query of this one, unless the user stays. */
export function navigate(to: string, { replace = false } = {}): void {
    const next = address(to);
    const staysHere = replace && new URL(next, location.href).pathname === location.pathname;
    if (!staysHere && !mayLeave()) return;
    if (replace) history.replaceState(null, "", next);
    else history.pushState(null, "", next);
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
        if (name.startsWith(":")) found[name.slice(1)] = decodeURIComponent(value);
        else if (name !== value) return null;
    }
    return found;
}

/** Follow links and the buttons of the browser. */
export function startRouter(): void {
    addEventListener("popstate", () => {
        if (mayLeave()) href.value = location.href;
        else history.pushState(null, "", href.value);
    });
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
