import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";

import { readRest } from "../src/live/list";
import { bodyOf, changedTraits, changesOf, creationOf, draftOf, fieldOf, findWrong, moveStep, newStep, planOf, splitNames, traitsOf } from "../src/plans/draft";
import { compareAge, findChosen, findOffer, type Offer, type Saved } from "../src/plans/kinds";
import { findMisfits, readObject, readTexts, readValue, writeValue } from "../src/plans/values";

const RUNBOOK: Saved = {
    uuid: "u",
    name: "wipe",
    created_at: null,
    updated_at: null,
    description: null,
    disable_ramdisk: true,
    public: false,
    owner: null,
    traits: ["CUSTOM_A", "CUSTOM_B"],
    steps: [
        { interface: "deploy", step: "second", args: {}, order: 20 },
        { interface: "deploy", step: "first", args: { passes: 1 }, order: 10 },
    ],
};

function offer(type: string | null, step: string): Offer {
    const rest = { runner: "driver", priority: 0, offered_at: null, argsinfo: {}, abortable: true, requires_ramdisk: true };
    return { interface: type, step, ...rest };
}

function refusal(run: () => unknown): string {
    try {
        run();
        return "";
    } catch (error) {
        return error instanceof Error ? error.message : "";
    }
}

test("a text means a value of the argument's type", () => {
    deepEqual(
        [readValue("8", "string"), readValue("8", "integer"), readValue("true", "boolean"), readValue("[1]", "array")],
        ["8", 8, true, [1]],
    );
    deepEqual([readValue("8"), readValue("eight")], [8, "eight"]);
    equal(refusal(() => readValue("1.5", "integer")), "Write a whole number.");
    equal(refusal(() => readValue("[1]", "object")), "Write an object in JSON: {…}.");
});

test("a value is written so that it is read again as it is", () => {
    const values: [unknown, string?][] = [["a", "string"], ["8"], ["a b"], [8, "integer"], [[{ a: 1 }], "array"], [null]];
    for (const [value, type] of values) deepEqual(readValue(writeValue(value, type), type), value);
});

test("empty texts are no arguments, and wrong ones are named", () => {
    deepEqual(readTexts({ a: " ", b: "x", c: "2" }, { b: { type: "number" }, c: { type: "number" } }), {
        args: { c: 2 },
        wrong: { b: "Write a number." },
    });
});

test("all arguments at once are an object", () => {
    deepEqual(readObject('{"a": 1}'), { a: 1 });
    deepEqual(readObject(""), {});
    equal(refusal(() => readObject("[]")).startsWith("Write an object"), true);
});

test("arguments are compared with what the step takes", () => {
    deepEqual(findMisfits({ a: "1", x: 1, n: null }, { a: { type: "integer" }, b: { required: true }, n: { type: "integer" } }), {
        a: "Write a whole number.",
        x: "The step takes: a, b, n.",
        b: "Needed.",
    });
});

test("the steps of a runbook are in their order, and are numbered anew", () => {
    const draft = draftOf(RUNBOOK);
    deepEqual(bodyOf("runbook", draft), {
        name: "wipe",
        description: null,
        disable_ramdisk: true,
        public: false,
        owner: null,
        extra: {},
        steps: [
            { interface: "deploy", step: "first", args: { passes: 1 }, order: 1 },
            { interface: "deploy", step: "second", args: {}, order: 2 },
        ],
    });
    deepEqual(planOf("clean", draft), {
        clean_steps: [
            { interface: "deploy", step: "first", args: { passes: 1 } },
            { interface: "deploy", step: "second", args: {} },
        ],
        disable_ramdisk: true,
    });
});

test("only what differs is sent", () => {
    const draft = draftOf(RUNBOOK);
    deepEqual(changesOf("runbook", RUNBOOK, draft), []);
    equal(changedTraits("runbook", RUNBOOK, { ...draft, traits: "CUSTOM_B, CUSTOM_A" }), null);
    deepEqual(changesOf("runbook", RUNBOOK, { ...draft, description: "x" }), [{ op: "add", path: "/description", value: "x" }]);
    deepEqual(changedTraits("runbook", RUNBOOK, { ...draft, traits: "CUSTOM_C" }), ["CUSTOM_C"]);
});

test("owner and extra are sent when they differ, and to make one only if they are given", () => {
    const draft = draftOf({ ...RUNBOOK, owner: "p1", extra: { rack: 4 } });
    equal(draft.owner, "p1");
    deepEqual(changesOf("runbook", { ...RUNBOOK, owner: "p1", extra: { rack: 4 } }, { ...draft, owner: " ", extra: "" }), [
        { op: "add", path: "/extra", value: {} },
        { op: "add", path: "/owner", value: null },
    ]);
    const made = creationOf("runbook", draft);
    deepEqual([made["owner"], made["extra"]], ["p1", { rack: 4 }]);
    const bare = creationOf("runbook", { ...draft, owner: "", extra: " " });
    deepEqual(["owner" in bare, "extra" in bare], [false, false]);
    deepEqual(Object.keys(findWrong("runbook", { ...draft, public: true, extra: "[1]" })), ["extra", "owner"]);
});

test("of two states of a plan the later one is known", () => {
    const made = { ...RUNBOOK, created_at: "2026-01-01T00:00:00+00:00" };
    const changed = { ...made, updated_at: "2026-01-02T00:00:00+00:00" };
    deepEqual([compareAge(made, changed), compareAge(changed, made), compareAge(made, made)], [-1, 1, 0]);
});

test("what keeps a draft from being saved is named by field", () => {
    const draft = draftOf(null);
    deepEqual(Object.keys(findWrong("template", draft)), ["name", "steps.0"]);
    const step = { ...newStep(), step: "erase", priority: "-1", wrong: { a: "Write a number." } };
    const twice = { ...draft, name: "CUSTOM_X", steps: [step, { ...step, priority: "1", wrong: {} }] };
    deepEqual(findWrong("template", twice), {
        "steps.0.priority": "A whole number, 0 or more.",
        "steps.0.args.a": "Write a number.",
        "steps.1": "Each step can be named only once.",
    });
    deepEqual(Object.keys(findWrong("runbook", { ...draftOf(RUNBOOK), name: "a b", traits: "x" })), ["name", "traits"]);
});

test("messages of the server are shown at the field that they name", () => {
    equal(fieldOf("Invalid name: gold. A trait is CUSTOM_…"), "name");
    equal(fieldOf("name: a b is an invalid name. A name has …"), "name");
    equal(fieldOf("Schema error for runbook: steps.1.priority: 'x' is not …"), "steps.1.priority");
    equal(fieldOf("Schema error for template: steps.0.args: 1 is not of type 'object'"), "steps.0");
    equal(fieldOf("Invalid steps: deploy.x. Here each step can be named only once."), "steps");
    equal(fieldOf("A deploy template with name CUSTOM_X already exists."), "name");
    equal(fieldOf("Operation not permitted."), null);
});

test("steps are moved, but not beyond the ends", () => {
    const steps = ["a", "b"].map((step) => ({ ...newStep(), step }));
    const names = (at: number, by: number) => moveStep(steps, at, by).map((one) => one.step);
    deepEqual([names(0, 1), names(1, 1), names(0, -1)], [["b", "a"], ["a", "b"], ["a", "b"]]);
});

test("an offer of any interface is found after that of the step's own", () => {
    const offers = [offer(null, "wait"), offer("bios", "wait"), offer("raid", "create")];
    equal(findOffer(offers, { interface: "bios", step: "wait" })?.interface, "bios");
    equal(findOffer(offers, { interface: "deploy", step: "wait" })?.interface, null);
    equal(findOffer(offers, { interface: "deploy", step: "create" }), undefined);
});

test("names may be separated in any way", () => {
    deepEqual(splitNames(" CUSTOM_A,CUSTOM_B  CUSTOM_A\n"), ["CUSTOM_A", "CUSTOM_B"]);
});

test("what is edited stays when others rename or delete it", () => {
    const renamed = { ...RUNBOOK, name: "erase" };
    const another = { ...RUNBOOK, uuid: "v" };
    deepEqual(findChosen([RUNBOOK], "wipe", null), { saved: RUNBOOK, isGone: false });
    deepEqual(findChosen([renamed, another], "wipe", RUNBOOK), { saved: renamed, isGone: false });
    deepEqual(findChosen([another], "wipe", RUNBOOK), { saved: RUNBOOK, isGone: true });
    deepEqual(findChosen([another], "", RUNBOOK), null);
});

test("a draft is for nodes with its traits, as far as they are any", () => {
    deepEqual(traitsOf("template", { ...draftOf(null), name: "CUSTOM_RAID" }), ["CUSTOM_RAID"]);
    deepEqual(traitsOf("template", { ...draftOf(null), name: "raid" }), []);
    deepEqual(traitsOf("runbook", { ...draftOf(RUNBOOK), traits: "CUSTOM_A custom_b" }), ["CUSTOM_A"]);
});

test("a list is read to its end, wherever the server believes to be", async () => {
    const asked: string[] = [];
    globalThis.fetch = (url) => {
        asked.push(String(url));
        return Promise.resolve(new Response(JSON.stringify({ runbooks: [asked.length], ...(asked.length < 3 ? { next: "http://10.0.0.1/v1/runbooks?limit=1&marker=m" } : {}) })));
    };
    const first = { runbooks: [0], next: "http://10.0.0.1/v1/runbooks?limit=1&marker=a" };
    deepEqual(await readRest("/v1/runbooks?detail=True", "runbooks", first, new AbortController().signal), [0, 1, 2, 3]);
    equal(asked[0], "/v1/runbooks?limit=1&marker=a");
});
