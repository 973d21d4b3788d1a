/** A verb before it is started: its arguments, the plan of a node, and who would refuse. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { usePermission } from "../api/permissions";
import type { BulkResult } from "../api/types";
import { Problem } from "../components/loading";
import { formatNumber } from "../components/number";
import { toast } from "../components/toasts";
import { ArgumentFields, useArguments } from "./arguments";
import { whyNot } from "./hindrance";
import { InstanceFields } from "./instance";
import { PlanView, usePlan } from "./plan";
import { usePreview, type PreviewState } from "./preview";
import { closeVerb, type VerbNode, type VerbRequest } from "./request";
import { Results } from "./results";
import { VerbRun, verbRun } from "./run";
import { countOf, verbIn } from "./targets";

const NAMES = 5;
const CHOICES = 100; // nodes whose plans can be chosen: the others are like some of them

/** Return the only node of a request; null: it is for more, or for what matches. */
export function oneOf(request: VerbRequest): VerbNode | null {
    return !request.matching && request.nodes?.length === 1 ? (request.nodes[0] ?? null) : null;
}

export function nodesOf(count: number): string {
    return count === 1 ? "1 node" : `${formatNumber(count)} nodes`;
}

/** Return the state of the form, and what starts the verb. */
export function useForm(request: VerbRequest, isShown: boolean) {
    const verb = verbIn(request);
    const one = oneOf(request);
    const given = useArguments(verb, request.body ?? {});
    const [turn, setTurn] = useState(0);
    const [isImageChanged, setImageChanged] = useState(false);
    const [chosen, choosePlan] = useState<string | null>(null);
    const permission = usePermission(one?.uuid ?? null)(verb.rule);
    const isWrong = Object.keys(given.wrong).length > 0;
    const isReady = given.missing === null && !isWrong;
    const isAsked = isReady && permission.allowed && isShown;
    const preview = usePreview(request, given.body, isAsked, turn);
    const able = preview.results.filter((result) => result.accepted);
    const planned = one?.uuid ?? able.find((result) => result.node === chosen)?.node ?? able[0]?.node ?? null;
    const plan = usePlan(planned, isReady && isShown ? verb.plan : undefined, given.body, turn);
    const refusal = whyNot({ permission, missing: given.missing, isWrong, isImageChanged });
    const again = (): void => setTurn((before) => before + 1);
    const start = async (): Promise<void> => {
        const run = new VerbRun(verb, given.body, able.map((result) => result.node));
        verbRun.value = run;
        await run.go();
        if (verbRun.peek() !== run || !run.isComplete || preview.results.length > able.length) return;
        toast(`${verb.text}: ${one ? (one.name ?? one.uuid) : nodesOf(able.length)} accepted.`);
        closeVerb();
    };
    const canStart = preview.done && able.length > 0 && refusal === null;
    return { verb, one, given, isReady, isAsked, preview, able, planned, plan, refusal, canStart, again, start, choosePlan, setImageChanged };
}

type Form = ReturnType<typeof useForm>;

/** Shows the buttons of the form. */
export function FormActions({ form }: { form: Form }): JSX.Element {
    const { verb, one, able, refusal, canStart, start } = form;
    return (
        <>
            {refusal && <span class="dialog-why">{refusal}</span>}
            <button type="button" class="button" onClick={closeVerb}>
                Cancel
            </button>
            <button
                type="button"
                class={verb.danger ? "button button-danger" : "button button-primary"}
                disabled={!canStart}
                onClick={() => void start()}
            >
                {one ? verb.text : [verb.text, verb.joint, nodesOf(able.length)].filter(Boolean).join(" ")}
            </button>
        </>
    );
}

/** Shows the form. */
export function FormBody({ form, request }: { form: Form; request: VerbRequest }): JSX.Element {
    const { verb, one, given, isReady, isAsked, preview, again, setImageChanged } = form;
    return (
        <>
            {!one && <Targets request={request} nodes={preview.nodes} />}
            {one && verb.plan === "deploy" && <InstanceFields node={one.uuid} onChanged={setImageChanged} saved={again} />}
            <ArgumentFields verb={verb} {...given} />
            {verb.plan && isReady && <PlanPart form={form} />}
            {preview.error && <Problem text={preview.error} retry={again} />}
            {isAsked && !preview.error && <Preview of={preview} one={one !== null} count={countOf(request)} />}
        </>
    );
}

function PlanPart({ form: { one, able, planned, plan, choosePlan } }: { form: Form }): JSX.Element | null {
    if (planned === null) return null;
    return (
        <section class="part" aria-label="Plan">
            <h3>Plan</h3>
            {!one && <PlanChoice able={able} planned={planned} choose={choosePlan} />}
            {plan.error && <Problem text={plan.error} />}
            {plan.plan ? <PlanView plan={plan.plan} /> : !plan.error && <p class="muted">Loading…</p>}
        </section>
    );
}

interface ChoiceProps {
    able: BulkResult[];
    planned: string;
    choose: (node: string) => void;
}

function PlanChoice({ able, planned, choose }: ChoiceProps): JSX.Element {
    return (
        <label class="field">
            <span>Of the node</span>
            <select value={planned} onChange={(event) => choose(event.currentTarget.value)}>
                {able.slice(0, CHOICES).map((one) => (
                    <option key={one.node} value={one.node}>
                        {one.name ?? one.node}
                    </option>
                ))}
            </select>
            <span class="field-note">Each node has a plan of its own</span>
        </label>
    );
}

function Targets({ request, nodes }: { request: VerbRequest; nodes: VerbNode[] | null }): JSX.Element {
    const known = nodes ?? request.nodes ?? [];
    const count = nodes?.length ?? countOf(request);
    const names = known.slice(0, NAMES).map((node) => node.name ?? node.uuid);
    const excluded = request.matching?.except?.length ?? 0;
    return (
        <p>
            <strong>{nodesOf(count)}</strong>
            {request.matching?.filter && (
                <>
                    {" that match "}
                    <code>{request.matching.filter}</code>
                </>
            )}
            {request.matching && !request.matching.filter && " of the fleet"}
            {excluded > 0 && ` without ${nodesOf(excluded)} that you excluded`}
            {names.length > 0 && <span class="muted">: {names.join(", ")}{count > names.length && ", …"}</span>}
        </p>
    );
}

function Preview({ of: { results, done, nodes }, one, count }: { of: PreviewState; one: boolean; count: number }): JSX.Element {
    const [answer] = results;
    if (!done) {
        return (
            <p class="muted" role="status">
                Asking {one ? "the node" : `the nodes (${results.length} of ${nodes?.length ?? count})`}…
            </p>
        );
    }
    if (!one || !answer) return <Results results={results} dryRun />;
    if (!answer.accepted) return <Problem text={answer.reason ?? "The node would refuse this."} />;
    return (
        <p class="results-good" role="status">
            The node would accept this.
        </p>
    );
}
