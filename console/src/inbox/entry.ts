/** What a machine of the inbox says of itself. Nothing of it can be relied on: the machine has no credentials. */

import { formatSize } from "../components/sizes";

export interface Entry {
    uuid: string;
    addresses: string[] | null;
    boot_address: string | null;
    boot_mode: string | null;
    bmc_address: string | null;
    cpu_arch: string | null;
    cpus: number | null;
    memory_mb: number | null;
    disk_sizes: number[] | null;
    manufacturer: string | null;
    product_name: string | null;
    serial_number: string | null;
    client_address: string;
    seen_at: string;
    seen_count: number;
    created_at: string;
}

/** All but the inventory, which may be large. */
export const FIELDS = [
    ...["uuid", "addresses", "boot_address", "boot_mode", "bmc_address", "cpu_arch", "cpus", "memory_mb", "disk_sizes"],
    ...["manufacturer", "product_name", "serial_number", "client_address", "seen_at", "seen_count", "created_at"],
];

/** Return the disks in words: `2 × 480 GB, 4 TB`. */
export function describeDisks(sizes: number[] | null): string {
    const counts = new Map<string, number>();
    for (const size of sizes ?? []) counts.set(formatSize(size), (counts.get(formatSize(size)) ?? 0) + 1);
    return [...counts].map(([size, count]) => (count > 1 ? `${count} × ${size}` : size)).join(", ");
}

/** Return processors and memory in words: `x86_64, 8 CPUs, 64 GiB`. */
export function describeHardware(entry: Pick<Entry, "cpu_arch" | "cpus" | "memory_mb">): string {
    const memory = entry.memory_mb === null ? "" : entry.memory_mb < 1024 ? `${entry.memory_mb} MiB` : `${Math.round(entry.memory_mb / 102.4) / 10} GiB`;
    const cpus = entry.cpus === null ? "" : `${entry.cpus} ${entry.cpus === 1 ? "CPU" : "CPUs"}`;
    return [entry.cpu_arch, cpus, memory].filter(Boolean).join(", ");
}

/** Return how a machine is called before it has a name. */
export function nameOf(entry: Entry): string {
    const model = [entry.manufacturer, entry.product_name].filter(Boolean).join(" ");
    return model || entry.boot_address || entry.addresses?.[0] || entry.uuid;
}

/** Return whether what an entry says has all words of a text in it. */
export function matches(entry: Entry, text: string): boolean {
    const said = Object.values(entry).flat().join(" ").toLowerCase();
    return text
        .toLowerCase()
        .split(/\s+/)
        .every((word) => said.includes(word));
}
