/** Sizes of files, disks and memory in words. */

const DECIMAL = ["B", "kB", "MB", "GB", "TB", "PB"];

/** Return a number of bytes in the greatest unit that it fills: `480 GB`, `1.92 TB`. */
export function formatSize(bytes: number): string {
    const at = bytes < 1 ? 0 : Math.min(DECIMAL.length - 1, Math.floor(Math.log10(bytes) / 3));
    return `${Number((bytes / 1000 ** at).toPrecision(3))} ${DECIMAL[at]}`;
}

/** Return the size of a disk as its label says it; null: it is not known. */
export function formatDisk(bytes: unknown): string | null {
    return typeof bytes === "number" && bytes > 0 ? formatSize(bytes) : null;
}

/** Return MiB of memory: `64 GiB`. */
export function formatMemory(mebibytes: unknown): string | null {
    if (typeof mebibytes !== "number" || !(mebibytes > 0)) return null;
    return mebibytes < 1024 ? `${mebibytes} MiB` : `${Number((mebibytes / 1024).toFixed(1))} GiB`;
}
