import { deepEqual } from "node:assert/strict";
import { test } from "node:test";

import { Parser } from "../src/live/parser";

function parse(...pieces: string[]): unknown[] {
    const found: unknown[] = [];
    const parser = new Parser((kind, id, data) => found.push([kind, id, data]));
    for (const piece of pieces) parser.take(piece);
    return found;
}

test("events are read from pieces that end anywhere", () => {
    deepEqual(parse('id: 7\nevent: po', 'wer\nda', 'ta: {"a":1}\n', "\nid: 8\n: heart", "beat\n\n"), [
        ["power", "7", '{"a":1}'],
        ["message", "8", ""],
    ]);
});

test("an event that is not whole is kept back", () => {
    deepEqual(parse("id: 7\ndata: 1\n"), []);
});

test("lines may end with a carriage return, and data may have several", () => {
    deepEqual(parse("data: 1\r\ndata: 2\r\n\r\n"), [["message", null, "1\n2"]]);
});
