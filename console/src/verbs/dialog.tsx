/** The dialog of a verb: what it will do and who would refuse, its arguments, and what became of each node. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { explain } from "../api/client";
import { usePermission } from "../api/permissions";
import type { BulkResult } from "../api/types";
import { CommandPanel } from "../components/command";
import { Dialog } from "../components/dialog";
import { Problem } from "../components/loading";
import { formatNumber } from "../components/number";
import { toast } from "../components/toasts";
import { ArgumentFields, useArguments } from "./arguments";
import { commandOf } from "./commands";
import { InstanceFields } from "./instance";
import { PlanView, usePlan } from "./plan";
import { verbRequest, type VerbNode, type VerbRequest } from "./request";
import { Results } from "./results";
import { ask, countOf, findNodes, verbIn, type Body } from "./targets";

const TYPED_MS = 400;
const NAMES = 5;

/** Shows the dialog of the verb that was asked for; there is one of these. */
export function VerbDialog(): JSX.Element | null {
    const request = verbRequest.value;
    if (!request) return null;
    return <Content key={`${request.verb} ${countOf(request)}`} request={request} />;
}

function close(): void {
    verbRequest.value = null;
}

/** Return the answers of a dry run, made again when the arguments change. */
function usePreview(request: VerbRequest, body: Body, ready: boolean, turn: number) {
    const [nodes, setNodes] = useState<VerbNode[] | null>(null);
    const [results, setResults] = useState<BulkResult[]>([]);
    const [error, setError] = useState<string | null>(null);
    const [done, setDone] = useState(false);
    const sent = JSON.stringify({ ...body, reason: undefined }); // no node refuses for what the reason says
    useEffect(() => {
        let stopped = false;
        const run = async (): Promise<void> => {
            const found = nodes ?? (await findNodes(request));
            if (stopped) return;
            setNodes(found);
            const uuids = found.map((node) => node.uuid);
            const report = (some: BulkResult[]): void => void (stopped || setResults(some));
            await ask(verbIn(request), body, uuids, { dryRun: true, report, stopped: () => stopped });
            if (!stopped) setDone(true);
        };
        setDone(false);
        setError(null);
        if (!ready) return undefined;
        const timer = setTimeout(
            () => void run().catch((problem: unknown) => stopped || setError(explain(problem))),
            nodes ? TYPED_MS : 0,
        );
        return () => {
            stopped = true;
            clearTimeout(timer);
        };
    }, [sent, ready, turn]);
    return { nodes, results: ready ? results : [], error, done };
}

function Content({ request }: { request: VerbRequest }): JSX.Element {
    const verb = verbIn(request);
    const one = !request.matching && request.nodes?.length === 1 ? (request.nodes[0] ?? null) : null;
    const given = useArguments(verb, request.body ?? {});
    const [turn, setTurn] = useState(0);
    const [ran, setRan] = useState<BulkResult[] | null>(null);
    const [running, setRunning] = useState(false);
    const [failure, setFailure] = useState<string | null>(null);
    const stopped = useRef(false);
    const permission = usePermission(one?.uuid ?? null)(verb.rule);
    const isReady = given.missing === null && Object.keys(given.wrong).length === 0;
    const preview = usePreview(request, given.body, isReady && permission.allowed && ran === null, turn);
    const plan = usePlan(one?.uuid ?? null, isReady && ran === null ? verb.plan : undefined, given.body);
    useEffect(() => () => void (stopped.current = true), []);

    const able = preview.results.filter((result) => result.accepted).map((result) => result.node);
    const run = async (): Promise<void> => {
        setRunning(true);
        setFailure(null);
        try {
            const report = (some: BulkResult[]): void => void (stopped.current || setRan(some));
            const results = await ask(verb, given.body, able, { dryRun: false, report, stopped: () => stopped.current });
            const accepted = results.filter((result) => result.accepted).length;
            if (accepted) request.done?.();
            if (accepted === results.length) {
                toast(`${verb.text}: ${one ? (one.name ?? one.uuid) : nodesOf(accepted)} accepted.`);
                if (!stopped.current && preview.results.length === accepted) close();
            }
        } catch (error) {
            setFailure(explain(error));
        } finally {
            setRunning(false);
        }
    };
    const refusal = whyNot(permission.reason, permission.allowed, given.missing, isReady);
    const isOpen = preview.done && able.length > 0 && !running && refusal === null;
    const start = (
        <button
            type="button"
            class={verb.danger ? "button button-danger" : "button button-primary"}
            disabled={!isOpen}
            onClick={() => void run()}
        >
            {one ? verb.text : [verb.text, verb.joint, nodesOf(able.length)].filter(Boolean).join(" ")}
        </button>
    );
    return (
        <Dialog
            title={one ? [verb.text, verb.joint, one.name ?? one.uuid].filter(Boolean).join(" ") : verb.text}
            onClose={close}
            wide={verb.plan !== undefined && one !== null}
            actions={
                ran === null || running ? (
                    <>
                        {refusal && <span class="dialog-why">{refusal}</span>}
                        <button type="button" class="button" onClick={close}>
                            Cancel
                        </button>
                        {start}
                    </>
                ) : (
                    <button type="button" class="button button-primary" onClick={close}>
                        Close
                    </button>
                )
            }
        >
            <p>{verb.about}</p>
            {!one && <Targets request={request} nodes={preview.nodes} />}
            {failure && <Problem text={failure} />}
            {ran !== null ? (
                <Results results={ran} dryRun={false} />
            ) : (
                <>
                    {one && verb.plan === "deploy" && (
                        <InstanceFields node={one.uuid} saved={() => setTurn((before) => before + 1)} />
                    )}
                    <ArgumentFields verb={verb} {...given} />
                    {one && verb.plan && isReady && (
                        <section class="part" aria-label="Plan">
                            <h3>Plan</h3>
                            {plan.error && <Problem text={plan.error} />}
                            {plan.plan ? <PlanView plan={plan.plan} /> : !plan.error && <p class="muted">Loading…</p>}
                        </section>
                    )}
                    {preview.error && <Problem text={preview.error} retry={() => setTurn((before) => before + 1)} />}
                    {isReady && permission.allowed && !preview.error && (
                        <Preview results={preview.results} done={preview.done} one={one !== null} count={countOf(request)} />
                    )}
                </>
            )}
            <details class="fold">
                <summary>As a command</summary>
                <CommandPanel command={commandOf(request, given.body)} />
            </details>
        </Dialog>
    );
}

function nodesOf(count: number): string {
    return count === 1 ? "1 node" : `${formatNumber(count)} nodes`;
}

function whyNot(reason: string | null, allowed: boolean, missing: string | null, isReady: boolean): string | null {
    if (!allowed) return reason ?? "Your roles do not allow this.";
    if (missing) return missing;
    return isReady ? null : "Correct the arguments first.";
}

function Targets({ request, nodes }: { request: VerbRequest; nodes: VerbNode[] | null }): JSX.Element {
    const known = nodes ?? request.nodes ?? [];
    const count = nodes?.length ?? countOf(request);
    const names = known.slice(0, NAMES).map((node) => node.name ?? node.uuid);
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
            {names.length > 0 && <span class="muted">: {names.join(", ")}{count > names.length && ", …"}</span>}
        </p>
    );
}

interface PreviewProps {
    results: BulkResult[];
    done: boolean;
    one: boolean;
    count: number;
}

function Preview({ results, done, one, count }: PreviewProps): JSX.Element {
    const [refusal] = results;
    if (!done && results.length < count) {
        return (
            <p class="muted" role="status">
                Asking {one ? "the node" : `the nodes (${results.length} of ${count})`}…
            </p>
        );
    }
    if (one && refusal) {
        return refusal.accepted ? (
            <p class="results-good" role="status">
                The node would accept this.
            </p>
        ) : (
            <Problem text={refusal.reason ?? "The node would refuse this."} />
        );
    }
    return <Results results={results} dryRun />;
}
