import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";

import {
    describeStatus,
    describeUsers,
    Exit,
    findRunning,
    pauseAfter,
    readEnding,
    split,
    type KeyPress,
    type Status,
} from "../src/node/serial";

const STATUS: Status = { type: "status", state: "open", reason: null, mode: "read", writer: null, readers: 1 };

function press(key: string, more: Partial<KeyPress> = {}): KeyPress {
    return { type: "keydown", key, ctrlKey: false, shiftKey: false, altKey: false, metaKey: false, ...more };
}

test("the end of a console is said in words, with the server's reason", () => {
    equal(
        readEnding(4410, "the console was switched off").text,
        "The console was switched off, or the instance was deleted. The server says: the console was switched off.",
    );
    equal(readEnding(4408, "").text, "This browser takes too slowly what the machine says.");
    equal(readEnding(1006, "").text, "The connection to the server is lost.");
});

test("a page comes back on its own where that helps, and waits longer each time", () => {
    deepEqual([1012, 4401, 4408, 4500, 1006].map((code) => pauseAfter(readEnding(code, ""), 0)), [0.5, 0.5, 2, 30, 1]);
    deepEqual([1000, 1003, 4409, 4410].map((code) => pauseAfter(readEnding(code, ""), 0)), [null, null, null, null]);
    deepEqual([1, 3, 99].map((failures) => pauseAfter(readEnding(1006, ""), failures)), [2, 8, 60]);
});

test("a status says how the console is, and who types", () => {
    deepEqual(describeStatus(STATUS), { text: "Connected", tone: "good" });
    deepEqual(describeStatus({ ...STATUS, state: "lost", reason: "no answer for 30 s" }), {
        text: "The BMC does not answer; the conductor tries again: no answer for 30 s",
        tone: "bad",
    });
    equal(describeUsers(STATUS), "Read only, 1 reader");
    equal(describeUsers({ ...STATUS, writer: "ada", readers: 3 }), "ada types, 3 readers");
    equal(describeUsers({ ...STATUS, mode: "write", writer: "ada", readers: 2 }), "You type, 2 readers");
});

test("what is pasted is sent in parts", () => {
    deepEqual(split(new Uint8Array([1, 2, 3, 4, 5]), 2).map((part) => [...part]), [[1, 2], [3, 4], [5]]);
    deepEqual(split(new Uint8Array(), 2), []);
});

test("Tab is typed, and moves on after Escape", () => {
    const exit = new Exit();
    equal(exit.read(press("Tab"), true), "typed");
    equal(exit.read(press("Escape"), true), "typed");
    equal(exit.read(press("Escape", { type: "keyup" }), true), "typed");
    equal(exit.read(press("Tab"), true), "moves");
    equal(exit.read(press("Tab"), true), "typed");
});

test("Shift between Escape and Tab moves back; another key ends it", () => {
    const exit = new Exit();
    exit.read(press("Escape"), true);
    exit.read(press("Shift", { shiftKey: true }), true);
    equal(exit.read(press("Tab", { shiftKey: true }), true), "moves");
    exit.read(press("Escape"), true);
    exit.read(press("a"), true);
    equal(exit.read(press("Tab"), true), "typed");
});

test("who only reads leaves with Tab alone; Ctrl+Shift+E always leaves", () => {
    equal(new Exit().read(press("Tab"), false), "moves");
    equal(new Exit().read(press("E", { ctrlKey: true, shiftKey: true }), true), "leaves");
    equal(new Exit().read(press("e", { ctrlKey: true }), true), "typed");
});

test("the step that runs is found, and the one after it", () => {
    const step = (name: string, started_at: string | null, finished_at: string | null) => ({ name, started_at, finished_at });
    const [done, runs, comes] = [step("a", "1", "2"), step("b", "2", null), step("c", null, null)];
    deepEqual(findRunning([done, runs, comes]), { step: runs, next: comes });
    deepEqual(findRunning([done, runs]), { step: runs, next: null });
    equal(findRunning([done, comes]), null);
});
