/**
 * The feed of events: one stream for the whole console, resumed where it broke off. Nothing is polled.
 *
 * A browser opens only six connections to a server at once, and each stream keeps one: tabs that are hidden give
 * theirs back, so that any number of tabs may be open.
 */

import { signal } from "@preact/signals";

import { headers, readMessage } from "../api/client";
import { Parser } from "./parser";

type OfNode = "provision" | "power" | "step" | "maintenance" | "boot" | "lock" | "node";
type Kind = OfNode | "conductor" | "inbox" | "plan" | "missed";

/** What happened to a node, a conductor, the inbox or a plan. `missed` says that events are lost and everything is to be read anew. */
export interface IngotEvent {
    id: number;
    kind: Kind;
    at: string;
    node_uuid: string | null;
    node_name: string | null;
    [field: string]: unknown;
}

/** `refused`: the user may not follow events. `paused`: the tab is hidden. */
export type FeedState = "connecting" | "connected" | "lost" | "refused" | "paused";

export const feedState = signal<FeedState>("connecting");

/** When the server was last heard: what is shown may be stale since then while the connection is lost. */
export const heardAt = signal<number | null>(null);

/** When the next attempt is made, while the connection is lost. */
export const retryAt = signal<number | null>(null);

/** Why the last stream ended or was refused. */
export const feedError = signal<string | null>(null);

const HEARTBEAT_MS = 15_000; // the server's default
const LONGEST_SILENCE_MS = 3 * HEARTBEAT_MS;
const DOUBTFUL_SILENCE_MS = 2 * HEARTBEAT_MS; // when the user comes back to the page
const CHECK_MS = 5000;
const HIDDEN_MS = 20_000; // short enough for a sixth tab, long enough for a look at another one
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

const RENEWED = "renewed";

/** How a stream has ended; `renewed`: it was ended here, because it was silent. */
type Ended = "regularly" | "broken" | "refused" | typeof RENEWED;

type Listener = (event: IngotEvent) => void;

const listeners = new Set<Listener>();
const onConnect = new Set<(isAgain: boolean) => void>();

let lastId: string | null = null;
let pause = FIRST_PAUSE_MS;
let wake: (() => void) | null = null;
let current: AbortController | null = null;
let running = false;
let wasConnected = false;
let isPaused = false;
let hiding: ReturnType<typeof setTimeout> | undefined;

/** Call a function with each event; the result ends that. */
export function subscribe(listener: Listener): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
}

/**
 * Call a function whenever the stream stands, the first time and after a loss, and when the user reads everything again;
 * the result ends that.
 *
 * @param run gets whether requests may have been lost: this is not the first time.
 */
export function whenConnected(run: (isAgain: boolean) => void): () => void {
    onConnect.add(run);
    return () => onConnect.delete(run);
}

/** Follow the events until the page closes or the session ends. */
export function startFeed(): void {
    if (running) return;
    running = true;
    addEventListener("online", wakeUp);
    addEventListener("focus", wakeUp);
    addEventListener("offline", abortCurrent);
    document.addEventListener("visibilitychange", heedVisibility);
    heedVisibility();
    void run();
}

/** Stop following events: the session has ended. */
export function stopFeed(): void {
    running = false;
    removeEventListener("online", wakeUp);
    removeEventListener("focus", wakeUp);
    removeEventListener("offline", abortCurrent);
    document.removeEventListener("visibilitychange", heedVisibility);
    clearTimeout(hiding);
    abortCurrent();
    retryNow();
}

/** Try again at once. */
export function retryNow(): void {
    wake?.();
}

/** Read everything on the page again, for users to whom no event says when; perhaps they may follow events by now. */
export function readAgain(): void {
    retryNow();
    for (const run of onConnect) run(true);
}

function abortCurrent(): void {
    current?.abort();
}

/** The user is back, perhaps after the computer has slept: a stream that is silent may be a dead one. */
function wakeUp(): void {
    const isSilent = heardAt.peek() !== null && Date.now() - (heardAt.peek() ?? 0) > DOUBTFUL_SILENCE_MS;
    if (isSilent && feedState.peek() === "connected") {
        feedState.value = "connecting";
        current?.abort(RENEWED);
    }
    if (feedState.peek() !== "refused") retryNow();
}

function heedVisibility(): void {
    clearTimeout(hiding);
    if (document.visibilityState !== "hidden") {
        isPaused = false;
        wakeUp();
        return;
    }
    hiding = setTimeout(() => {
        if (feedState.peek() === "refused") return;
        isPaused = true;
        feedState.value = "paused";
        abortCurrent();
        retryNow();
    }, HIDDEN_MS);
}

async function run(): Promise<void> {
    feedState.value = "connecting";
    while (running) {
        if (isPaused) {
            await sleep(null);
            continue;
        }
        if (feedState.peek() === "paused") feedState.value = "connecting";
        const ended = await follow();
        if (!running) return;
        if (ended === "regularly" || ended === RENEWED || isPaused) continue; // the server ends each stream after a while
        if (ended === "refused") {
            feedState.value = "refused";
            await sleep(null); // until the session ends: a new login may allow it
            continue;
        }
        feedState.value = "lost";
        retryAt.value = Date.now() + pause;
        await sleep(pause * (0.75 + Math.random() / 2));
        pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
        retryAt.value = null;
    }
}

/** @param milliseconds null: until something wakes it. */
function sleep(milliseconds: number | null): Promise<void> {
    return new Promise((resolve) => {
        const timer = milliseconds === null ? undefined : setTimeout(resolve, milliseconds);
        wake = () => {
            clearTimeout(timer);
            resolve();
        };
    });
}

async function follow(): Promise<Ended> {
    const controller = new AbortController();
    current = controller;
    const began = Date.now();
    let heard = began;
    // By the clock: timers stand still while a computer sleeps.
    const watch = setInterval(() => Date.now() - heard > LONGEST_SILENCE_MS && controller.abort(), CHECK_MS);
    try {
        const answer = await fetch("/ingot/v1/events", {
            headers: { ...headers(), Accept: "text/event-stream", ...(lastId ? { "Last-Event-ID": lastId } : {}) },
            credentials: "same-origin",
            cache: "no-store",
            signal: controller.signal,
        });
        if (!answer.ok || !answer.body) return await refuse(answer);
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        const parser = new Parser(dispatch);
        for (;;) {
            const { done, value } = await reader.read();
            if (done) break;
            heardAt.value = heard = Date.now();
            if (feedState.value !== "connected") connect();
            parser.take(value);
        }
        return Date.now() - began > FIRST_PAUSE_MS * 4 ? "regularly" : "broken";
    } catch {
        if (controller.signal.reason === RENEWED) return RENEWED;
        feedError.value = "The connection to the server is lost.";
        return "broken";
    } finally {
        clearInterval(watch);
        controller.abort();
    }
}

async function refuse(answer: Response): Promise<Ended> {
    feedError.value = readMessage(await answer.text(), answer);
    if (answer.status === 401) sessionEnded();
    return answer.status === 403 ? "refused" : "broken";
}

let sessionEnded: () => void = () => undefined;

/** Set what happens when the stream is refused because the session is over. */
export function whenRefused(run: () => void): void {
    sessionEnded = run;
}

function connect(): void {
    feedState.value = "connected";
    feedError.value = null;
    pause = FIRST_PAUSE_MS;
    const isAgain = wasConnected;
    wasConnected = true;
    for (const run of onConnect) run(isAgain);
}

function dispatch(kind: string, id: string | null, data: string): void {
    if (id !== null) lastId = id;
    if (!data) return;
    const found = JSON.parse(data) as Partial<IngotEvent>;
    const event = { node_uuid: null, node_name: null, at: "", id: 0, ...found, kind } as IngotEvent;
    for (const listener of listeners) listener(event);
}
