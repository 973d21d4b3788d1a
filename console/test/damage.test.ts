import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";

import { noteServerTime, serverNow } from "../src/live/clock";
import { describeStatus } from "../src/node/serial";
import { load } from "../src/storage";

function store(text: string | null): void {
    (globalThis as unknown as { localStorage: object }).localStorage = { getItem: () => text };
}

test("a preference that is damaged counts for nothing", () => {
    const found = [null, "[", "null", "{}", '"x"', '["name"]'].map((text) => {
        store(text);
        return load("columns", ["all"]);
    });
    deepEqual(found, [["all"], ["all"], ["all"], ["all"], ["all"], ["name"]]);
    store('"purple"');
    equal(
        load("theme", "auto", (value) => value === "dark"),
        "auto",
    );
});

test("a state that only a newer server knows is shown as it is", () => {
    const status = { type: "status" as const, reason: null, mode: "read" as const, writer: null, readers: 1 };
    deepEqual(describeStatus({ ...status, state: "warming up" as "open" }), { text: "warming up", tone: "waiting" });
});

test("times are compared with the clock of the server, unless both are about the same", () => {
    noteServerTime(new Date(Date.now() + 3_600_000).toUTCString());
    equal(Math.round((serverNow() - Date.now()) / 10_000), 360);
    noteServerTime(new Date(Date.now() - 500).toUTCString());
    equal(Math.abs(serverNow() - Date.now()) < 100, true);
    noteServerTime(null);
});
