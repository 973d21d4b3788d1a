import { equal, deepEqual } from "node:assert/strict";
import { test } from "node:test";

import type { FilterLanguage } from "../src/api/types";
import { offerFor } from "../src/fleet/offers";
import { findTerm, settle } from "../src/fleet/settle";

const values = (...names: string[]) => names.map((value) => ({ value, nodes: null }));

const LANGUAGE: FilterLanguage = {
    keys: [
        { key: "state", about: "its state", values: values("active", "available", "clean failed") },
        { key: "shard", about: "its shard", values: [] },
        { key: "maintenance", about: "whether", values: values("yes", "no") },
        { key: "since", about: "how long", values: values(">1h") },
    ],
};

const typed = (text: string): string => settle(text, text.length, LANGUAGE);

test("a term ends at a blank outside of quotes", () => {
    deepEqual(findTerm('rack state:"clean failed" x', 12), [5, 25]);
    deepEqual(findTerm("rack", 2), [0, 4]);
});

test("a value that is begun asks for all that begin so", () => {
    equal(typed("rack1 state:av"), "rack1 state:av*");
    equal(typed("-state:active,cl"), "-state:active,cl*");
});

test("a whole value is asked for as it is", () => {
    equal(typed("state:active"), "state:active");
    equal(typed("state:clean-failed"), "state:clean-failed");
    equal(typed("state:a*"), "state:a*");
});

test("what means nothing yet is left out", () => {
    equal(typed("rack1 state:"), "rack1");
    equal(typed("state:active,"), "state:active");
    equal(typed('rack1 state:"clean'), "rack1");
    equal(typed("rack1 maintenance:y"), "rack1");
    equal(typed("since:>1"), "");
    equal(typed("since:>1h30m"), "since:>1h30m");
});

test("what the server will refuse is sent, for its words", () => {
    equal(typed("bogus:x"), "bogus:x");
    equal(typed("state:nonsense"), "state:nonsense");
});

test("other terms are sent as they are", () => {
    equal(settle("state:av rack", 13, LANGUAGE), "state:av rack");
    equal(settle("state:av", 8, null), "state:av");
});

test("keys and values are offered", () => {
    deepEqual(offerFor("-s", LANGUAGE).map((one) => one.term), ["-state:", "-shard:", "-since:"]);
    deepEqual(offerFor("state:active,clean", LANGUAGE).map((one) => one.term), ['state:active,"clean failed"']);
});
