/** Where the console and the API are: below what a proxy puts before both. */

/** Path before /console and /v1, without a slash at its end. The script is in <prefix>/console/assets/. */
export const PREFIX = new URL("../..", import.meta.url).pathname.replace(/\/$/, "");

export const CONSOLE = `${PREFIX}/console`;

/** Return the address of the API as a command in a shell needs it. */
export function endpoint(): string {
    return `${location.origin}${PREFIX}`;
}

/** Return a part of a path in which no character has a meaning. */
export const part = encodeURIComponent;
