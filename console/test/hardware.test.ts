import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";

import { describeEnd, describeLldp, findMismatch, listPortless, mapCards, vifOf, type Port } from "../src/node/cables";
import { formatDisk, formatMemory } from "../src/components/sizes";
import {
    brief,
    countOf,
    describeArray,
    describeBoard,
    describeDisk,
    describeLimits,
    describeReading,
    describeSystem,
    groupSensors,
    kindOf,
    type Sensor,
} from "../src/node/parts";

const SENSOR: Sensor = {
    id: "1",
    name: "Inlet",
    kind: "temperature",
    reading: 23.5,
    unit: "°C",
    health: "OK",
    place: null,
    thresholds: { upper_non_critical: 42, upper_critical: 47 },
    states: [],
};

test("disks have decimal sizes, memory has binary ones", () => {
    deepEqual([480103981056, 1920383410176, 512, 0, null].map(formatDisk), ["480 GB", "1.92 TB", "512 B", null, null]);
    deepEqual([512, 65536, 98816, "x"].map(formatMemory), ["512 MiB", "64 GiB", "96.5 GiB", null]);
});

test("processor, memory and system are described; what is unknown is null", () => {
    const inventory = {
        cpu: { model_name: "Simulated", frequency: "2400.0000", count: 8 },
        memory: { physical_mb: 4096 },
        system_vendor: { manufacturer: "Ingot", firmware: { vendor: "", version: "1.2" } },
    };
    deepEqual(describeBoard(inventory), [
        ["Processor", "Simulated"],
        ["Threads", "8"],
        ["Sockets", null],
        ["Architecture", null],
        ["Frequency", "2.4 GHz"],
        ["Memory", "4 GiB"],
    ]);
    deepEqual(describeSystem(inventory).filter(([, value]) => value !== null), [
        ["Manufacturer", "Ingot"],
        ["Firmware", "1.2"],
    ]);
    equal(describeSystem({}).every(([, value]) => value === null), true);
});

test("disks and arrays are rows", () => {
    deepEqual(describeDisk({ name: "/dev/sda", size: 1e12, rotational: false, vendor: "ATA", model: "X", serial: "S1" }), [
        "/dev/sda",
        "1 TB",
        "SSD",
        "ATA X",
        "S1",
        null,
    ]);
    deepEqual(describeArray({ raid_level: "1", size_gb: "MAX", physical_disks: ["a", { size: "> 1" }], is_root_volume: true }), [
        null,
        "1",
        "MAX",
        'a, {"size":"> 1"}',
        null,
        "yes",
    ]);
});

test("changes are counted by part, and say what has become of it", () => {
    const changes = [
        { path: "disks[S1].size", before: 1, after: 2 },
        { path: "disks[S2]", before: null, after: {} },
        { path: "cpu.count", before: 8, after: null },
    ];
    deepEqual(["disks", "cpu", "disk"].map((name) => countOf(name, changes)), [2, 1, 0]);
    deepEqual(changes.map(kindOf), ["changed", "added", "gone"]);
    deepEqual([null, true, "x", { a: 1 }].map(brief), ["none", "yes", "x", '{"a":1}']);
});

test("sensors read numbers or states, within limits", () => {
    equal(describeReading(SENSOR), "23.5 °C");
    equal(describeReading({ ...SENSOR, reading: null, states: ["present", "failed"] }), "present, failed");
    equal(describeReading({ ...SENSOR, reading: null }), "no reading");
    equal(describeLimits(SENSOR), "at most 42");
    equal(describeLimits({ ...SENSOR, thresholds: { lower_critical: 500, upper_critical: 900 } }), "500 to 900");
    equal(describeLimits({ ...SENSOR, thresholds: {} }), null);
});

test("sensors that are not well come first in their group", () => {
    const health = ["OK", "Warning", null, "Critical"];
    const sensors = health.map((one, at) => ({ ...SENSOR, id: `${at}`, health: one }));
    const groups = groupSensors([...sensors, { ...SENSOR, kind: "fan" }]);
    deepEqual(groups.map(([kind]) => kind), ["temperature", "fan"]);
    deepEqual(groups[0]?.[1].map((one) => one.health), ["Critical", "Warning", "OK", null]);
});

const INVENTORY = {
    interfaces: [
        { name: "eth0", mac_address: "52:54:00:00:00:0A", has_carrier: true, speed_mbps: 25000 },
        { name: "eth1", mac_address: "52:54:00:00:00:0b", has_carrier: false },
    ],
};
const HEARD = { switch_system_name: "leaf-1", switch_chassis_id: "02:00:00:00:00:01", switch_port_id: "swp7" };

test("cards are known by their MAC addresses, with what switches say", () => {
    const cards = mapCards(INVENTORY, { parsed_lldp: { eth0: HEARD } });
    deepEqual(cards.get("52:54:00:00:00:0a"), { name: "eth0", link: "up, 25000 Mbit/s", heard: HEARD });
    const ports = [{ address: "52:54:00:00:00:0a" }] as Port[];
    deepEqual(listPortless(ports, cards).map(([mac]) => mac), ["52:54:00:00:00:0b"]);
});

test("the end of a cable is described, and compared with what the switch says", () => {
    const link = { switch_info: "leaf-1", switch_id: "02:00:00:00:00:01", port_id: "swp7" };
    equal(describeEnd(link), "leaf-1 (02:00:00:00:00:01), port swp7");
    equal(describeEnd({}), null);
    equal(findMismatch(link, HEARD), null);
    equal(findMismatch({}, HEARD), null);
    equal(findMismatch({ ...link, port_id: "swp8" }, HEARD), "leaf-1 (02:00:00:00:00:01), port swp7");
});

test("lists of LLDP become texts", () => {
    const heard = { switch_port_vlans: [{ id: 120, name: "deployment" }, { id: 7, name: "" }], switch_mgmt_addresses: ["192.0.2.1"] };
    deepEqual(describeLldp(heard).filter(([, value]) => value !== null), [
        ["VLANs", "120 deployment, 7"],
        ["Management addresses", "192.0.2.1"],
    ]);
});

test("the VIF of a port is found", () => {
    equal(vifOf({ internal_info: { tenant_vif_port_id: "v1" }, extra: {} }), "v1");
    equal(vifOf({ internal_info: {}, extra: {} }), null);
});
