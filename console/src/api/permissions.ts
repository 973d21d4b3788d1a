/** What the user may do, and why not: the server's policy, asked once for all and once for each node. */

import { signal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { part } from "../paths";
import { get } from "./client";

export interface Permission {
    allowed: boolean;
    reason: string | null;
}

type Rules = Record<string, Permission>;

const UNKNOWN: Permission = { allowed: true, reason: null };
const FRESH_MS = 60_000;

const known = new Map<string, { rules: Signal<Rules | null>; at: number }>();

function find(node: string | null): Signal<Rules | null> {
    const key = node ?? "";
    const entry = known.get(key) ?? { rules: signal<Rules | null>(null), at: 0 };
    known.set(key, entry);
    return entry.rules;
}

function read(node: string | null): void {
    const rules = find(node);
    const entry = known.get(node ?? "");
    if (!entry || Date.now() - entry.at < FRESH_MS) return;
    entry.at = Date.now();
    get<{ rules: Rules }>(`/ingot/v1/permissions${node === null ? "" : `?node=${part(node)}`}`)
        .then((found) => {
            rules.value = found.rules;
        })
        .catch(() => {
            entry.at = 0; // the server decides when the action is tried
        });
}

/**
 * Return whether a rule of policy allows an action, for a node if one is named. Until that is known the answer is yes:
 * the server decides again when the action is requested.
 */
export function usePermission(node: string | null = null): (rule: string) => Permission {
    useEffect(() => read(node), [node]);
    const rules = find(node).value;
    return (rule) => rules?.[rule] ?? UNKNOWN;
}

/** Forget what was asked: a login changes it. */
export function forgetPermissions(): void {
    known.clear();
}
