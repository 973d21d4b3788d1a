import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";

import { counted, describeHeartbeat, filterOf, groupsOf, shareOf, toneOfStanding } from "../src/conductors/standing";
import { formatSize } from "../src/components/sizes";
import { describeDisks, describeHardware, matches, nameOf, type Entry } from "../src/inbox/entry";

const ENTRY: Entry = {
    uuid: "2a3e8b5c-7a3f-4c43-9d6e-0d3b4a1f5e77",
    addresses: ["52:54:00:aa:bb:01", "52:54:00:aa:bb:02"],
    boot_address: "52:54:00:aa:bb:02",
    boot_mode: "uefi",
    bmc_address: null,
    cpu_arch: "x86_64",
    cpus: 8,
    memory_mb: 65_536,
    disk_sizes: [480_103_981_056, 480_103_981_056, 4_000_787_030_016],
    manufacturer: "Dell Inc.",
    product_name: null,
    serial_number: "S1",
    client_address: "10.1.0.7",
    seen_at: "2026-03-01T08:15:02+00:00",
    seen_count: 2,
    created_at: "2026-03-01T08:00:00+00:00",
};

test("a heartbeat grows older by the clock, until only an event would tell of a silence", () => {
    const alive = { alive: true, heartbeat_age: 2 };
    equal(describeHeartbeat(alive, 10, true), "12 s ago");
    equal(describeHeartbeat(alive, 600, true), "on time, 2 s old when it was read");
    equal(describeHeartbeat(alive, 600, false), "10 min 2 s ago");
    equal(describeHeartbeat({ alive: false, heartbeat_age: 60 }, 600, true), "11 min ago");
});

test("each state of a conductor has a tone", () => {
    const tone = (alive: boolean, draining: boolean, state: string) => toneOfStanding({ alive, draining, state });
    deepEqual(
        [tone(true, false, "online"), tone(false, false, "offline"), tone(true, true, "draining"), tone(true, true, "drained")],
        ["good", "bad", "waiting", "idle"],
    );
});

test("the part of the ring is that of all nodes, also while there are none", () => {
    equal(shareOf({ nodes: 1 }, [{ nodes: 1 }, { nodes: 3 }]), 0.25);
    equal(shareOf({ nodes: 0 }, [{ nodes: 0 }]), 0);
});

test("conductors are grouped, the default group first", () => {
    const all = ["b", "", "b"].map((conductor_group, at) => ({ conductor_group, at }));
    deepEqual(
        groupsOf(all).map(([group, members]) => [group, members.map((one) => one.at)]),
        [
            ["", [1]],
            ["b", [0, 2]],
        ],
    );
});

test("the filter of a conductor's nodes is quoted where it must be", () => {
    equal(filterOf("c-1.example.com"), "conductor:c-1.example.com");
    equal(filterOf('a "b"'), 'conductor:"a \\"b\\""');
});

test("what is counted is in the singular or the plural", () => {
    deepEqual([1, 2].map((count) => counted(count, "node moves", "nodes move")), ["1 node moves", "2 nodes move"]);
});

test("machines are described by what they say", () => {
    equal(nameOf(ENTRY), "Dell Inc.");
    equal(nameOf({ ...ENTRY, manufacturer: null }), "52:54:00:aa:bb:02");
    equal(describeHardware(ENTRY), "x86_64, 8 CPUs, 64 GiB");
    equal(describeHardware({ cpu_arch: null, cpus: 1, memory_mb: 512 }), "1 CPU, 512 MiB");
    equal(describeDisks(ENTRY.disk_sizes), "2 × 480 GB, 4 TB");
    equal(describeDisks(null), "");
    deepEqual([0, 5_000_000, 1_500_000_000].map(formatSize), ["0 B", "5 MB", "1.5 GB"]);
});

test("the inbox is searched by all that is shown", () => {
    equal(matches(ENTRY, "dell BB:02"), true);
    equal(matches(ENTRY, "dell hp"), false);
});
