/** The arguments of one step as fields, checked while they are typed. */

import type { JSX } from "preact";
import { useEffect, useId, useState } from "preact/hooks";

import { findMisfits, readObject, readTexts, writeValue, type ArgsInfo, type Args, type ArgumentInfo, type Wrong } from "./values";

interface ArgumentsProps {
    args: Args;
    /** What the step says of its arguments; null: nothing. */
    info: ArgsInfo | null;
    /** Of the texts that were typed before: these fields begin with what they meant. */
    wrong: Wrong;
    change: (args: Args, wrong: Wrong) => void;
}

/** Shows the arguments: a field each where the step describes them, or else all of them as JSON. */
export function StepArguments(props: ArgumentsProps): JSX.Element {
    useEffect(() => {
        if (Object.keys(props.wrong).length) props.change(props.args, {});
    }, []);
    return props.info === null ? <WholeArguments {...props} /> : <EachArgument {...props} info={props.info} />;
}

function EachArgument({ args, info, change }: ArgumentsProps & { info: ArgsInfo }): JSX.Element {
    const [texts, setTexts] = useState<Record<string, string>>(() =>
        Object.fromEntries(Object.entries(args).map(([name, value]) => [name, writeValue(value, info[name]?.type)])),
    );
    const names = [...Object.keys(info), ...Object.keys(texts).filter((name) => !(name in info) && texts[name])];
    const { args: read, wrong } = readTexts(texts, info);
    const misfits = findMisfits(read, info);
    const type = (name: string, text: string): void => {
        const next = { ...texts, [name]: text };
        const found = readTexts(next, info);
        setTexts(next);
        change(found.args, found.wrong);
    };
    if (names.length === 0) return <p class="muted">It takes no arguments.</p>;
    return (
        <div class="columns-2">
            {names.map((name) => (
                <ArgumentField
                    key={name}
                    name={name}
                    about={info[name] ?? {}}
                    text={texts[name] ?? ""}
                    wrong={wrong[name] ?? misfits[name]}
                    change={(text) => type(name, text)}
                />
            ))}
        </div>
    );
}

interface FieldProps {
    name: string;
    about: ArgumentInfo;
    text: string;
    wrong: string | undefined;
    change: (text: string) => void;
}

function ArgumentField({ name, about, text, wrong, change }: FieldProps): JSX.Element {
    const id = useId();
    const shared = {
        id,
        value: text,
        "aria-invalid": wrong !== undefined,
        "aria-describedby": `${id}-note`,
        spellcheck: false,
    };
    const type = (event: { currentTarget: { value: string } }): void => change(event.currentTarget.value);
    const isLong = about.type === "array" || about.type === "object" || text.includes("\n");
    return (
        <div class="field">
            <label for={id}>
                <span class="mono">{name}</span>
                {about.type && <span class="muted"> {about.type}</span>}
            </label>
            {about.type === "boolean" && /^(true|false)?$/.test(text) ? (
                <select {...shared} onChange={type}>
                    <option value="">as by default</option>
                    <option value="true">yes</option>
                    <option value="false">no</option>
                </select>
            ) : isLong ? (
                <textarea {...shared} rows={3} onInput={type} />
            ) : (
                <input {...shared} type="text" autocomplete="off" onInput={type} />
            )}
            <span id={`${id}-note`} class={wrong ? "field-wrong" : "field-note"} aria-live="polite">
                {[wrong, about.description].filter(Boolean).join(" ")}
            </span>
        </div>
    );
}

function WholeArguments({ args, change }: ArgumentsProps): JSX.Element {
    const [text, setText] = useState(Object.keys(args).length ? writeValue(args) : "");
    const [wrong, setWrong] = useState<string | null>(null);
    const id = useId();
    const type = (typed: string): void => {
        setText(typed);
        try {
            change(readObject(typed), {});
            setWrong(null);
        } catch (error) {
            const message = error instanceof Error ? error.message : String(error);
            change(args, { "": message });
            setWrong(message);
        }
    };
    return (
        <div class="field">
            <label for={id}>Arguments</label>
            <textarea
                id={id}
                rows={3}
                value={text}
                spellcheck={false}
                aria-invalid={wrong !== null}
                aria-describedby={`${id}-note`}
                onInput={(event) => type(event.currentTarget.value)}
            />
            <span id={`${id}-note`} class={wrong ? "field-wrong" : "field-note"} aria-live="polite">
                {wrong ?? "An object in JSON. Empty: none"}
            </span>
        </div>
    );
}
