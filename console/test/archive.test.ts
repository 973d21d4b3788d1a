import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";

import { readArchive, readTar, textOfFile } from "../src/node/archive";

function bytes(text: string): Uint8Array {
    return new TextEncoder().encode(text);
}

/** Return a header of a tar archive, and the content filled up to whole blocks. */
function entry(name: string, content: string, kind = "0", folder = ""): Uint8Array {
    const made = new Uint8Array(512 + Math.ceil(content.length / 512) * 512);
    made.set(bytes(name), 0);
    made.set(bytes(content.length.toString(8).padStart(11, "0")), 124);
    made.set(bytes(kind), 156);
    made.set(bytes("ustar"), 257);
    made.set(bytes(folder), 345);
    made.set(bytes(content), 512);
    return made;
}

function join(...parts: Uint8Array[]): Uint8Array {
    return new Uint8Array(parts.flatMap((part) => [...part]));
}

const ARCHIVE = join(
    entry("logs/", "", "5"),
    entry("kernel", "a".repeat(600), "0", "logs"),
    entry("ignored", "30 mtime=1.5\n22 path=very/long/name\n", "x"),
    entry("short", "b"),
    entry("././@LongLink", "another/long/name\0", "L"),
    entry("short", "c\0"),
    new Uint8Array(1024),
);

test("the files of an archive are found with their whole names", () => {
    deepEqual(
        readTar(ARCHIVE).map(({ name, content }) => [name, content.length]),
        [
            ["logs/kernel", 600],
            ["very/long/name", 1],
            ["another/long/name", 2],
        ],
    );
});

test("texts are recognized", () => {
    deepEqual(readTar(ARCHIVE).slice(1).map(textOfFile), ["b", null]);
});

test("an archive is unpacked, and one that is cut off ends where it does", async () => {
    const packed = new Blob([ARCHIVE as Uint8Array<ArrayBuffer>]).stream().pipeThrough(new CompressionStream("gzip"));
    equal((await readArchive(await new Response(packed).blob())).length, 3);
    deepEqual(readTar(ARCHIVE.subarray(0, 700)).map(({ name }) => name), []);
});
