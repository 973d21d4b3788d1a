/** What a node is: its power, who works on it, whom it belongs to, and who keeps it in maintenance. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { Action, useReason } from "../components/action";
import { CopyButton } from "../components/copy";
import { Fact } from "../components/fact";
import { Loaded } from "../components/loading";
import { PowerBadge } from "../components/state";
import { Time } from "../components/time";
import { ofNode, useLive, type Resource } from "../live/resource";
import { part } from "../paths";
import { address } from "../router";
import { ReleaseDialog } from "./release";
import type { Explanation, Hold, NodeDetail } from "./types";

const HOLDERS = new Set(["conductor", "dead conductor"]); // kinds of explanations that are about the lock

const RELEASE = "baremetal:node:clear_maintenance";

const SCOPES: Record<Hold["scope"], string> = {
    all: "nothing is done with it",
    provision: "nothing is provisioned",
    sync: "its power is not read",
};

interface FactsProps {
    node: NodeDetail;
    explanation: Resource<Explanation>;
}

/** Shows the facts. */
export function FactsPanel({ node, explanation }: FactsProps): JSX.Element {
    return (
        <section class="panel" aria-labelledby="node-facts">
            <div class="panel-head">
                <h2 id="node-facts">Facts</h2>
            </div>
            <dl class="facts facts-short panel-body">
                <Fact title="Power">
                    <PowerBadge state={node.power_state} />
                    {node.target_power_state && ` to ${node.target_power_state}`}
                </Fact>
                {node.target_provision_state && <Fact title="Target">{node.target_provision_state}</Fact>}
                <Fact title="Lock">
                    <Lock node={node} explanation={explanation.data.value} />
                </Fact>
                <Fact title="Conductor">
                    {node.conductor ?? "none serves it"}
                    {node.conductor_group && <span class="muted"> of group {node.conductor_group}</span>}
                </Fact>
                <Fact title="Instance">
                    {node.instance_name} {node.instance_uuid ? <code>{node.instance_uuid}</code> : !node.instance_name && "none"}
                </Fact>
                <Fact title="Driver">
                    {node.driver}
                    {node.resource_class && <span class="muted"> of class {node.resource_class}</span>}
                </Fact>
                <Belongs node={node} />
                <Fact title="Maintenance">
                    <Holds node={node} />
                </Fact>
            </dl>
        </section>
    );
}

function Lock({ node, explanation }: { node: NodeDetail; explanation: Explanation | null }): JSX.Element {
    const holder = explanation ? explanation.conductor : node.reservation; // the explanation is the later answer
    if (!holder) return <>not locked</>;
    const why = explanation && HOLDERS.has(explanation.kind) ? explanation : null;
    return (
        <>
            {holder}
            {why && <span class="muted">: {why.waits_for}</span>}
            {why?.since && (
                <span class="muted">
                    {", since "}
                    <Time at={why.since} both />
                </span>
            )}
        </>
    );
}

function Belongs({ node }: { node: NodeDetail }): JSX.Element {
    return (
        <>
            {node.owner && <Fact title="Owner">{node.owner}</Fact>}
            {node.lessee && <Fact title="Lessee">{node.lessee}</Fact>}
            {node.parent_node && (
                <Fact title="Part of">
                    <a href={address(`/nodes/${part(node.parent_node)}`)}>{node.parent_node}</a>
                </Fact>
            )}
            {node.protected && <Fact title="Protected">{node.protected_reason ?? "no reason given"}</Fact>}
            {node.retired && <Fact title="Retired">{node.retired_reason ?? "no reason given"}</Fact>}
        </>
    );
}

function Holds({ node }: { node: NodeDetail }): JSX.Element {
    const found = useLive<{ holds: Hold[] }>(`/ingot/v1/nodes/${part(node.uuid)}/maintenance`, ofNode(node.uuid));
    return (
        <Loaded of={found}>
            {({ holds }) =>
                holds.length === 0 ? (
                    "none"
                ) : (
                    <ul class="holds">
                        {holds.map((hold) => (
                            <HoldRow key={hold.name} node={node} hold={hold} others={holds.length - 1} done={found.reload} />
                        ))}
                    </ul>
                )
            }
        </Loaded>
    );
}

interface HoldProps {
    node: NodeDetail;
    hold: Hold;
    others: number;
    done: () => void;
}

function HoldRow({ node, hold, others, done }: HoldProps): JSX.Element {
    const [isAsked, setAsked] = useState(false);
    const refusal = useReason(node.uuid)(RELEASE);
    const { name, scope, reason, since, user, project, fault, conductor } = hold;
    const by = fault ? `fault ${fault}${conductor ? `, found by ${conductor}` : ""}` : (user ?? "a user who is not known");
    return (
        <li>
            <strong>{by}</strong>
            {project && <span class="muted"> of project {project}</span>}
            {!name.includes(":") && !fault && <code> {name}</code>}
            {": "}
            {reason ?? "no reason given"}
            <span class="muted">
                {" "}
                ({SCOPES[scope]}
                {since && ", since "}
                <Time at={since} both />)
            </span>{" "}
            <Action
                class="button button-small"
                reason={refusal}
                label={`Release the hold of ${by}`}
                run={() => setAsked(true)}
            >
                Release…
            </Action>
            {isAsked && (
                <ReleaseDialog node={node} hold={hold} by={by} others={others} close={() => setAsked(false)} done={done} />
            )}
        </li>
    );
}

/** Shows the UUID of a node, to be copied. */
export function Uuid({ node }: { node: NodeDetail }): JSX.Element {
    return (
        <p class="node-uuid">
            <code>{node.uuid}</code>
            <CopyButton text={node.uuid} of="the UUID" />
            {node.description && <span class="muted">{node.description}</span>}
        </p>
    );
}
