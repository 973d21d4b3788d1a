/** Where the console and the API are: at the root of their host, as proxies pass on paths unchanged. */

export const CONSOLE = "/console";

/** Return the address of the API as a command in a shell needs it. */
export function endpoint(): string {
    return location.origin;
}

/** Return a part of a path in which no character has a meaning. */
export const part = encodeURIComponent;
