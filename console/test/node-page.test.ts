import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";

import { parseTime } from "../src/components/spans";
import { drawBars, groupAttempts, isLate, spellState, spellUsual } from "../src/node/bars";
import { findPath, spellStanding } from "../src/node/path";
import type { TimelineStep } from "../src/node/types";
import { formatSize } from "../src/components/sizes";
import { spellAction, spellFlow, spellOrigin } from "../src/node/words";

const BEGIN = parseTime("2026-03-01T08:00:00+00:00");

function at(seconds: number): string {
    return new Date(BEGIN + seconds * 1000).toISOString();
}

function step(name: string, values: Partial<TimelineStep> = {}): TimelineStep {
    return {
        interface: "deploy",
        step: name,
        state: "planned",
        origin: "driver",
        runner: "driver",
        priority: 0,
        args: {},
        attempt: 0,
        started_at: null,
        finished_at: null,
        duration: null,
        usual_duration: null,
        conductor: null,
        error: null,
        ...values,
    };
}

function ended(name: string, from: number, to: number, values: Partial<TimelineStep> = {}): TimelineStep {
    const times = { started_at: at(from), finished_at: at(to), duration: to - from };
    return step(name, { state: "done", attempt: 1, ...times, ...values });
}

function walk(state: string, target: string | null = null): string[] {
    const path = findPath(state, target);
    return [...path.main, ...path.branches].map((one) => `${one.state}: ${one.standing}`);
}

test("the path of a deployment has what is passed, what is now and what is to come", () => {
    deepEqual(walk("wait call-back", "active"), [
        "available: passed",
        "deploying: passed",
        "wait call-back: now",
        "active: ahead",
        "deploy hold: ahead",
        "deploy failed: ahead",
    ]);
});

test("a failure is a branch: the end of the path is not reached", () => {
    deepEqual(walk("deploy failed", "active").slice(2), [
        "wait call-back: passed",
        "active: ahead",
        "deploy hold: ahead",
        "deploy failed: now",
    ]);
    deepEqual(walk("error", "available").slice(0, 3), ["active: passed", "deleting: passed", "cleaning: ahead"]);
});

test("cleanings end where their target is", () => {
    deepEqual(walk("cleaning", "manageable").slice(0, 2), ["manageable: passed", "cleaning: now"]);
    deepEqual(walk("clean wait", "available").slice(0, 3), ["cleaning: passed", "clean wait: now", "available: ahead"]);
});

test("a path that ends where it began has one present", () => {
    deepEqual(walk("inspecting", "manageable").slice(0, 4), [
        "manageable: passed",
        "inspecting: now",
        "inspect wait: ahead",
        "manageable: ahead",
    ]);
});

test("machines at rest are on the path of their life", () => {
    deepEqual(walk("available"), ["enroll: passed", "manageable: passed", "available: now", "active: ahead"]);
    equal(walk("rescue").at(-1), "rescue: now");
    deepEqual(walk("something new"), ["something new: now"]);
});

test("a branch that is not taken is possible only", () => {
    equal(spellStanding({ state: "deploy failed", standing: "ahead" }, true), "possible");
    equal(spellStanding({ state: "active", standing: "ahead" }, false), "to come");
});

test("attempts of a step are one row, a step that runs again is another", () => {
    const steps = [
        ended("erase", 0, 5, { state: "failed" }),
        ended("erase", 6, 9, { attempt: 2 }),
        ended("write", 9, 20),
        ended("erase", 20, 30),
        step("boot"),
    ];
    deepEqual(
        groupAttempts(steps).map((row) => [row.label, row.attempts.length, row.last.state]),
        [
            ["deploy.erase", 2, "done"],
            ["deploy.write", 1, "done"],
            ["deploy.erase", 1, "done"],
            ["deploy.boot", 1, "planned"],
        ],
    );
});

test("bars have one scale, and an attempt of its own each", () => {
    const rows = groupAttempts([
        ended("erase", 0, 20, { state: "failed" }),
        ended("erase", 30, 50, { attempt: 2, usual_duration: 10 }),
        ended("write", 50, 100),
    ]);
    deepEqual(drawBars(rows, BEGIN + 900_000), [
        {
            pieces: [
                { x: 0, width: 200, tone: "bad" },
                { x: 300, width: 200, tone: "good" },
            ],
            usual: { x: 300, width: 100 },
        },
        { pieces: [{ x: 500, width: 500, tone: "good" }], usual: null },
    ]);
});

test("a step under way grows, and what is to come follows with what it usually takes", () => {
    const rows = groupAttempts([
        step("write", { state: "waiting", attempt: 1, started_at: at(0), usual_duration: 60 }),
        step("boot", { usual_duration: 40 }),
    ]);
    deepEqual(drawBars(rows, BEGIN + 30_000), [
        { pieces: [{ x: 0, width: 300, tone: "busy" }], usual: { x: 0, width: 600 } },
        { pieces: [], usual: { x: 600, width: 400 } },
    ]);
});

test("a bar is never too short to be seen, and stays in its box", () => {
    const [short, last] = drawBars(groupAttempts([ended("a", 0, 0), ended("b", 0, 1000), ended("c", 1000, 1000)]), 0)
        .filter((_, place) => place !== 1)
        .flatMap((bar) => bar.pieces);
    deepEqual([short?.x, short?.width, last?.x, last?.width], [0, 3, 997, 3]);
});

test("a run without a step has no bar", () => {
    deepEqual(drawBars([], BEGIN), []);
});

test("late is what takes twice as long as usual and a minute more", () => {
    deepEqual([isLate(100, 50), isLate(111, 50), isLate(600, 300), isLate(601, 300), isLate(9, null)], [
        false,
        true,
        false,
        true,
        false,
    ]);
    equal(spellUsual(45, 60), "usually 1 min");
    equal(spellUsual(300, 60), "usually 1 min, 4 min more");
    equal(spellUsual(300, null), null);
});

test("states, flows, origins and sizes have words", () => {
    equal(spellState("polling"), "waits for the hardware");
    equal(spellState("done"), "done");
    equal(spellFlow("automated_clean"), "Automated cleaning");
    equal(spellFlow("another"), "another");
    equal(spellOrigin("template CUSTOM_RAID"), spellOrigin("template"));
    equal(spellOrigin("elsewhere"), "elsewhere");
    deepEqual([0, 999, 1500, 2_340_000, 123_456_789].map(formatSize), ["0 B", "999 B", "1.5 kB", "2.34 MB", "123 MB"]);
});

test("a request is its rule, with its verb or the first of its fields", () => {
    const sent = { method: "PUT", path: "/v1/nodes/rack-1" };
    const provision = "baremetal:node:set_provision_state";
    equal(spellAction({ action: provision, request: { ...sent, target: "active" } }), "set provision state: active");
    const fields = ["/name", "/owner", "/extra/a", "/extra/b"];
    equal(
        spellAction({ action: "baremetal:node:update", request: { ...sent, fields } }),
        "update: /name, /owner, /extra/a, 1 more",
    );
    equal(spellAction({ action: "unknown", request: sent }), "unknown");
});
