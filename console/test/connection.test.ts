import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";

import { request } from "../src/api/client";
import { feedError, feedState, startFeed, stopFeed, subscribe, whenConnected } from "../src/live/feed";
import { isSameList, Reader } from "../src/live/resource";

type Handler = (url: string, init: RequestInit) => Promise<Response>;

const HIDDEN_MS = 20_000;

interface Globals {
    fetch: Handler;
    document: EventTarget & { visibilityState: string };
    setTimeout: (run: () => void, milliseconds?: number) => unknown;
    addEventListener: () => void;
    removeEventListener: () => void;
}

const globals = globalThis as unknown as Globals;
const realTimeout = globals.setTimeout;
globals.document = Object.assign(new EventTarget(), { visibilityState: "visible" });
globals.addEventListener = globals.removeEventListener = () => undefined;

/** Let all that is under way without a timer come to its end. */
const settle = (): Promise<void> => new Promise((resolve) => void realTimeout(resolve, 20));

function look(visibility: string): void {
    globals.document.visibilityState = visibility;
    globals.document.dispatchEvent(new Event("visibilitychange"));
}

/** A server whose stream stands until the client ends it. */
function serve(...blocks: string[]): RequestInit[] {
    const sent: RequestInit[] = [];
    globals.fetch = (_url, init) => {
        sent.push(init);
        const body = new ReadableStream({
            start(controller): void {
                for (const block of blocks) controller.enqueue(new TextEncoder().encode(block));
                init.signal?.addEventListener("abort", () => controller.error(new Error("aborted")));
            },
        });
        return Promise.resolve(new Response(body));
    };
    return sent;
}

test("a user who may not follow events is not asked again and again", async () => {
    let asked = 0;
    globals.fetch = () => {
        asked += 1;
        return Promise.resolve(new Response('{"error_message": "{\\"faultstring\\": \\"not you\\"}"}', { status: 403 }));
    };
    startFeed();
    await settle();
    deepEqual([feedState.value, feedError.value, asked], ["refused", "not you", 1]);
    stopFeed();
    await settle();
});

test("a tab that stays hidden gives its stream back, and goes on where it was", async () => {
    const sent = serve("id: 7\nevent: power\ndata: {}\n\n");
    const [seen, connected]: [string[], boolean[]] = [[], []];
    const ends = [subscribe((event) => seen.push(event.kind)), whenConnected((isAgain) => connected.push(isAgain))];
    startFeed();
    await settle();
    equal(feedState.value, "connected");

    const timers: (() => void)[] = [];
    globals.setTimeout = (run, milliseconds = 0) =>
        milliseconds === HIDDEN_MS ? timers.push(run) : realTimeout(run, milliseconds);
    look("hidden");
    equal(feedState.value, "connected"); // for a short look at another tab
    timers[0]?.();
    await settle();
    deepEqual([feedState.value, sent.length, sent[0]?.signal?.aborted], ["paused", 1, true]);

    look("visible");
    await settle();
    globals.setTimeout = realTimeout;
    equal(feedState.value, "connected");
    equal((sent[1]?.headers as Record<string, string>)["Last-Event-ID"], "7");
    deepEqual([seen, connected], [["power", "power"], [false, true]]);
    for (const end of ends) end();
    stopFeed();
    await settle();
});

test("what is asked when the connection is back ends a request that is never answered", async () => {
    serve(": heartbeat\n\n");
    startFeed();
    await settle();
    stopFeed();
    await settle();
    const reader = new Reader<number>("/ingot/v1/overview", () => true);
    let isFirst = true;
    const stream = globals.fetch;
    globals.fetch = (url, init) => {
        if (url.endsWith("/events")) return stream(url, init);
        if (!isFirst) return Promise.resolve(new Response("5"));
        isFirst = false;
        return new Promise((_resolve, reject) => init.signal?.addEventListener("abort", () => reject(new Error("ended"))));
    };
    reader.start();
    await settle();
    deepEqual([reader.data.value, reader.loading.value], [null, true]);
    startFeed();
    await settle();
    deepEqual([reader.data.value, reader.error.value, reader.loading.value], [5, null, false]);
    reader.stop();
    stopFeed();
    await settle();
});

test("what is known is read where it is now", async () => {
    const asked: string[] = [];
    globals.fetch = (url) => {
        asked.push(url);
        return Promise.resolve(new Response('{"uuid": "u"}'));
    };
    const reader = new Reader<{ uuid: string }>("/v1/nodes/old", () => true, 0, (known) => `/v1/nodes/${known.uuid}`);
    reader.start();
    await settle();
    reader.reload();
    await settle();
    reader.stop();
    deepEqual(asked, ["/v1/nodes/old", "/v1/nodes/u"]);
});

test("a request that is not answered in time says so, and what that may mean", async () => {
    globals.fetch = (_url, init) =>
        new Promise((_resolve, reject) => init.signal?.addEventListener("abort", () => reject(init.signal?.reason)));
    const why = async (method: "GET" | "PUT"): Promise<string> =>
        request(method, "/v1/nodes", { limit: 10 }).then(String, (error: Error) => error.message);
    const waiting = [why("GET"), why("PUT")];
    await new Promise((resolve) => void realTimeout(() => resolve(null), 100)); // Node waits for no time limit alone
    deepEqual(await Promise.all(waiting), [
        "The server has not answered within 0.01 seconds.",
        "The server has not answered within 0.01 seconds. What was requested may have been done all the same.",
    ]);
});

test("a list that becomes longer is the same list", () => {
    equal(isSameList("/runs?limit=20", "/runs?limit=40"), true);
    equal(isSameList("/history?detail=true&limit=20", "/history?detail=true&limit=40"), true);
    equal(isSameList("/runs?limit=20", "/other?limit=20"), false);
});
