/** A verb that was started: how many nodes were asked, what became of each, and which were not asked. */

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { Problem } from "../components/loading";
import { nodesOf } from "./form";
import { closeVerb, type VerbNode } from "./request";
import { NodeFold, Results } from "./results";
import { verbRun, type VerbRun } from "./run";

/** Shows the buttons: the only way out of a run is to stop it. */
export function RunActions({ run }: { run: VerbRun }): JSX.Element {
    const [running, rest] = [run.running.value, run.rest.value.length];
    const main = useRef<HTMLButtonElement>(null);
    useEffect(() => main.current?.focus(), [running]); // the button that had the focus is gone
    if (running) {
        return (
            <button type="button" ref={main} class="button" disabled={run.stopping.value} onClick={run.stop}>
                Stop
            </button>
        );
    }
    return (
        <>
            {run.results.value.length === 0 && run.unsure.value === 0 && (
                <button type="button" class="button" onClick={() => (verbRun.value = null)}>
                    Back
                </button>
            )}
            {rest > 0 && (
                <button type="button" class="button" onClick={() => void run.go()}>
                    Go on with the rest
                </button>
            )}
            <button type="button" ref={main} class="button button-primary" onClick={closeVerb}>
                Close
            </button>
        </>
    );
}

/** Shows what became of the nodes so far. */
export function RunBody({ run, nodes }: { run: VerbRun; nodes: VerbNode[] }): JSX.Element {
    const [results, rest, failure] = [run.results.value, run.rest.value, run.failure.value];
    return (
        <>
            {run.running.value && (
                <p class="muted" role="status">
                    {run.stopping.value
                        ? "No more nodes are asked after the request that is under way…"
                        : `Asking the nodes (${results.length} of ${results.length + rest.length})…`}
                </p>
            )}
            {failure && <Problem text={failure} />}
            <Results results={results} dryRun={false} />
            {!run.running.value && rest.length > 0 && <NotAsked run={run} nodes={nodes} />}
        </>
    );
}

function NotAsked({ run, nodes }: { run: VerbRun; nodes: VerbNode[] }): JSX.Element {
    const names = new Map(nodes.map((node) => [node.uuid, node.name]));
    const unsure = run.unsure.value;
    const listed = run.rest.value.map((node, at) => {
        const reason = at < unsure ? "no answer" : "not asked";
        return { node, name: names.get(node) ?? null, accepted: false, status: 0, reason };
    });
    return (
        <>
            <p class="note-waiting" role="status">
                {unsure > 0 && `The answer for ${nodesOf(unsure)} did not come: they may have accepted. `}
                {listed.length > unsure && `${nodesOf(listed.length - unsure)} not asked.`}
            </p>
            <NodeFold title={`Nodes that have not answered (${listed.length})`} nodes={listed} />
        </>
    );
}
