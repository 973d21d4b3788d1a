import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";

import { quoteValue } from "../src/fleet/quote";
import { commandOf } from "../src/verbs/commands";
import { whyNot } from "../src/verbs/hindrance";
import { changesOf, isOther } from "../src/verbs/image";
import type { VerbNode } from "../src/verbs/request";
import { VerbRun } from "../src/verbs/run";
import { readMatching } from "../src/verbs/targets";
import { verbOf } from "../src/verbs/verbs";

const named = (...names: string[]): VerbNode[] => names.map((name) => ({ uuid: `u-${name}`, name }));
const many = (count: number): string[] => Array.from({ length: count }, (_one, at) => String(at).padStart(5, "0"));

function answer(found: unknown, status = 200): Promise<Response> {
    return Promise.resolve(new Response(JSON.stringify(found), { status }));
}

/** Serve a list of the fleet, which `change` may change before each answer. */
function serveFleet(list: string[], most: number, change: (list: string[], turn: number) => string[] = (same) => same): void {
    let [now, turn] = [list, 0];
    globalThis.fetch = (url) => {
        now = [...change(now, (turn += 1))].sort();
        const asked = new URL(String(url), "http://ingot.example.com").searchParams;
        equal(asked.get("sort"), "uuid");
        const [offset, limit] = [Number(asked.get("offset")), Math.min(most, Number(asked.get("limit")))];
        const nodes = now.slice(offset, offset + limit).map((uuid) => ({ uuid, name: null, provision_state: "active" }));
        return answer({ total: now.length, matching: now.length, offset, limit, nodes });
    };
}

const bodies = (requests: { body?: unknown }[]): Record<string, unknown>[] => requests.map((one) => one.body as Record<string, unknown>);

test("a command never acts on nodes that were excluded", () => {
    const matching = { filter: "state:active", count: 4, except: ["u-x"] };
    const command = commandOf({ verb: "rebooting", matching }, {}, named("a", "b", "c"));
    deepEqual(bodies(command?.requests ?? []).map((body) => [body["nodes"], body["matching"]]), [[["u-a", "u-b", "u-c"], undefined]]);
    equal(commandOf({ verb: "rebooting", matching }, {}, null), null);
});

test("a command for the whole fleet has a filter that the server takes", () => {
    const command = commandOf({ verb: "rebooting", matching: { filter: "", count: 3, except: [] } }, {}, null);
    deepEqual(bodies(command?.requests ?? [])[0]?.["matching"], "uuid:*");
});

test("commands for many nodes are requests that the server takes", () => {
    const command = commandOf({ verb: "rebooting", matching: { filter: "", count: 250 } }, {}, named(...many(250)));
    deepEqual(bodies(command?.requests ?? []).map((body) => (body["nodes"] as string[]).length), [100, 100, 50]);
    equal(command?.cli, undefined);
});

test("all that match are read, however few the server sends at a time", async () => {
    for (const most of [1, 2, 100, 1000]) {
        serveFleet(many(250), most);
        deepEqual((await readMatching("")).map((node) => node.uuid), many(250));
    }
});

test("nodes that stay are read though others leave the list meanwhile", async () => {
    serveFleet(many(1000), 100, (list, turn) => (turn > 1 && turn < 5 ? list.slice(40) : list));
    const found = new Set((await readMatching("state:deploying")).map((node) => node.uuid));
    deepEqual(many(1000).slice(120).filter((uuid) => !found.has(uuid)), []);
});

test("nodes that come while the list is read are no duplicates", async () => {
    serveFleet(many(300), 100, (list, turn) => (turn === 2 ? [...list, "00000a", "00001a"] : list));
    const found = (await readMatching("")).map((node) => node.uuid);
    equal(new Set(found).size, found.length);
    deepEqual(many(300).filter((uuid) => !found.includes(uuid)), []);
});

test("a run that is interrupted keeps its results, and goes on with the rest", async () => {
    let refuses = false;
    const asked: string[][] = [];
    globalThis.fetch = (_url, options) => {
        const { nodes } = JSON.parse(String(options?.body)) as { nodes: string[] };
        if (refuses) return answer({ error_message: { faultstring: "Too busy" } }, 503);
        asked.push(nodes);
        refuses = asked.length === 2;
        return answer({ results: nodes.map((node) => ({ node, name: null, accepted: true, status: 202, reason: null })) });
    };
    const run = new VerbRun(verbOf("rebooting"), {}, many(250));
    await run.go();
    deepEqual([run.results.value.length, run.rest.value.length, run.unsure.value, run.running.value], [200, 50, 50, false]);
    equal(run.failure.value, "Too busy");
    refuses = false;
    await run.go();
    deepEqual([run.results.value.length, run.rest.value.length, run.failure.value, run.isComplete], [250, 0, null, true]);
    deepEqual(asked.flat(), many(250));
});

test("a run that is stopped asks no node after the request that is under way", async () => {
    const run = new VerbRun(verbOf("rebooting"), {}, many(250));
    globalThis.fetch = (_url, options) => {
        run.stop();
        const { nodes } = JSON.parse(String(options?.body)) as { nodes: string[] };
        return answer({ results: nodes.map((node) => ({ node, name: null, accepted: true, status: 202, reason: null })) });
    };
    await run.go();
    deepEqual([run.results.value.length, run.rest.value.length, run.isComplete], [100, 150, false]);
});

test("a verb cannot be started while another image is typed than is saved", () => {
    const able = { permission: { allowed: true, reason: null }, missing: null, isWrong: false, isImageChanged: false };
    equal(whyNot(able), null);
    equal(whyNot({ ...able, isImageChanged: true }), "Save the image first.");
    equal(whyNot({ ...able, permission: { allowed: false, reason: "No." }, isImageChanged: true }), "No.");
    const info = { image_source: "http://a/old.img", image_checksum: "0a" };
    equal(isOther(info, { source: " http://a/old.img ", checksum: "0a" }), false);
    equal(isOther(info, { source: "http://a/new.img", checksum: "0a" }), true);
});

test("the checksum of another image does not stay", () => {
    const info = { image_source: "old", image_checksum: "0a", image_os_hash_algo: "sha256" };
    const change = (source: string, checksum: string): string[] =>
        changesOf(info, { source, checksum }).map(({ op, path, value }) => [op, path.replace("/instance_info/", ""), value].filter(Boolean).join(" "));
    deepEqual(change("new", "f".repeat(128)), [
        "add image_source new",
        `add image_os_hash_value ${"f".repeat(128)}`,
        "add image_os_hash_algo sha512",
        "remove image_checksum",
    ]);
    deepEqual(change("new", ""), ["add image_source new", "remove image_os_hash_algo", "remove image_checksum"]);
    deepEqual(change("", "0a"), ["remove image_source"]);
});

test("values of a filter are quoted where they must be", () => {
    deepEqual(['c-1', "a b", 'a "b"', "a*", ""].map(quoteValue), ["c-1", '"a b"', '"a \\"b\\""', '"a*"', '""']);
});
