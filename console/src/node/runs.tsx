/** The runs of a node: each deployment, cleaning, servicing and so on. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { Loaded } from "../components/loading";
import { Older } from "../components/older";
import { Elapsed, formatDuration, Time } from "../components/time";
import { ofNode, useLive } from "../live/resource";
import { part } from "../paths";
import { address } from "../router";
import type { NodeDetail, Run, Runs } from "./types";
import { spellFlow } from "./words";

const PAGE = 20;

interface RunLinkProps {
    node: NodeDetail;
    run: string;
    text: string;
    isShown?: boolean;
}

/** Shows a link to the timeline of a run. */
export function RunLink({ node, run, text, isShown = false }: RunLinkProps): JSX.Element {
    const to = address(`/nodes/${part(node.name ?? node.uuid)}?run=${part(run)}`);
    return (
        <a href={to} aria-current={isShown ? "true" : undefined}>
            {text}
        </a>
    );
}

/** Shows the runs, the latest first; `shown` is the one whose steps are beside the list. */
export function RunList({ node, shown }: { node: NodeDetail; shown: string | null }): JSX.Element {
    const [limit, setLimit] = useState(PAGE);
    const path = `/ingot/v1/nodes/${part(node.uuid)}/runs?limit=${limit}`;
    const found = useLive<Runs>(path, ofNode(node.uuid));
    return (
        <nav class="panel" aria-label="Runs">
            <div class="panel-head">
                <h2>Runs</h2>
            </div>
            <Loaded of={found}>
                {({ runs, next }) => (
                    <>
                        {runs.length === 0 && <p class="quiet">None yet.</p>}
                        <ul class="runs">
                            {runs.map((run) => (
                                <RunRow key={run.run} node={node} run={run} isShown={run.run === shown} />
                            ))}
                        </ul>
                        <Older isThere={Boolean(next)} show={() => setLimit(limit + PAGE)} text="Show older runs" />
                    </>
                )}
            </Loaded>
        </nav>
    );
}

function RunRow({ node, run, isShown }: { node: NodeDetail; run: Run; isShown: boolean }): JSX.Element {
    const isRunning = run.state === "running";
    return (
        <li class={isShown ? "run is-shown" : "run"}>
            <span class="run-head">
                <RunLink node={node} run={run.run} text={spellFlow(run.flow)} isShown={isShown} />
                <RunState state={run.state} />
            </span>
            <span class="muted">
                <Time at={run.started_at} both />
                {", "}
                {isRunning && run.started_at ? <Elapsed since={run.started_at} /> : formatDuration(run.duration ?? 0)}
            </span>
        </li>
    );
}

const TONES: Record<Run["state"], string> = { running: "busy", done: "good", aborted: "waiting", failed: "bad" };

/** Shows how a run stands. */
export function RunState({ state }: { state: Run["state"] }): JSX.Element {
    return <span class={`run-state tone-text-${TONES[state]}`}>{state}</span>;
}
