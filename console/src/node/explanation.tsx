/** Why a node is where it is, in words, with the one next action. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";

import { Icon } from "../components/icon";
import { Loaded } from "../components/loading";
import { parseTime, Time } from "../components/time";
import type { IngotEvent } from "../live/feed";
import { ofNode, useLive, type Resource } from "../live/resource";
import { part } from "../paths";
import { NextButton } from "../verbs/next";
import type { Explanation, NodeDetail, Triage } from "./types";

const URGENT = new Set(["failed", "unresponsive", "overdue"]);

/** Kinds that end without an event: a lock is given back, a machine boots on its way to the agent. */
const PASSING = new Set(["turn", "conductor", "boot script", "agent start", "first heartbeat"]);

const SOON_MS = 2000;

/**
 * Return the explanation of a node, which events keep current. One that ends without an event is read again, the later
 * the longer it lasts: a few times in all.
 */
export function useExplanation(node: string): Resource<Explanation> {
    const isOwn = ofNode(node);
    const concerns = (event: IngotEvent): boolean => isOwn(event) || event.kind === "conductor";
    const found = useLive<Explanation>(`/ingot/v1/nodes/${part(node)}/explanation`, concerns);
    const latest = found.data.value;
    useEffect(() => {
        if (latest === null || !PASSING.has(latest.kind)) return undefined;
        const age = latest.since ? Date.now() - parseTime(latest.since) : 0;
        const timer = setTimeout(found.reload, Math.max(SOON_MS, age / 2));
        return () => clearTimeout(timer);
    }, [latest]);
    return found;
}

interface ExplanationProps {
    node: NodeDetail;
    explanation: Resource<Explanation>;
}

/** Shows the explanation. */
export function ExplanationPanel({ node, explanation }: ExplanationProps): JSX.Element {
    return (
        <section class="panel" aria-labelledby="node-why">
            <div class="panel-head">
                <h2 id="node-why">Why it is here</h2>
            </div>
            <Loaded of={explanation}>
                {(found) => (
                    <div class="panel-body stack">
                        {found.triage && <Need node={node} need={found.triage} />}
                        <Waits of={found} />
                    </div>
                )}
            </Loaded>
        </section>
    );
}

function Need({ node, need }: { node: NodeDetail; need: Triage }): JSX.Element {
    return (
        <div class={URGENT.has(need.cause) ? "why why-bad" : "why"}>
            <p class="why-title">
                <Icon name="alert" />
                <strong>{need.title}</strong>
                {need.by && <span>by {need.by}</span>}
                {need.since && <Time at={need.since} both />}
            </p>
            {need.reason && (
                <p class="why-reason">
                    {need.step && <code>{need.step}</code>} {need.reason}
                </p>
            )}
            <p class="why-next">
                <span>
                    <strong>Next:</strong> {need.next.text}
                </span>
                <NextButton node={node} next={need.next} />
            </p>
        </div>
    );
}

function Waits({ of }: { of: Explanation }): JSX.Element {
    const isIdle = of.kind === "request";
    return (
        <>
            <dl class="facts">
                <Fact title="Waits for">{of.waits_for}</Fact>
                {of.step && (
                    <Fact title="Step">
                        <code>{of.step}</code>
                    </Fact>
                )}
                {of.since && (
                    <Fact title="Since">
                        <Time at={of.since} both />
                    </Fact>
                )}
                {of.until && (
                    <Fact title="Until">
                        <Time at={of.until} both />
                    </Fact>
                )}
                {of.last_sign && !isIdle && (
                    <Fact title="Last sign">
                        {of.last_sign.what}, <Time at={of.last_sign.at} both />
                    </Fact>
                )}
                <Fact title="Then">{of.next}</Fact>
                {!isIdle && <Fact title="If it lasts">{of.advice}</Fact>}
            </dl>
            <Lines title="Notes" lines={of.notes} isOpen />
            {!isIdle && <Lines title="Usual causes" lines={of.usual_causes} />}
        </>
    );
}

function Lines({ title, lines, isOpen = false }: { title: string; lines: string[]; isOpen?: boolean }): JSX.Element | null {
    if (!lines.length) return null;
    return (
        <details class="fold" open={isOpen}>
            <summary>{title}</summary>
            <ul class="lines">
                {lines.map((line) => (
                    <li key={line}>{line}</li>
                ))}
            </ul>
        </details>
    );
}

/** Shows a fact in a list of facts. */
export function Fact({ title, children }: { title: string; children: ComponentChildren }): JSX.Element {
    return (
        <div>
            <dt>{title}</dt>
            <dd>{children}</dd>
        </div>
    );
}
