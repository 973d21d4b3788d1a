/** What a deploy template or runbook would do on a node, as it is edited now. */

import type { JSX } from "preact";

import { Problem } from "../components/loading";
import { PlanView, usePlan } from "../verbs/plan";
import { planOf, type Draft } from "./draft";
import { FLOW_NAMES, type Flow } from "./kinds";

interface DryRunProps {
    node: string;
    flow: Flow;
    draft: Draft;
    /** A runbook that is saved as it is shown: the node is then asked for its traits as well. */
    runbook: string | null;
    isReady: boolean;
}

/** Shows what the draft would do. */
export function DryRun({ node, flow, draft, runbook, isReady }: DryRunProps): JSX.Element {
    const body = runbook === null ? planOf(flow, draft) : { runbook };
    const { plan, error } = usePlan(node || null, isReady ? flow : undefined, body);
    return (
        <section class="part" aria-label="Dry run">
            <h3>{node ? `What it would do on ${node}, ${FLOW_NAMES[flow]}` : "What it would do"}</h3>
            {!node && <p class="muted">Choose a node above to see it.</p>}
            {node && !isReady && <p class="muted">Complete the steps to see it.</p>}
            {node && isReady && error && <Problem text={error} />}
            {node && isReady && !error && (plan ? <PlanView plan={plan} /> : <p class="muted">Loading…</p>)}
        </section>
    );
}
