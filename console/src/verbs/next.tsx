/** The verb that the server names as the next action for a node. */

import type { JSX } from "preact";

import type { TriageNode } from "../api/types";
import { Action, useReason } from "../components/action";
import { openVerb, type VerbNode } from "./request";
import { findVerb, refusalIn, verbOf } from "./verbs";

interface NextButtonProps {
    node: VerbNode;
    next: TriageNode["next"];
    /**
     * Whether the server is asked what the user may do with this very node. Lists do not ask for each of theirs: the
     * dialog does when it opens, and shows a refusal.
     */
    isAsked?: boolean;
}

/** Shows the next action as a button, if a verb does it. */
export function NextButton({ node, next, isAsked = false }: NextButtonProps): JSX.Element | null {
    const name = next.action && findVerb(next.action.kind, next.action.target);
    const target = { uuid: node.uuid, name: node.name, provision_state: node.provision_state ?? null };
    const reasonFor = useReason(isAsked ? node.uuid : null);
    if (!name) return null;
    const { rule, text } = verbOf(name);
    return (
        <Action
            class="button button-small"
            reason={reasonFor(rule) ?? refusalIn(name, target.provision_state)}
            label={`${text} ${node.name ?? node.uuid}`}
            run={() => openVerb({ verb: name, nodes: [target] })}
        >
            {text}
        </Action>
    );
}
