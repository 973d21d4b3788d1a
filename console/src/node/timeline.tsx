/** The timeline of a node: the steps of a run as bars, live, and the runs before it. */

import type { JSX } from "preact";

import { CopyButton } from "../components/copy";
import { Fact } from "../components/fact";
import { Icon, type IconName } from "../components/icon";
import { Empty, Loaded } from "../components/loading";
import { formatDuration, Time } from "../components/time";
import { useNow } from "../live/clock";
import { ofNode, useLive } from "../live/resource";
import { part } from "../paths";
import { query } from "../router";
import {
    drawBars,
    groupAttempts,
    isLate,
    isUnderWay,
    SCALE,
    secondsOf,
    spellState,
    spellUsual,
    toneOfStep,
    type StepBar,
    type StepRow,
    type Tone,
} from "./bars";
import { RunList } from "./runs";
import type { NodeDetail, Timeline, TimelineStep } from "./types";
import { spellFlow, spellOrigin } from "./words";

const ICONS: Record<Tone, IconName> = { good: "check", busy: "gear", waiting: "pause", bad: "alert", late: "clock" };

const BAR_HEIGHT = 12;
const USUAL_HEIGHT = 4;

/** Shows the run that the address names, or else the latest. */
export function TimelineTab({ node }: { node: NodeDetail }): JSX.Element {
    const run = query.value.get("run");
    const path = run ? `/ingot/v1/runs/${part(run)}` : `/ingot/v1/nodes/${part(node.uuid)}/timeline`;
    const timeline = useLive<Timeline>(path, ofNode(node.uuid));
    return (
        <div class="timeline">
            <RunList node={node} shown={run ?? timeline.data.value?.run ?? null} />
            <div class="timeline-run">
                <Loaded of={timeline}>{(found) => <RunPanel found={found} />}</Loaded>
            </div>
        </div>
    );
}

function RunPanel({ found }: { found: Timeline }): JSX.Element {
    if (found.steps.length === 0) {
        return <Empty>{found.run ? "No step of this run has begun." : "Nothing was done with this node yet."}</Empty>;
    }
    return (
        <section class="panel" aria-labelledby="node-run">
            <div class="panel-head">
                <h2 id="node-run">{spellFlow(found.flow)}</h2>
                {found.run && (
                    <span class="muted run-id">
                        run <code>{found.run}</code>
                        <CopyButton text={found.run} of="the id of the run" />
                    </span>
                )}
                {found.request_id && (
                    <span class="muted run-id">
                        requested by <code>{found.request_id}</code>
                        <CopyButton text={found.request_id} of="the id of the request" />
                    </span>
                )}
            </div>
            <Steps steps={found.steps} />
        </section>
    );
}

function Steps({ steps }: { steps: TimelineStep[] }): JSX.Element {
    const now = useNow();
    const rows = groupAttempts(steps);
    const bars = drawBars(rows, now);
    return (
        <ol>
            {rows.map((row, at) => (
                <Step key={`${row.label} ${at}`} row={row} bar={bars[at]} number={at + 1} now={now} />
            ))}
        </ol>
    );
}

interface StepProps {
    row: StepRow;
    bar: StepBar | undefined;
    number: number;
    now: number;
}

function Step({ row, bar, number, now }: StepProps): JSX.Element {
    const { last } = row;
    const tone = toneOfStep(last, now);
    const seconds = secondsOf(last, now);
    const usual = spellUsual(seconds, last.usual_duration);
    return (
        <li class="ran" aria-current={isUnderWay(last) ? "step" : undefined}>
            <div class="ran-head">
                <span class="plan-number">{number}</span>
                <span class={`ran-icon tone-text-${tone ?? "idle"}`}>
                    <Icon name={tone ? ICONS[tone] : "circle"} />
                </span>
                <span class="ran-name mono">{row.label}</span>
                <span class={`tone-text-${tone ?? "idle"}`}>{spellState(last.state)}</span>
                {last.attempt > 1 && <span>attempt {last.attempt}</span>}
                {last.origin && <span class="muted">{last.origin}</span>}
                <span class="ran-time">
                    {seconds !== null && <span>{formatDuration(isUnderWay(last) ? Math.round(seconds) : seconds)}</span>}
                    {usual && <span class={isLate(seconds, last.usual_duration) ? "late" : "muted"}>{usual}</span>}
                </span>
            </div>
            {bar && <Bar bar={bar} />}
            <Errors row={row} />
            <Details step={last} />
        </li>
    );
}

/** Shows the attempts of a step above a line as long as what it usually takes. The words beside it say the same. */
function Bar({ bar }: { bar: StepBar }): JSX.Element {
    return (
        <svg
            class="ran-bar"
            viewBox={`0 0 ${SCALE} ${BAR_HEIGHT + USUAL_HEIGHT}`}
            preserveAspectRatio="none"
            aria-hidden="true"
            focusable="false"
        >
            <rect class="ran-ground" x="0" y="0" width={SCALE} height={BAR_HEIGHT} />
            {bar.pieces.map(({ x, width, tone }, at) => (
                <rect key={at} class={`ran-piece ran-${tone}`} x={x} y="0" width={width} height={BAR_HEIGHT} />
            ))}
            {bar.usual && (
                <rect class="ran-usual" x={bar.usual.x} y={BAR_HEIGHT} width={bar.usual.width} height={USUAL_HEIGHT} />
            )}
        </svg>
    );
}

function Errors({ row }: { row: StepRow }): JSX.Element | null {
    const failed = row.attempts.filter((one) => one.error);
    if (!failed.length) return null;
    return (
        <ul class="ran-errors">
            {failed.map((one) => (
                <li key={one.attempt}>
                    {row.attempts.length > 1 && (
                        <strong>
                            Attempt {one.attempt}, {spellState(one.state)}
                            {one.duration !== null && ` after ${formatDuration(one.duration)}`}:{" "}
                        </strong>
                    )}
                    {one.error}
                </li>
            ))}
        </ul>
    );
}

function Details({ step }: { step: TimelineStep }): JSX.Element {
    const hasArguments = Object.keys(step.args).length > 0;
    return (
        <details class="fold ran-more">
            <summary>
                Details<span class="visually-hidden"> of {step.step}</span>
            </summary>
            <dl class="facts">
                {step.origin && (
                    <Fact title="Comes from">
                        {step.origin}: {spellOrigin(step.origin)}
                    </Fact>
                )}
                {step.runner && <Fact title="Run by">{step.runner}</Fact>}
                {step.priority ? <Fact title="Priority">{step.priority}</Fact> : null}
                {step.conductor && <Fact title="Conductor">{step.conductor}</Fact>}
                {step.started_at && (
                    <Fact title="Began">
                        <Time at={step.started_at} both />
                    </Fact>
                )}
                {step.finished_at && (
                    <Fact title="Ended">
                        <Time at={step.finished_at} both />
                    </Fact>
                )}
                <Fact title="Arguments">
                    {hasArguments ? <code class="ran-args">{JSON.stringify(step.args, null, 2)}</code> : "none"}
                </Fact>
            </dl>
        </details>
    );
}
