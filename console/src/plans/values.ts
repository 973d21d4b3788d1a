/** Arguments of steps as texts, checked by what the step says of them. */

import { isObject } from "../components/values";

export type Args = Record<string, unknown>;

export interface ArgumentInfo {
    description?: string;
    required?: boolean;
    /** A type of JSON; none: any value is taken. */
    type?: string;
}

export type ArgsInfo = Record<string, ArgumentInfo>;

/** Messages by what they are about. */
export type Wrong = Record<string, string>;

const TYPES: Record<string, { holds: (value: unknown) => boolean; hint: string }> = {
    boolean: { holds: (value) => typeof value === "boolean", hint: "Choose yes or no." },
    integer: { holds: Number.isInteger, hint: "Write a whole number." },
    number: { holds: (value) => typeof value === "number", hint: "Write a number." },
    string: { holds: (value) => typeof value === "string", hint: "Write a text." },
    array: { holds: Array.isArray, hint: "Write a list in JSON: […]." },
    object: { holds: isObject, hint: "Write an object in JSON: {…}." },
};

function parse(text: string): unknown {
    try {
        return JSON.parse(text);
    } catch {
        return undefined;
    }
}

/**
 * Return the value that a text means for an argument of a type.
 *
 * @throws Error that says what to write.
 */
export function readValue(text: string, type?: string): unknown {
    if (type === "string") return text;
    const found = parse(text);
    const shape = TYPES[type ?? ""];
    if (shape === undefined) return found === undefined ? text : found;
    if (!shape.holds(found)) throw new Error(shape.hint);
    return found;
}

/** Return a text that means a value; see `readValue`. */
export function writeValue(value: unknown, type?: string): string {
    if (typeof value !== "string") return JSON.stringify(value, null, isObject(value) || Array.isArray(value) ? 2 : undefined);
    if (type === "string") return value;
    return TYPES[type ?? ""] || parse(value) !== undefined ? JSON.stringify(value) : value;
}

/** Return the arguments that texts mean, and what is wrong with texts that mean none. Empty ones are left out. */
export function readTexts(texts: Record<string, string>, info: ArgsInfo): { args: Args; wrong: Wrong } {
    const [args, wrong]: [Args, Wrong] = [{}, {}];
    for (const [name, text] of Object.entries(texts)) {
        if (!text.trim()) continue;
        try {
            args[name] = readValue(text, info[name]?.type);
        } catch (error) {
            wrong[name] = error instanceof Error ? error.message : String(error);
        }
    }
    return { args, wrong };
}

/**
 * Return all arguments as one object in JSON.
 *
 * @throws Error that says what to write.
 */
export function readObject(text: string): Args {
    if (!text.trim()) return {};
    const found = parse(text);
    if (!isObject(found)) throw new Error('Write an object in JSON: {"name": value}.');
    return found;
}

/** Return by argument what does not fit to what the step says of them. */
export function findMisfits(args: Args, info: ArgsInfo): Wrong {
    const wrong: Wrong = {};
    for (const [name, value] of Object.entries(args)) {
        const about = info[name];
        if (about === undefined) wrong[name] = `The step takes: ${Object.keys(info).sort().join(", ") || "no arguments"}.`;
        else if (value === null && !about.required) continue;
        else if (about.type && TYPES[about.type]?.holds(value) === false) wrong[name] = TYPES[about.type]?.hint ?? "";
    }
    for (const [name, about] of Object.entries(info)) {
        if (about.required && !(name in args)) wrong[name] = "Needed.";
    }
    return wrong;
}
