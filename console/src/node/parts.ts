/** The hardware of a machine in words: sizes, what differs between two inspections, and what a sensor reads. */

import { formatDisk, formatMemory } from "../components/sizes";
import { isObject, type Json } from "../components/values";

/** Return a value as a text; null: there is none, or it is no single value. */
export function textOf(value: unknown): string | null {
    if (typeof value === "boolean") return value ? "yes" : "no";
    if (typeof value === "number") return String(value);
    return typeof value === "string" && value.trim() ? value.trim() : null;
}

/** Return an object of an answer, empty if it is none. */
export function objectOf(value: unknown): Json {
    return isObject(value) ? value : {};
}

/** Return the objects of a list. */
export function objectsIn(value: unknown): Json[] {
    return Array.isArray(value) ? value.filter(isObject) : [];
}

export type Fact = [string, string | null];

/** Return what an inventory says of processor and memory. */
export function describeBoard(inventory: Json): Fact[] {
    const [cpu, memory] = [objectOf(inventory["cpu"]), objectOf(inventory["memory"])];
    const mhz = Number.parseFloat(textOf(cpu["frequency"]) ?? "");
    return [
        ["Processor", textOf(cpu["model_name"])],
        ["Threads", textOf(cpu["count"])],
        ["Sockets", textOf(cpu["socket_count"])],
        ["Architecture", textOf(cpu["architecture"])],
        ["Frequency", mhz > 0 ? `${Number((mhz / 1000).toFixed(2))} GHz` : null],
        ["Memory", formatMemory(memory["physical_mb"])],
    ];
}

/** Return what an inventory says of the machine as a whole. */
export function describeSystem(inventory: Json): Fact[] {
    const [vendor, boot] = [objectOf(inventory["system_vendor"]), objectOf(inventory["boot"])];
    const firmware = objectOf(vendor["firmware"]);
    const versions = ["vendor", "version", "build_date"].map((name) => textOf(firmware[name])).filter(Boolean);
    return [
        ["Manufacturer", textOf(vendor["manufacturer"])],
        ["Product", textOf(vendor["product_name"])],
        ["Serial number", textOf(vendor["serial_number"])],
        ["Firmware", versions.join(", ") || null],
        ["Boot mode", textOf(boot["current_boot_mode"])],
        ["Booted from", textOf(boot["pxe_interface"])],
        ["BMC", textOf(inventory["bmc_address"])],
        ["Host name", textOf(inventory["hostname"])],
    ];
}

/** One difference between two inspections. */
export interface Change {
    path: string;
    before: unknown;
    after: unknown;
}

export interface Changes {
    /** null: the machine was not inspected yet. */
    inspected_at: string | null;
    before_at: string | null;
    changes: Change[];
}

/** Return what has become of something: null on one side means that it was not there. */
export function kindOf({ before, after }: Change): "added" | "gone" | "changed" {
    if (before === null) return "added";
    return after === null ? "gone" : "changed";
}

/** Return a value of an inventory in one line. */
export function brief(value: unknown): string {
    if (value === null || value === undefined) return "none";
    return textOf(value) ?? JSON.stringify(value);
}

/** Return how many changes concern a part of the inventory. */
export function countOf(part: string, changes: Change[]): number {
    return changes.filter(({ path }) => path === part || path.startsWith(`${part}.`) || path.startsWith(`${part}[`)).length;
}

/** Return what an inventory calls a disk, and what it is. */
export function describeDisk(disk: Json): (string | null)[] {
    const rotates = disk["rotational"];
    const kind = typeof rotates === "boolean" ? (rotates ? "HDD" : "SSD") : null;
    const model = [textOf(disk["vendor"]), textOf(disk["model"])].filter(Boolean).join(" ");
    return [
        textOf(disk["name"]),
        formatDisk(disk["size"]),
        kind,
        model || null,
        textOf(disk["serial"]),
        textOf(disk["wwn"]),
    ];
}

/** Return the configuration of an array: name, level, size, disks, controller, whether the image goes there. */
export function describeArray(array: Json): (string | null)[] {
    const [size, disks] = [array["size_gb"], array["physical_disks"]];
    const listed = Array.isArray(disks) ? disks.map(brief).join(", ") : textOf(array["number_of_physical_disks"]);
    return [
        textOf(array["volume_name"]),
        textOf(array["raid_level"]),
        typeof size === "number" ? `${size} GiB` : textOf(size),
        listed,
        textOf(array["controller"]),
        array["is_root_volume"] === true ? "yes" : null,
    ];
}

export interface Sensor {
    id: string;
    name: string;
    kind: string;
    reading: number | null;
    unit: string | null;
    health: string | null;
    place: string | null;
    thresholds: Record<string, number>;
    states: string[];
}

/** Return what a sensor reads: a number, or else its states. */
export function describeReading({ reading, unit, states }: Sensor): string {
    if (reading === null) return states.join(", ") || "no reading";
    const number = Number(reading.toFixed(3));
    return unit === null ? String(number) : `${number} ${unit}`;
}

/** Return the limits of a sensor, the least bad ones: `5 to 45`. */
export function describeLimits({ thresholds }: Sensor): string | null {
    const first = (side: string): number | undefined =>
        ["non_critical", "critical", "non_recoverable"].map((name) => thresholds[`${side}_${name}`]).find((one) => one !== undefined);
    const [low, high] = [first("lower"), first("upper")];
    if (low === undefined && high === undefined) return null;
    if (low === undefined) return `at most ${high}`;
    return high === undefined ? `at least ${low}` : `${low} to ${high}`;
}

const HEALTH = ["Critical", "Warning"];

/** Return sensors by kind, in each those first that are not well. */
export function groupSensors(sensors: Sensor[]): [string, Sensor[]][] {
    const rank = ({ health }: Sensor): number => (HEALTH.indexOf(health ?? "") + HEALTH.length + 1) % (HEALTH.length + 1);
    const groups = new Map<string, Sensor[]>();
    for (const sensor of sensors) groups.set(sensor.kind, [...(groups.get(sensor.kind) ?? []), sensor]);
    return [...groups].map(([kind, found]) => [kind, found.sort((a, b) => rank(a) - rank(b))]);
}
