/** The editor of one deploy template or runbook: its fields and steps, and what they would do on a node. */

import type { JSX } from "preact";
import { useEffect, useId, useMemo, useState } from "preact/hooks";

import { explain } from "../api/client";
import { Action, useReason } from "../components/action";
import { CommandPanel } from "../components/command";
import { Problem } from "../components/loading";
import { toast, toastError } from "../components/toasts";
import { useLive } from "../live/resource";
import { part } from "../paths";
import { PlanView, usePlan } from "../verbs/plan";
import { DeleteDialog } from "./delete";
import { draftOf, fieldOf, findWrong, planOf, type Draft } from "./draft";
import { compareAge, FLOW_NAMES, KINDS, type Flow, type Kind, type Matching, type Offer, type Saved } from "./kinds";
import { MatchingNodes } from "./matching";
import { NodeChoice } from "./node";
import { commandOf, HalfSaved, isChanged, save } from "./save";
import { StepsEditor } from "./steps";
import type { Wrong } from "./values";

interface EditorProps {
    kind: Kind;
    /** null: a new one. */
    saved: Saved | null;
    node: string;
    flow: Flow;
    choose: (values: { node?: string; flow?: Flow }) => void;
    /** Called with what is saved now; null: it is deleted. */
    done: (saved: Saved | null) => void;
    /** Called when there is something to save, and when there is nothing any more. */
    onChanged: (changed: boolean) => void;
}

/** Shows the editor. */
export function Editor({ kind, saved: given, node, flow, choose, done, onChanged }: EditorProps): JSX.Element {
    const { rule, one, flows } = KINDS[kind];
    const [saved, setSaved] = useState(given);
    const [draft, setDraft] = useState(() => draftOf(given));
    const [refused, setRefused] = useState<string | null>(null);
    const [isBusy, setBusy] = useState(false);
    const [isTried, setTried] = useState(false);
    const [isDeleting, setDeleting] = useState(false);
    const reasonFor = useReason();
    const matching = useLive<Matching>(saved && `/ingot/v1/step_lists/${kind}/${part(saved.uuid)}/nodes?limit=20`, () => false);
    const matched = matching.data.value?.nodes[0];
    const checked = node || (matched ? (matched.name ?? matched.uuid) : "");
    const wrong = useMemo(() => findWrong(kind, draft), [kind, draft]);
    const changed = isChanged(kind, saved, draft);
    const isDirty = saved === null ? JSON.stringify(strip(draft)) !== JSON.stringify(strip(draftOf(null))) : changed;
    useEffect(() => onChanged(isDirty), [isDirty]);
    const isStale = given !== null && saved !== null && compareAge(given, saved) > 0;
    useEffect(() => {
        if (isStale && !isDirty) takeOver();
    }, [isStale, isDirty]);
    const takeOver = (): void => {
        setSaved(given);
        setDraft(draftOf(given));
        matching.reload();
    };
    useEffect(() => () => onChanged(false), []);

    const shown = { ...(isTried ? wrong : typedOnly(wrong)), ...serverWrong(refused) };
    const refusedField = refused === null ? null : fieldOf(refused);
    const change = (values: Partial<Draft>): void => {
        setRefused(null);
        setDraft((before) => ({ ...before, ...values }));
    };
    const keep = (next: Saved): void => {
        setSaved(next);
        matching.reload();
        done(next);
    };
    const submit = async (event: Event): Promise<void> => {
        event.preventDefault();
        if (isBusy) return;
        setTried(true);
        setRefused(null);
        if (Object.keys(wrong).length || reason !== null || !changed) return;
        setBusy(true);
        try {
            const next = await save(kind, saved, draft);
            setDraft(draftOf(next));
            setTried(false);
            toast(`${next.name} is saved.`);
            keep(next);
        } catch (error) {
            if (error instanceof HalfSaved) {
                keep(error.saved);
                toastError(error.cause);
            }
            setRefused(explain(error instanceof HalfSaved ? error.cause : error));
        } finally {
            setBusy(false);
        }
    };
    const reason = reasonFor(`${rule}:${saved ? "update" : "create"}`);
    const offers = useOffers(checked, flow);
    return (
        <form class="stack editor" noValidate onSubmit={(event) => void submit(event)}>
            <div class="page-head">
                <h2>{saved ? saved.name : `New ${one}`}</h2>
                {changed && saved && <span class="note-waiting">not saved</span>}
                <div class="page-actions">
                    {saved && (
                        <Action reason={reasonFor(`${rule}:delete`)} run={() => setDeleting(true)}>
                            Delete…
                        </Action>
                    )}
                    <button
                        class="button button-primary"
                        aria-disabled={reason !== null || !changed || isBusy}
                        title={reason ?? undefined}
                    >
                        Save
                    </button>
                </div>
            </div>
            {reason && <p class="note-waiting">{reason}</p>}
            {isStale && isDirty && (
                <p class="note-waiting">
                    It was changed by another request meanwhile. Saving writes only what is changed here.{" "}
                    <button type="button" class="button button-small" onClick={takeOver}>
                        Discard the changes here
                    </button>
                </p>
            )}
            {refused && refusedField === null && <Problem text={refused} />}
            {isTried && Object.keys(wrong).length > 0 && <Problem text="It cannot be saved yet: see what is marked." />}
            <Fields kind={kind} draft={draft} saved={saved} wrong={shown} change={change} />
            <NodeChoice
                node={checked}
                flow={flow}
                flows={flows}
                chooseNode={(name) => choose({ node: name })}
                chooseFlow={(name) => choose({ flow: name })}
            />
            {offers.error && <Problem text={offers.error} retry={offers.reload} />}
            <StepsEditor kind={kind} steps={draft.steps} offers={offers.steps} wrong={shown} change={(steps) => change({ steps })} />
            <DryRun
                node={checked}
                flow={flow}
                draft={draft}
                runbook={kind === "runbook" && saved && !changed ? saved.name : null}
                isReady={isPlannable(wrong)}
            />
            {saved && <MatchingNodes of={matching} />}
            <details class="fold">
                <summary>As a command</summary>
                <CommandPanel command={commandOf(kind, saved, draft)} />
            </details>
            {isDeleting && saved && (
                <DeleteDialog
                    kind={kind}
                    saved={saved}
                    nodes={matching.data.value?.matching ?? null}
                    close={() => setDeleting(false)}
                    done={() => done(null)}
                />
            )}
        </form>
    );
}

/** Return a draft without what tells its steps apart. */
function strip(draft: Draft): unknown {
    return { ...draft, steps: draft.steps.map(({ key: _key, ...step }) => step) };
}

const LIVE = new Set(["traits", "extra", "owner"]);

/** Return what is wrong while it is still typed: what is not there yet is not. */
function typedOnly(wrong: Wrong): Wrong {
    return Object.fromEntries(Object.entries(wrong).filter(([field]) => field.includes(".priority") || LIVE.has(field)));
}

function serverWrong(refused: string | null): Wrong {
    const field = refused === null ? null : fieldOf(refused);
    return refused === null || field === null ? {} : { [field]: refused };
}

/** Return whether the steps are such that a node can be asked what they would do. */
function isPlannable(wrong: Wrong): boolean {
    return !Object.keys(wrong).some((field) => field.startsWith("steps"));
}

/** Return the steps that a node offers; null: it is not known. */
function useOffers(node: string, flow: Flow) {
    const path = node ? `/ingot/v1/nodes/${part(node)}/steps?flow=${flow}` : null;
    const found = useLive<{ steps: Offer[] }>(path, () => false);
    const error = found.error.value;
    return { steps: found.data.value?.steps ?? null, error: error && error.text, reload: found.reload };
}

interface FieldsProps {
    kind: Kind;
    draft: Draft;
    saved: Saved | null;
    wrong: Wrong;
    change: (values: Partial<Draft>) => void;
}

function Fields({ kind, draft, saved, wrong, change }: FieldsProps): JSX.Element {
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

interface DryRunProps {
    node: string;
    flow: Flow;
    draft: Draft;
    /** A runbook that is saved as it is shown: the node is then asked for its traits as well. */
    runbook: string | null;
    isReady: boolean;
}

function DryRun({ node, flow, draft, runbook, isReady }: DryRunProps): JSX.Element {
    const body = runbook === null ? planOf(flow, draft) : { runbook };
    const { plan, error } = usePlan(node || null, isReady ? flow : undefined, body);
    return (
        <section class="part" aria-label="Dry run">
            <h3>{node ? `What it would do on ${node}, ${FLOW_NAMES[flow]}` : "What it would do"}</h3>
            {!node && <p class="muted">Choose a node above to see it.</p>}
            {node && !isReady && <p class="muted">Complete the steps to see it.</p>}
            {node && isReady && error && <Problem text={error} />}
            {node && isReady && !error && (plan ? <PlanView plan={plan} /> : <p class="muted">Loading…</p>)}
        </section>
    );
}
