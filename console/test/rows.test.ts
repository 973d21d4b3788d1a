import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";

import { FleetRows, locksOf } from "../src/fleet/rows";

/** Answers requests in the place of the server, when a test says so. */
class Server {
    readonly waiting: ((names: string[]) => void)[] = [];

    constructor() {
        globalThis.fetch = () =>
            new Promise((resolve) => {
                this.waiting.push((names) => {
                    const nodes = names.map((name) => ({ uuid: name, name }));
                    const found = { total: nodes.length, matching: nodes.length, offset: 0, limit: 100, nodes };
                    resolve(new Response(JSON.stringify(found)));
                });
            });
    }

    async answer(...names: string[]): Promise<void> {
        this.waiting.shift()?.(names);
        await pass(20);
    }
}

function pass(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
        setTimeout(resolve, milliseconds);
    });
}

test("what happens while the list is read has it read again", async () => {
    const [server, rows] = [new Server(), new FleetRows()];
    rows.ask({ filter: "", sort: "name" });
    rows.refresh(); // a node was enrolled, maybe after the server has looked
    await pass(20);
    equal(server.waiting.length, 1);
    await server.answer("old");
    await pass(1100);
    await server.answer("old", "new");
    deepEqual([rows.at(0)?.name, rows.at(1)?.name, rows.total.value], ["old", "new", 2]);
    equal(server.waiting.length, 0);
    rows.stop();
});

test("a lock is another one when it was taken at another time", () => {
    const row = (uuid: string, holder: string | null, at: string | null) => ({ uuid, reservation: holder, locked_at: at });
    equal(locksOf([row("a", "c1", "10:00"), row("b", null, null)]).size, 1);
    equal(locksOf([row("a", "c1", "10:00"), row("a", "c1", "10:01"), row("a", "c2", "10:01")]).size, 3);
});

test("a lock that was not shown before has the list read once more", async () => {
    const rows = new FleetRows();
    let reads = 0;
    globalThis.fetch = () => {
        reads += 1;
        const nodes = [{ uuid: "a", name: "a", reservation: "c1", locked_at: "10:00" }];
        return Promise.resolve(new Response(JSON.stringify({ total: 1, matching: 1, offset: 0, limit: 100, nodes })));
    };
    rows.ask({ filter: "", sort: "name" });
    await pass(5500);
    equal(reads, 2);
    rows.stop();
});
