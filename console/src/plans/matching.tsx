/** Which nodes a deploy template or runbook is for: those that have its traits. */

import type { JSX } from "preact";

import { Loaded } from "../components/loading";
import { formatNumber } from "../components/number";
import { StateBadge } from "../components/state";
import type { Resource } from "../live/resource";
import { part } from "../paths";
import { address } from "../router";
import type { Matching } from "./kinds";

/** Shows the nodes. */
export function MatchingNodes({ of: matching }: { of: Resource<Matching> }): JSX.Element {
    return (
        <section class="panel" aria-labelledby="matching">
            <div class="panel-head">
                <h3 id="matching">Nodes that it is for</h3>
                {matching.data.value && <span class="count">{formatNumber(matching.data.value.matching)}</span>}
            </div>
            <Loaded of={matching}>{(found) => (found.matching ? <Nodes of={found} /> : <NoNodes traits={found.traits} />)}</Loaded>
        </section>
    );
}

function NoNodes({ traits }: { traits: string[] }): JSX.Element {
    return (
        <p class="panel-body muted">
            {traits.length ? `No node has the trait ${traits.join(" or ")}.` : "It has no traits, so it is for no node."}
        </p>
    );
}

function Nodes({ of: found }: { of: Matching }): JSX.Element {
    const filter = `trait:${found.traits.join(",")}`;
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
                <a href={address(`/fleet?filter=${part(filter)}`)}>
                    {found.matching > found.nodes.length ? `All ${formatNumber(found.matching)} in the fleet` : "In the fleet"}
                </a>
            </p>
        </>
    );
}
