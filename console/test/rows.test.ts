import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";

import { FleetRows } from "../src/fleet/rows";

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
