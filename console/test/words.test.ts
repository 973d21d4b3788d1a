import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";

import { quote } from "../src/components/quote";
import { formatDuration, formatRelative, parseTime } from "../src/components/spans";
import { findVerb, refusalIn } from "../src/verbs/verbs";

test("durations are in the two greatest units", () => {
    deepEqual([0, 45, 200, 7500, 400_000].map(formatDuration), ["0 s", "45 s", "3 min 20 s", "2 h 5 min", "4 d 15 h"]);
});

test("short durations have tenths of seconds", () => {
    deepEqual([0.04, 0.36, 2, 9.94, 9.96].map(formatDuration), ["0 s", "0.4 s", "2 s", "9.9 s", "10 s"]);
});

test("times are counted from now, before and after", () => {
    deepEqual([-7_200_000, -90_000, 0, 90_000].map((at) => formatRelative(at, 0)), [
        "2 h ago",
        "1 min ago",
        "now",
        "in 1 min",
    ]);
});

test("times without a zone are UTC", () => {
    equal(parseTime("2026-03-01T08:15:02"), parseTime("2026-03-01T09:15:02+01:00"));
});

test("arguments are quoted for a shell", () => {
    deepEqual(["rack-1", "a b", "it's", ""].map(quote), ["rack-1", "'a b'", "'it'\\''s'", "''"]);
});

test("verbs are found by what answers name", () => {
    equal(findVerb("provision", "active"), "deploy");
    equal(findVerb("provision", "undeploy"), "undeploy");
    equal(findVerb("clear_maintenance", null), "clear_maintenance");
    equal(findVerb("none", null), null);
});

test("a verb says in which states it can be requested", () => {
    equal(refusalIn("deploy", "available"), null);
    equal(refusalIn("set_maintenance", "deploying"), null);
    equal(refusalIn("deploy", "active"), "Deploy is for nodes that are available, deploy failed; this one is active.");
});
