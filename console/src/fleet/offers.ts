/** What a term of the filter can become: keys, and their values. */

import type { FilterLanguage } from "../api/types";
import { quoteValue } from "./quote";

export interface Offer {
    /** What the term becomes. */
    term: string;
    about: string;
    /** Whether the term goes on after it: a key needs a value. */
    isKey: boolean;
}

/** Return what a term can become. */
export function offerFor(term: string, language: FilterLanguage | null): Offer[] {
    if (!language) return [];
    const [, minus = "", body = ""] = /^(-?)(.*)$/s.exec(term) ?? [];
    const colon = body.indexOf(":");
    if (colon < 0) {
        const fitting = language.keys.filter((one) => one.key.startsWith(body.toLowerCase()));
        return fitting.map((one) => ({ term: `${minus}${one.key}:`, about: one.about, isKey: true }));
    }
    const key = language.keys.find((one) => one.key === body.slice(0, colon));
    const values = body.slice(colon + 1);
    const before = values.slice(0, values.lastIndexOf(",") + 1);
    const begun = values.slice(before.length).replaceAll('"', "").toLowerCase();
    const begins = (value: string): number => Number(value.toLowerCase().startsWith(begun));
    return [...(key?.values ?? [])]
        .sort((one, other) => begins(other.value) - begins(one.value) || (other.nodes ?? 0) - (one.nodes ?? 0))
        .filter((one) => one.value !== "" && one.value.toLowerCase().includes(begun) && one.value.toLowerCase() !== begun)
        .map((one) => ({
            term: `${minus}${body.slice(0, colon + 1)}${before}${quoteValue(one.value)}`,
            about: one.nodes === null ? "" : String(one.nodes),
            isKey: false,
        }));
}
