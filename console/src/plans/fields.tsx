/** The fields of a deploy template or runbook, other than its steps. */

import type { JSX } from "preact";
import { useId } from "preact/hooks";

import { useReason } from "../components/action";
import type { Draft } from "./draft";
import type { Kind, Saved } from "./kinds";
import type { Wrong } from "./values";

interface FieldsProps {
    kind: Kind;
    draft: Draft;
    saved: Saved | null;
    wrong: Wrong;
    change: (values: Partial<Draft>) => void;
}

/** Shows the fields. */
export function Fields({ kind, draft, saved, wrong, change }: FieldsProps): JSX.Element {
    const owning = useReason()("baremetal:runbook:update:owner");
    const name = (
        <TextField
            title="Name"
            name="name"
            value={draft.name}
            wrong={wrong["name"]}
            note={kind === "template" ? "The trait that it is for: CUSTOM_…" : "By which requests name it"}
            change={(value) => change({ name: value })}
        />
    );
    const extra = <ExtraField value={draft.extra} wrong={wrong["extra"]} change={(value) => change({ extra: value })} />;
    if (kind === "template") {
        return (
            <>
                {name}
                {extra}
            </>
        );
    }
    return (
        <>
            <div class="columns-2">
                {name}
                <TextField
                    title="Traits"
                    name="traits"
                    value={draft.traits}
                    wrong={wrong["traits"]}
                    note="It is for nodes that have one of these"
                    change={(traits) => change({ traits })}
                />
                <TextField
                    title="Description"
                    name="description"
                    value={draft.description}
                    wrong={wrong["description"]}
                    change={(description) => change({ description })}
                />
                <TextField
                    title="Owner"
                    name="owner"
                    value={draft.owner}
                    wrong={wrong["owner"]}
                    note={owning ?? "The id of the project whose runbook it is; empty: no project's"}
                    disabled={saved !== null && owning !== null}
                    change={(owner) => change({ owner })}
                />
            </div>
            {extra}
            <Flag title="Run the steps without booting the ramdisk" on={draft.disable_ramdisk} change={(on) => change({ disable_ramdisk: on })} />
            <Flag title="For the nodes of all projects (public)" on={draft.public} change={(on) => change({ public: on, ...(on ? { owner: "" } : {}) })} />
            {wrong["public"] && <p class="field-wrong">{wrong["public"]}</p>}
        </>
    );
}

interface TextProps {
    title: string;
    name: string;
    value: string;
    wrong: string | undefined;
    note?: string;
    disabled?: boolean;
    change: (value: string) => void;
}

function TextField({ title, name, value, wrong, note, disabled = false, change }: TextProps): JSX.Element {
    const id = useId();
    return (
        <div class="field">
            <label for={id}>{title}</label>
            <input
                id={id}
                name={name}
                type="text"
                autocomplete="off"
                spellcheck={false}
                value={value}
                readOnly={disabled}
                aria-invalid={wrong !== undefined}
                aria-describedby={`${id}-note`}
                onInput={(event) => change(event.currentTarget.value)}
            />
            <span id={`${id}-note`} class={wrong ? "field-wrong" : "field-note"} aria-live="polite">
                {wrong ?? note}
            </span>
        </div>
    );
}

function ExtraField({ value, wrong, change }: Pick<TextProps, "value" | "wrong" | "change">): JSX.Element {
    const id = useId();
    return (
        <div class="field">
            <label for={id}>Extra</label>
            <textarea
                id={id}
                name="extra"
                rows={2}
                value={value}
                spellcheck={false}
                aria-invalid={wrong !== undefined}
                aria-describedby={`${id}-note`}
                onInput={(event) => change(event.currentTarget.value)}
            />
            <span id={`${id}-note`} class={wrong ? "field-wrong" : "field-note"} aria-live="polite">
                {wrong ?? "What else is to be kept with it: an object in JSON. Empty: nothing"}
            </span>
        </div>
    );
}

function Flag({ title, on, change }: { title: string; on: boolean; change: (on: boolean) => void }): JSX.Element {
    return (
        <label class="check">
            <input type="checkbox" checked={on} onChange={(event) => change(event.currentTarget.checked)} />
            {title}
        </label>
    );
}
