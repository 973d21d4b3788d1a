/** Why a node is where it is, in words, with the one next action. */

import type { JSX } from "preact";

import { Fact } from "../components/fact";
import { Icon } from "../components/icon";
import { Loaded } from "../components/loading";
import { Time } from "../components/time";
import type { IngotEvent } from "../live/feed";
import { ofNode, useLive, type Resource } from "../live/resource";
import { useStale } from "../live/stale";
import { part } from "../paths";
import { NextButton } from "../verbs/next";
import type { Explanation, NodeDetail, Triage } from "./types";

const URGENT = new Set(["failed", "unresponsive", "overdue"]);

/** Return the explanation of a node, which events keep current, and one timer where it changes with time alone. */
export function useExplanation(node: string): Resource<Explanation> {
    const isOwn = ofNode(node);
    const concerns = (event: IngotEvent): boolean => isOwn(event) || event.kind === "conductor";
    const found = useLive<Explanation>(`/ingot/v1/nodes/${part(node)}/explanation`, concerns);
    useStale(found);
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
                    {need.step && !need.reason?.includes(need.step) && <code>{need.step}</code>} {need.reason}
                </p>
            )}
            <p class="why-next">
                <span>
                    <strong>Next:</strong> {need.next.text}
                </span>
                <NextButton node={node} next={need.next} isAsked />
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
