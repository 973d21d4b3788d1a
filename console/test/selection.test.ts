import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";

import { session, type Session } from "../src/api/session";
import { FleetRows } from "../src/fleet/rows";
import { enclose, FleetSelection } from "../src/fleet/selection";

const names = (count: number): string[] => Array.from({ length: count }, (_one, at) => `n${String(at).padStart(4, "0")}`);

/** Serve a list by `most` rows at a time; return what changes it. */
function serve(list: string[], most = 1000): (next: string[]) => void {
    let now = list;
    globalThis.fetch = (url) => {
        const asked = new URL(String(url), "http://ingot.example.com").searchParams;
        const [offset, limit] = [Number(asked.get("offset")), Math.min(most, Number(asked.get("limit")))];
        const nodes = now.slice(offset, offset + limit).map((uuid) => ({ uuid, name: uuid, reservation: null }));
        return Promise.resolve(new Response(JSON.stringify({ total: now.length, matching: now.length, offset, limit, nodes })));
    };
    return (next) => {
        now = next;
    };
}

async function open(): Promise<FleetRows> {
    const rows = new FleetRows();
    rows.ask({ filter: "", sort: "name" });
    await new Promise((resolve) => {
        setTimeout(resolve, 50);
    });
    return rows;
}

const chosen = (selection: FleetSelection): string[] => (selection.targets("").nodes ?? []).map((node) => node.uuid);

test("a page is full though the server sends few rows at a time", async () => {
    serve(names(90), 40);
    const rows = await open();
    deepEqual(names(90).map((_name, at) => rows.at(at)?.uuid), names(90));
    rows.stop();
});

test("a range has also the rows that were never in view", async () => {
    serve(names(900), 70);
    const rows = await open();
    const selection = new FleetSelection(rows, "");
    selection.clear();
    await selection.toggle("n0010", 10, false);
    await selection.toggle("n0800", 800, true);
    deepEqual(chosen(selection), names(900).slice(10, 801));
    rows.stop();
});

test("a range begins at its node, wherever that has moved", async () => {
    const change = serve(names(900));
    const rows = await open();
    const selection = new FleetSelection(rows, "");
    selection.clear();
    await selection.toggle("n0010", 10, false);
    change(names(900).slice(5));
    await selection.toggle("n0800", 795, true);
    deepEqual(chosen(selection), names(900).slice(10, 801));
    rows.stop();
});

test("a range begins nowhere after the order has changed", async () => {
    serve(names(50));
    const rows = await open();
    const selection = new FleetSelection(rows, "");
    selection.clear();
    await selection.toggle("n0010", 10, false);
    selection.reorder();
    await selection.toggle("n0020", 20, true);
    deepEqual(chosen(selection), ["n0010", "n0020"]);
    selection.clear();
    await selection.toggle("n0030", 30, true);
    deepEqual(chosen(selection), ["n0030"]);
    rows.stop();
});

test("a user who comes back to a filter finds what was selected there, and no other user does", async () => {
    session.value = { authenticated: true } as Session;
    serve(names(50));
    const rows = await open();
    const selection = new FleetSelection(rows, "state:active");
    await selection.toggle("n0010", 10, false);
    equal(new FleetSelection(rows, "state:active").count, 1);
    equal(new FleetSelection(rows, "state:failed").count, 0);
    session.value = { authenticated: false } as Session;
    equal(new FleetSelection(rows, "state:active").count, 0);
    rows.stop();
});

test("what two nodes enclose does not depend on which comes first", () => {
    const rows = ["a", "b", "c", "d"].map((uuid) => ({ uuid }));
    deepEqual(enclose(rows, "c", "b"), [{ uuid: "b" }, { uuid: "c" }]);
    equal(enclose(rows, "c", "x"), null);
});
