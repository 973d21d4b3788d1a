/** What the user may do, and why not: the server's policy, asked once for all, and once for a node that is looked at. */

import { signal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { whenConnected } from "../live/feed";
import { part } from "../paths";
import { get } from "./client";

export interface Permission {
    allowed: boolean;
    reason: string | null;
}

type Rules = Record<string, Permission>;

interface Entry {
    rules: Signal<Rules | null>;
    /** When it was asked for. */
    at: number;
    /** Components that show it. */
    users: number;
}

const UNKNOWN: Permission = { allowed: true, reason: null };
const FRESH_MS = 60_000;
const KEPT = 50; // answers that no component shows

const known = new Map<string, Entry>();

function find(node: string | null): Entry {
    const key = node ?? "";
    const entry = known.get(key) ?? { rules: signal<Rules | null>(null), at: 0, users: 0 };
    known.delete(key);
    known.set(key, entry); // the last one was used last
    return entry;
}

function forgetOld(): void {
    const unused = [...known].filter(([, entry]) => entry.users === 0);
    for (const [key] of unused.slice(0, Math.max(0, unused.length - KEPT))) known.delete(key);
}

function read(node: string | null, entry: Entry): void {
    if (Date.now() - entry.at < FRESH_MS) return;
    entry.at = Date.now();
    get<{ rules: Rules }>(`/ingot/v1/permissions${node === null ? "" : `?node=${part(node)}`}`)
        .then((found) => {
            entry.rules.value = found.rules;
        })
        .catch(() => {
            entry.at = 0; // the server decides when the action is tried
        });
}

function use(node: string | null): () => void {
    const entry = find(node);
    entry.users += 1;
    read(node, entry);
    return () => {
        entry.users -= 1;
        forgetOld();
    };
}

/**
 * Return whether a rule of policy allows an action: for a node if one is named, else for the best that the user could
 * find. Until that is known the answer is yes: the server decides again when the action is requested.
 */
export function usePermission(node: string | null = null): (rule: string) => Permission {
    useEffect(() => use(node), [node]);
    const rules = find(node).rules.value;
    return (rule) => {
        const { allowed, reason } = rules?.[rule] ?? UNKNOWN;
        return allowed ? UNKNOWN : { allowed, reason: reason ?? "Your roles do not allow this." };
    };
}

/** Ask again for what is shown, and later for the rest: a login, or a change of the policy, changes it. */
export function renewPermissions(): void {
    for (const [key, entry] of known) {
        entry.at = 0;
        if (entry.users > 0) read(key || null, entry);
    }
}

whenConnected((isAgain) => isAgain && renewPermissions());
