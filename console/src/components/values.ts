/** Values of JSON. */

export type Json = Record<string, unknown>;

/** Return whether a value is an object: neither a list nor null. */
export function isObject(value: unknown): value is Json {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}
