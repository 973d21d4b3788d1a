/** The arguments of verbs as fields, checked while they are typed. */

import type { JSX } from "preact";
import { useId, useMemo, useState } from "preact/hooks";

import { useList } from "../live/list";
import { ofPlans } from "../live/resource";
import type { Body } from "./targets";
import type { Argument, Verb } from "./verbs";

/** What was typed, as text, by argument. */
export type Texts = Partial<Record<Argument, string>>;

interface Shape {
    title: string;
    note?: string;
    kind: "text" | "password" | "json" | "flag" | "number" | "runbook";
    /** Return the value that a text means; throws an Error that says what is wrong. */
    read: (text: string) => unknown;
}

function readSteps(text: string): unknown {
    const found = readJson(text);
    if (!Array.isArray(found)) throw new Error("Write a list: [{\"interface\": …, \"step\": …}].");
    for (const [at, step] of found.entries()) {
        const { interface: kind, step: name } = (step ?? {}) as Record<string, unknown>;
        if (typeof kind !== "string" || typeof name !== "string") {
            throw new Error(`Step ${at + 1} needs "interface" and "step", both texts.`);
        }
    }
    return found;
}

function readJson(text: string): unknown {
    try {
        return JSON.parse(text);
    } catch (error) {
        throw new Error(`This is not JSON: ${error instanceof Error ? error.message : String(error)}`);
    }
}

function readNumber(text: string): number {
    const number = Number(text);
    if (!Number.isInteger(number) || number < 1) throw new Error("Write a whole number of seconds, 1 or more.");
    return number;
}

const STEPS: Shape = {
    title: "Steps",
    note: "A list of steps: interface, step, and args where it takes some",
    kind: "json",
    read: readSteps,
};

const SHAPES: Record<Argument, Shape> = {
    clean_steps: STEPS,
    deploy_steps: { ...STEPS, note: "Beside the default ones, by priority. Empty: none" },
    service_steps: STEPS,
    configdrive: {
        title: "Config drive",
        note: "An object with meta_data, user_data and network_data, or a URL. Empty: none",
        kind: "json",
        read: (text) => (text.trimStart().startsWith("{") ? readJson(text) : text.trim()),
    },
    disable_ramdisk: { title: "Run the steps without booting the ramdisk", kind: "flag", read: (text) => text === "yes" },
    reason: { title: "Reason", note: "Who looks at the machine reads this", kind: "text", read: (text) => text },
    rescue_password: { title: "Password of the user rescue", kind: "password", read: (text) => text },
    runbook: { title: "Runbook", kind: "runbook", read: (text) => text },
    timeout: { title: "Time limit in seconds", note: "Empty: as configured", kind: "number", read: readNumber },
};

/** Return the values of what was typed, and what is wrong by argument. */
export function readArguments(verb: Verb, texts: Texts): { body: Body; wrong: Texts } {
    const [body, wrong]: [Body, Texts] = [{}, {}];
    for (const name of verb.arguments ?? []) {
        const text = texts[name]?.trim() ? (texts[name] ?? "") : "";
        if (!text) continue;
        try {
            body[name] = SHAPES[name].read(text);
        } catch (error) {
            wrong[name] = error instanceof Error ? error.message : String(error);
        }
    }
    return { body, wrong };
}

/** Return which argument is missing, in words; null: none. */
export function findMissing(verb: Verb, body: Body): string | null {
    if (!verb.needs || verb.needs.some((name) => name in body)) return null;
    return `Needed: ${verb.needs.map((name) => SHAPES[name].title.toLowerCase()).join(" or ")}.`;
}

/** Return arguments that are known already, as texts for the fields. */
export function writeTexts(body: Body): Texts {
    const texts = Object.entries(body).map(([name, value]) => {
        if (value === true) return [name, "yes"];
        return [name, typeof value === "string" ? value : JSON.stringify(value, null, 2)];
    });
    return Object.fromEntries(texts) as Texts;
}

interface FieldsProps {
    verb: Verb;
    texts: Texts;
    wrong: Texts;
    change: (name: Argument, text: string) => void;
}

/** Shows the fields of a verb; those that few need are folded away. */
export function ArgumentFields({ verb, texts, wrong, change }: FieldsProps): JSX.Element | null {
    const names = verb.arguments ?? [];
    if (!names.length) return null;
    const isMain = (name: Argument): boolean => name === "reason" || (verb.needs ?? []).includes(name);
    const show = (name: Argument): JSX.Element => (
        <ArgumentField
            key={name}
            name={name}
            text={texts[name] ?? ""}
            wrong={wrong[name]}
            change={(text) => change(name, text)}
        />
    );
    const others = names.filter((name) => !isMain(name));
    return (
        <>
            {names.filter(isMain).map(show)}
            {others.length > 0 && (
                <details class="fold" open={others.some((name) => texts[name])}>
                    <summary>More</summary>
                    <div class="fold-body">{others.map(show)}</div>
                </details>
            )}
        </>
    );
}

interface FieldProps {
    name: Argument;
    text: string;
    wrong: string | undefined;
    change: (text: string) => void;
}

function ArgumentField({ name, text, wrong, change }: FieldProps): JSX.Element {
    const shape = SHAPES[name];
    const id = useId();
    if (shape.kind === "flag") {
        return (
            <label class="check">
                <input
                    type="checkbox"
                    checked={text === "yes"}
                    onChange={(event) => change(event.currentTarget.checked ? "yes" : "")}
                />
                {shape.title}
            </label>
        );
    }
    const about = {
        id,
        value: text,
        name,
        "aria-invalid": wrong !== undefined,
        "aria-describedby": `${id}-note`,
        spellcheck: false,
    };
    const type = (event: { currentTarget: { value: string } }): void => change(event.currentTarget.value);
    return (
        <div class="field">
            <label for={id}>{shape.title}</label>
            {shape.kind === "json" ? (
                <textarea {...about} rows={4} onInput={type} />
            ) : shape.kind === "runbook" ? (
                <RunbookChoice id={id} value={text} change={change} />
            ) : shape.kind === "password" ? (
                <input {...about} type="password" autocomplete="new-password" onInput={type} />
            ) : (
                <input {...about} type="text" inputMode={shape.kind === "number" ? "numeric" : "text"} onInput={type} />
            )}
            <span id={`${id}-note`} class={wrong ? "field-wrong" : "field-note"} aria-live="polite">
                {wrong ?? shape.note}
            </span>
        </div>
    );
}

function RunbookChoice(props: { id: string; value: string; change: (text: string) => void }): JSX.Element {
    const found = useList<{ name: string }>("/v1/runbooks", "runbooks", ofPlans);
    const names = (found.data.value ?? []).map((one) => one.name);
    return (
        <select id={props.id} value={props.value} onChange={(event) => props.change(event.currentTarget.value)}>
            <option value="">{found.data.value === null ? "Loading…" : names.length ? "None" : "There is no runbook"}</option>
            {names.map((name) => (
                <option key={name} value={name}>
                    {name}
                </option>
            ))}
        </select>
    );
}

/** Return what was typed, its values and what is wrong with it. */
export function useArguments(verb: Verb, given: Body) {
    const [texts, setTexts] = useState<Texts>(() => writeTexts(given));
    const found = useMemo(() => readArguments(verb, texts), [verb, texts]);
    const change = (name: Argument, text: string): void => setTexts((before) => ({ ...before, [name]: text }));
    return { texts, change, ...found, missing: findMissing(verb, found.body) };
}
