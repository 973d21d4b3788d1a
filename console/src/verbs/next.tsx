/** The verb that the server names as the next action for a node. */

import type { JSX } from "preact";

import type { TriageNode } from "../api/types";
import { useRefusal } from "./menu";
import { openVerb, type VerbNode } from "./request";
import { findVerb, verbOf } from "./verbs";

interface NextButtonProps {
    node: VerbNode;
    next: TriageNode["next"];
}

/** Shows the next action as a button, if a verb does it. */
export function NextButton({ node, next }: NextButtonProps): JSX.Element | null {
    const name = next.action && findVerb(next.action.kind, next.action.target);
    const target = { uuid: node.uuid, name: node.name, provision_state: node.provision_state ?? null };
    const reason = useRefusal({ nodes: [target] })(name ?? "manage");
    if (!name) return null;
    return (
        <button
            type="button"
            class="button button-small"
            aria-disabled={reason !== null}
            title={reason ?? undefined}
            aria-label={`${verbOf(name).text} ${node.name ?? node.uuid}`}
            onClick={() => reason === null && openVerb({ verb: name, nodes: [target] })}
        >
            {verbOf(name).text}
        </button>
    );
}
