/** Which nodes a deploy template or runbook is for: those that have its traits, as they are typed. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import type { Fleet } from "../api/types";
import { Loaded } from "../components/loading";
import { formatNumber } from "../components/number";
import { StateBadge } from "../components/state";
import { useLive, type Resource } from "../live/resource";
import { part } from "../paths";
import { address } from "../router";

const SHOWN = 20;
const TYPED_MS = 300; // after the last letter of a trait

export interface Matching {
    traits: string[];
    nodes: Resource<Fleet>;
}

function filterOf(traits: string[]): string {
    return `trait:${traits.join(",")}`;
}

/** Return the nodes that have one of some traits, read some time after the last letter. */
export function useMatching(traits: string[]): Matching {
    const text = traits.join(" ");
    const [settled, settle] = useState(text);
    useEffect(() => {
        const timer = setTimeout(() => settle(text), TYPED_MS);
        return () => clearTimeout(timer);
    }, [text]);
    const asked = settled.split(" ").filter(Boolean);
    const sent = new URLSearchParams({ filter: filterOf(asked), sort: "name", limit: `${SHOWN}` });
    const nodes = useLive<Fleet>(asked.length ? `/ingot/v1/fleet?${sent}` : null, () => false);
    return { traits: asked, nodes };
}

interface MatchingProps {
    of: Matching;
    /** Whether the traits are saved: else the nodes are those that it would be for. */
    isSaved: boolean;
}

/** Shows the nodes. */
export function MatchingNodes({ of: { traits, nodes }, isSaved }: MatchingProps): JSX.Element {
    const count = traits.length ? nodes.data.value?.matching : 0;
    return (
        <section class="panel" aria-labelledby="matching">
            <div class="panel-head">
                <h3 id="matching">Nodes that it {isSaved ? "is" : "would be"} for</h3>
                {count !== undefined && <span class="count">{formatNumber(count)}</span>}
            </div>
            {traits.length === 0 ? (
                <p class="panel-body muted">It has no traits, so it is for no node.</p>
            ) : (
                <Loaded of={nodes}>{(found) => <Nodes of={found} traits={traits} />}</Loaded>
            )}
        </section>
    );
}

function Nodes({ of: found, traits }: { of: Fleet; traits: string[] }): JSX.Element {
    if (!found.matching) return <p class="panel-body muted">No node has the trait {traits.join(" or ")}.</p>;
    return (
        <>
            <ul class="matching">
                {found.nodes.map((node) => (
                    <li key={node.uuid}>
                        <a href={address(`/nodes/${part(node.name ?? node.uuid)}`)}>{node.name ?? node.uuid}</a>
                        <StateBadge state={node.provision_state} />
                        <span class="muted">{node.driver}</span>
                        {node.maintenance && <span class="note-waiting">maintenance</span>}
                    </li>
                ))}
            </ul>
            <p class="panel-body">
                <a href={address(`/fleet?filter=${part(filterOf(traits))}`)}>
                    {found.matching > found.nodes.length ? `All ${formatNumber(found.matching)} in the fleet` : "In the fleet"}
                </a>
            </p>
        </>
    );
}
