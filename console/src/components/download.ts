/** Files of the API: they need the headers of the session, which no link sends. */

import { exchange } from "../api/client";

const KEPT_MS = 60_000; // for which a browser may still read what it saves
const LIMIT_MS = 600_000; // archives are large, and lines slow

function nameOf(answer: Response): string | null {
    return /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition") ?? "")?.[1] ?? null;
}

/**
 * Return what a path of the API answers, with the name that the server gives it.
 *
 * @throws ApiError with what the server says.
 */
export async function readFile(path: string): Promise<{ content: Blob; name: string | null }> {
    return exchange("GET", path, { limit: LIMIT_MS }, async (answer) => ({
        content: await answer.blob(),
        name: nameOf(answer),
    }));
}

/** Let the browser save something. */
export function save(content: Blob, name: string): void {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(content);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}

/**
 * Let the browser save what a path of the API answers.
 *
 * @param name of the file, if the server gives it none.
 * @throws ApiError with what the server says.
 */
export async function download(path: string, name: string): Promise<void> {
    const found = await readFile(path);
    save(found.content, found.name ?? name);
}
