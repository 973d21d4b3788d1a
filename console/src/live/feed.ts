/** The feed of events: one stream for the whole console, resumed where it broke off. Nothing is polled. */

import { signal } from "@preact/signals";

import { headers, readMessage } from "../api/client";
import { PREFIX } from "../paths";
import { Parser } from "./parser";

/** What happened to a node, a conductor, the inbox or a plan. `missed` says that events are lost and everything is to be read anew. */
export interface IngotEvent {
    id: number;
    kind: "provision" | "power" | "step" | "maintenance" | "boot" | "lock" | "conductor" | "inbox" | "plan" | "missed";
    at: string;
    node_uuid: string | null;
    node_name: string | null;
    [field: string]: unknown;
}

export type FeedState = "connecting" | "connected" | "lost";

export const feedState = signal<FeedState>("connecting");

/** When the server was last heard: what is shown may be stale since then while the connection is lost. */
export const heardAt = signal<number | null>(null);

/** When the next attempt is made, while the connection is lost. */
export const retryAt = signal<number | null>(null);

/** Why the last stream ended or was refused. */
export const feedError = signal<string | null>(null);

const SILENCE_MS = 45_000; // three heartbeats of the server's default
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

type Listener = (event: IngotEvent) => void;

const listeners = new Set<Listener>();
const onConnect = new Set<() => void>();

let lastId: string | null = null;
let pause = FIRST_PAUSE_MS;
let wake: (() => void) | null = null;
let current: AbortController | null = null;
let running = false;

/** Call a function with each event; the result ends that. */
export function subscribe(listener: Listener): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
}

/** Call a function whenever the stream stands, the first time and after a loss; the result ends that. */
export function whenConnected(run: () => void): () => void {
    onConnect.add(run);
    return () => onConnect.delete(run);
}

/** Follow the events until the page closes or the session ends. */
export function startFeed(): void {
    if (running) return;
    running = true;
    addEventListener("online", retryNow);
    addEventListener("offline", abortCurrent);
    document.addEventListener("visibilitychange", retryWhenVisible);
    void run();
}

/** Stop following events: the session has ended. */
export function stopFeed(): void {
    running = false;
    removeEventListener("online", retryNow);
    removeEventListener("offline", abortCurrent);
    document.removeEventListener("visibilitychange", retryWhenVisible);
    abortCurrent();
    retryNow();
}

/** Try again at once. */
export function retryNow(): void {
    wake?.();
}

function abortCurrent(): void {
    current?.abort();
}

function retryWhenVisible(): void {
    if (document.visibilityState === "visible") retryNow();
}

async function run(): Promise<void> {
    while (running) {
        const ended = await follow();
        if (!running) return;
        if (ended === "regularly") continue; // the server ends each stream after a while
        feedState.value = "lost";
        retryAt.value = Date.now() + pause;
        await sleep(pause * (0.75 + Math.random() / 2));
        pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
        retryAt.value = null;
    }
}

function sleep(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
        const timer = setTimeout(resolve, milliseconds);
        wake = () => {
            clearTimeout(timer);
            resolve();
        };
    });
}

async function follow(): Promise<"regularly" | "broken"> {
    const controller = new AbortController();
    current = controller;
    let silence = setTimeout(() => controller.abort(), SILENCE_MS);
    const began = Date.now();
    try {
        const answer = await fetch(`${PREFIX}/ingot/v1/events`, {
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
            clearTimeout(silence);
            silence = setTimeout(() => controller.abort(), SILENCE_MS);
            heardAt.value = Date.now();
            if (feedState.value !== "connected") connect();
            parser.take(value);
        }
        return Date.now() - began > FIRST_PAUSE_MS * 4 ? "regularly" : "broken";
    } catch {
        feedError.value = "The connection to the server is lost.";
        return "broken";
    } finally {
        clearTimeout(silence);
        controller.abort();
    }
}

async function refuse(answer: Response): Promise<"broken"> {
    feedError.value = readMessage(await answer.text(), answer);
    if (answer.status === 401) sessionEnded();
    return "broken";
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
    for (const run of onConnect) run();
}

function dispatch(kind: string, id: string | null, data: string): void {
    if (id !== null) lastId = id;
    if (!data) return;
    const found = JSON.parse(data) as Partial<IngotEvent>;
    const event = { node_uuid: null, node_name: null, at: "", id: 0, ...found, kind } as IngotEvent;
    for (const listener of listeners) listener(event);
}
