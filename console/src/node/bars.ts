/** The steps of a run as bars on one scale of time: what they took, what they usually take, what is still to come. */

import { formatDuration, parseTime } from "../components/spans";
import type { TimelineStep } from "./types";

/** A step with its attempts, of which the last one says how it stands. */
export interface StepRow {
    label: string;
    last: TimelineStep;
    attempts: TimelineStep[];
}

export type Tone = "good" | "busy" | "waiting" | "bad" | "late";

/** A part of a bar, in thousandths of the whole time. */
export interface Piece {
    x: number;
    width: number;
}

export interface StepBar {
    pieces: (Piece & { tone: Tone })[];
    /** What the step usually takes, from the begin of its last attempt on. */
    usual: Piece | null;
}

export const SCALE = 1000;

const LEAST = 3; // thousandths, so that a short step is seen

// As the server judges: late is what takes twice as long as usual, but not in its first minute beyond that.
const [LATE_FACTOR, LATE_S] = [2, 60];

const TONES: Record<string, Tone> = {
    done: "good",
    failed: "bad",
    interrupted: "bad",
    aborted: "waiting",
    holding: "waiting",
};

const WORDS: Record<string, string> = {
    planned: "to come",
    next: "to come",
    running: "runs",
    waiting: "waits for the agent",
    watching: "waits for the agent",
    ending: "waits for the agent",
    polling: "waits for the hardware",
    holding: "held until an operator goes on",
};

const labelOf = (step: TimelineStep): string => `${step.interface}.${step.step}`;

/** Return steps with their attempts together; a step that runs again later in the run is another one. */
export function groupAttempts(steps: TimelineStep[]): StepRow[] {
    const rows: StepRow[] = [];
    for (const step of steps) {
        const [label, before] = [labelOf(step), rows.at(-1)];
        if (step.attempt > 1 && before?.label === label) {
            before.attempts.push(step);
            before.last = step;
        } else rows.push({ label, last: step, attempts: [step] });
    }
    return rows;
}

/** Return whether a step is under way. */
export function isUnderWay(step: TimelineStep): boolean {
    return step.started_at !== null && step.finished_at === null;
}

/** Return how long an attempt took, or takes by now; null: it has not begun. */
export function secondsOf(step: TimelineStep, now: number): number | null {
    if (isUnderWay(step) && step.started_at) return Math.max(0, (now - parseTime(step.started_at)) / 1000);
    return step.duration;
}

/** Return whether a step takes, or took, much longer than it usually does. */
export function isLate(seconds: number | null, usual: number | null): boolean {
    if (seconds === null || usual === null) return false;
    return seconds > Math.max(usual * LATE_FACTOR, usual + LATE_S);
}

/** Return how a step stands in words. */
export function spellState(state: string): string {
    return WORDS[state] ?? state;
}

/** Return how a step is to be taken; null: it has not begun. */
export function toneOfStep(step: TimelineStep, now: number): Tone | null {
    if (!step.started_at) return null;
    const tone = TONES[step.state] ?? "busy";
    return tone === "busy" && isLate(secondsOf(step, now), step.usual_duration) ? "late" : tone;
}

/** Return what a duration is against the usual one, in words; null: nothing is known. */
export function spellUsual(seconds: number | null, usual: number | null): string | null {
    if (usual === null) return null;
    const more = seconds === null ? 0 : seconds - usual;
    if (seconds === null || !isLate(seconds, usual)) return `usually ${formatDuration(usual)}`;
    return `usually ${formatDuration(usual)}, ${formatDuration(more)} more`;
}

interface Span {
    from: number;
    to: number;
}

/** Return when an attempt began and ended, or would by what it usually takes. */
function spanOf(step: TimelineStep, now: number, earliest: number): Span {
    if (!step.started_at) return { from: earliest, to: earliest + (step.usual_duration ?? 0) * 1000 };
    const from = parseTime(step.started_at);
    return { from, to: step.finished_at ? parseTime(step.finished_at) : Math.max(from, now) };
}

/** Return when a row began, and when it ended or will by what it usually takes. */
function usualSpanOf(row: StepRow, now: number, earliest: number): Span {
    const { from, to } = spanOf(row.last, now, earliest);
    const usual = (row.last.usual_duration ?? 0) * 1000;
    return { from, to: row.last.finished_at ? to : Math.max(to, from + usual) };
}

/** Return the bar of each step of a run; all have the same scale. */
export function drawBars(rows: StepRow[], now: number): StepBar[] {
    const begins = rows.flatMap((row) => row.attempts.flatMap((one) => (one.started_at ? [parseTime(one.started_at)] : [])));
    const begin = begins.length ? Math.min(...begins) : now;
    let earliest = begin;
    const spans = rows.map((row) => {
        const span = usualSpanOf(row, now, earliest);
        earliest = Math.max(earliest, span.to);
        return span;
    });
    const whole = Math.max(earliest - begin, 1);
    const place = ({ from, to }: Span): Piece => {
        const width = Math.min(SCALE, Math.max(LEAST, ((to - from) / whole) * SCALE));
        return { x: Math.min(SCALE - width, Math.max(0, ((from - begin) / whole) * SCALE)), width };
    };
    return rows.map((row, at) => {
        const pieces = row.attempts.flatMap((one) => {
            const tone = toneOfStep(one, now);
            return tone ? [{ ...place(spanOf(one, now, begin)), tone }] : [];
        });
        const usual = row.last.usual_duration;
        const from = spans[at]?.from ?? begin;
        return { pieces, usual: usual === null ? null : place({ from, to: Math.min(from + usual * 1000, begin + whole) }) };
    });
}
