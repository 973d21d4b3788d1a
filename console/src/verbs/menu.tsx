/** A menu of verbs: those that nodes cannot do now, and those that the user may not request, are in it with why. */

import type { JSX } from "preact";

import { usePermission } from "../api/permissions";
import { Menu, type MenuItem } from "../components/menu";
import { openVerb, type VerbRequest } from "./request";
import { refusalIn, verbOf, VERB_NAMES, type VerbName } from "./verbs";

interface VerbMenuProps {
    /** For what: without the verb, which the menu chooses. */
    targets: Omit<VerbRequest, "verb">;
    label?: string;
}

/** Return why a verb cannot be requested for what is selected; null: it can. */
export function useRefusal(targets: Omit<VerbRequest, "verb">): (name: VerbName) => string | null {
    const one = !targets.matching && targets.nodes?.length === 1 ? (targets.nodes[0] ?? null) : null;
    const allows = usePermission(one?.uuid ?? null);
    return (name) => {
        const { allowed, reason } = allows(verbOf(name).rule);
        if (!allowed) return reason;
        return one ? refusalIn(name, one.provision_state ?? null) : null;
    };
}

/** Shows a button with the verbs. */
export function VerbMenu({ targets, label = "Verbs" }: VerbMenuProps): JSX.Element {
    const refusal = useRefusal(targets);
    const items = VERB_NAMES.map((name): MenuItem => {
        const verb = verbOf(name);
        return {
            text: verb.text,
            run: () => openVerb({ ...targets, verb: name }),
            disabled: refusal(name),
            ...(verb.danger ? { danger: true } : {}),
            ...(verb.key ? { key: verb.key } : {}),
        };
    });
    items.sort((a, b) => Number(Boolean(a.disabled)) - Number(Boolean(b.disabled)));
    return <Menu label={label} items={items} />;
}
