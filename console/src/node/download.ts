/** Files of the API: they need the headers of the session, which no link sends. */

import { ApiError, headers, readMessage } from "../api/client";
import { PREFIX } from "../paths";

const KEPT_MS = 60_000; // for which a browser may still read what it saves

function nameOf(answer: Response): string | null {
    return /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition") ?? "")?.[1] ?? null;
}

/**
 * Let the browser save what a path of the API answers.
 *
 * @param name of the file, if the server gives it none.
 * @throws ApiError with what the server says.
 */
export async function download(path: string, name: string): Promise<void> {
    const answer = await fetch(PREFIX + path, { headers: headers(), credentials: "same-origin", cache: "no-store" }).catch(
        () => {
            throw new ApiError("The server cannot be reached.", 0);
        },
    );
    if (!answer.ok) {
        const message = readMessage(await answer.text(), answer);
        throw new ApiError(message, answer.status, answer.headers.get("OpenStack-Request-Id"));
    }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await answer.blob());
    link.download = nameOf(answer) ?? name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}
