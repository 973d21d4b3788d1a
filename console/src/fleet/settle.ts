/** A filter while it is typed: what is sent of a term that is not complete yet. */

import type { FilterLanguage } from "../api/types";

/** Return where the term under the cursor begins and ends; blanks inside quotes separate nothing. */
export function findTerm(text: string, cursor: number): [number, number] {
    let [begin, quoted] = [0, false];
    for (let at = 0; at < text.length; at += 1) {
        if (text[at] === '"') quoted = !quoted;
        if (!quoted && /\s/.test(text[at] ?? "")) {
            if (at >= cursor) return [begin, at];
            begin = at + 1;
        }
    }
    return [begin, text.length];
}

const FLAGS = new Set(["yes", "no"]);
const SPAN = /^[<>](\d+[smhdw])+$/;

function blur(word: string): string {
    return word.toLowerCase().replace(/[-_]/g, " ");
}

/** Return what to send of a term that may go on: its beginning as a pattern, or nothing while it means nothing. */
function settleTerm(term: string, language: FilterLanguage): string {
    const [, name = "", values = ""] = /^-?(\w+):(.*)$/s.exec(term) ?? [];
    const key = language.keys.find((one) => one.key === name);
    if (!key) return term;
    const last = values.slice(values.lastIndexOf(",") + 1);
    const before = term.slice(0, term.length - last.length);
    const without = before.endsWith(",") ? before.slice(0, -1) : "";
    if (last === "" || (last.match(/"/g)?.length ?? 0) % 2) return without;
    if (key.key === "since") return SPAN.test(last) ? term : without;
    const known = key.values.map((one) => blur(one.value));
    const sought = blur(last.replaceAll('"', ""));
    if (last.endsWith("*") || known.includes(sought) || !known.some((value) => value.startsWith(sought))) return term;
    if (known.every((value) => FLAGS.has(value))) return without;
    return last.endsWith('"') ? term : `${term}*`;
}

/**
 * Return a filter as it is sent while the term under the cursor is typed.
 *
 * @param language null: it is not known yet, and everything is sent as it is.
 */
export function settle(text: string, cursor: number, language: FilterLanguage | null): string {
    const [begin, end] = findTerm(text, cursor);
    if (!language || cursor !== end) return text.trim();
    return `${text.slice(0, begin)}${settleTerm(text.slice(begin, end), language)}${text.slice(end)}`.trim();
}
