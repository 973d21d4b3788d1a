/** The plan of a verb before it is requested: its steps with arguments, and where each comes from. */

import type { JSX } from "preact";
import { useId } from "preact/hooks";

import { CommandButton, type Command } from "../components/command";
import { Problem } from "../components/loading";
import { part } from "../paths";
import { query, setQuery } from "../router";
import { ArgumentFields, useArguments } from "../verbs/arguments";
import { useRefusal } from "../verbs/menu";
import { PlanView, usePlan } from "../verbs/plan";
import { openVerb } from "../verbs/request";
import type { Body } from "../verbs/targets";
import { refusalIn, verbOf, VERB_NAMES, type VerbName } from "../verbs/verbs";
import type { NodeDetail } from "./types";
import { spellOrigin } from "./words";

const PLANNED = VERB_NAMES.filter((name) => verbOf(name).plan);

/** Return the verb that the address names, or else the first that the node would do without arguments. */
function findChosen(state: string, asked: string | null): VerbName {
    const able = PLANNED.filter((name) => refusalIn(name, state) === null);
    return PLANNED.find((name) => name === asked) ?? able.find((name) => !verbOf(name).needs) ?? able[0] ?? "deploy";
}

/** Shows a choice of verbs, and the plan of the chosen one. */
export function PlanTab({ node }: { node: NodeDetail }): JSX.Element {
    const id = useId();
    const name = findChosen(node.provision_state, query.value.get("verb"));
    return (
        <section class="panel" aria-labelledby={`${id}-title`}>
            <div class="panel-head">
                <h2 id={`${id}-title`}>Plan</h2>
                <label for={id} class="muted">
                    of
                </label>
                <select id={id} class="input plan-verb" value={name} onChange={(event) => setQuery({ verb: event.currentTarget.value })}>
                    {PLANNED.map((one) => (
                        <option key={one} value={one}>
                            {verbOf(one).text}
                            {refusalIn(one, node.provision_state) === null ? "" : " (not in this state)"}
                        </option>
                    ))}
                </select>
            </div>
            <VerbPlan key={name} node={node} name={name} />
        </section>
    );
}

function VerbPlan({ node, name }: { node: NodeDetail; name: VerbName }): JSX.Element {
    const verb = verbOf(name);
    const given = useArguments(verb, {});
    const isWrong = Object.keys(given.wrong).length > 0;
    const target = { uuid: node.uuid, name: node.name, provision_state: node.provision_state };
    const reason = useRefusal({ nodes: [target] })(name);
    return (
        <div class="panel-body stack">
            <p>{verb.about}</p>
            <ArgumentFields verb={verb} {...given} />
            {given.missing && <p class="late">{given.missing}</p>}
            {!given.missing && !isWrong && (
                // What a plan is made of changes with the state and the traits.
                <Steps
                    key={`${node.provision_updated_at} ${node.traits.join()}`}
                    node={node.uuid}
                    flow={verb.plan ?? ""}
                    body={given.body}
                />
            )}
            <div class="plan-end">
                <CommandButton command={commandOf(node, verb.plan ?? "", given.body)} />
                <button
                    type="button"
                    class="button"
                    aria-disabled={reason !== null}
                    title={reason ?? undefined}
                    onClick={() => reason === null && openVerb({ verb: name, nodes: [target], body: given.body })}
                >
                    {verb.text}…
                </button>
                {reason && <span class="muted">{reason}</span>}
            </div>
        </div>
    );
}

function Steps({ node, flow, body }: { node: string; flow: string; body: Body }): JSX.Element {
    const { plan, error } = usePlan(node, flow, body);
    if (error) return <Problem text={error} />;
    if (!plan) return <p class="muted">Loading…</p>;
    const counts = new Map<string, number>();
    for (const { origin } of plan.steps) counts.set(origin, (counts.get(origin) ?? 0) + 1);
    return (
        <>
            <PlanView plan={plan} />
            {counts.size > 0 && (
                <div class="part">
                    <h3>Where the steps come from</h3>
                    <ul class="lines">
                        {[...counts].map(([origin, count]) => (
                            <li key={origin}>
                                <strong>{origin}</strong>: {spellOrigin(origin)} ({count === 1 ? "1 step" : `${count} steps`})
                            </li>
                        ))}
                    </ul>
                </div>
            )}
        </>
    );
}

/** Return the request of a plan; what is secret in it is left out. */
function commandOf(node: NodeDetail, flow: string, given: Body): Command {
    const path = `/ingot/v1/nodes/${part(node.name ?? node.uuid)}/plan?flow=${flow}`;
    if (!Object.keys(given).length) return { requests: [{ method: "GET", path }] };
    const body = "rescue_password" in given ? { ...given, rescue_password: "PASSWORD" } : given;
    return { requests: [{ method: "POST", path, body }] };
}
