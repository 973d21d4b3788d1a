/** The editor of one deploy template or runbook: its fields and steps, and what they would do on a node. */

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";

import { Action, useReason } from "../components/action";
import { CommandFold } from "../components/command";
import { Empty, Problem } from "../components/loading";
import { useLive } from "../live/resource";
import { part } from "../paths";
import { DeleteDialog } from "./delete";
import { traitsOf } from "./draft";
import { DryRun } from "./dryrun";
import { useEditing } from "./editing";
import { Fields } from "./fields";
import { KINDS, type Flow, type Kind, type Offer, type Saved } from "./kinds";
import { MatchingNodes, useMatching, type Matching } from "./matching";
import { NodeChoice } from "./node";
import { commandOf } from "./save";
import { StepsEditor } from "./steps";
import type { Wrong } from "./values";

interface EditorProps {
    kind: Kind;
    /** null: a new one. */
    saved: Saved | null;
    /** Whether it was deleted while it was open. */
    isGone: boolean;
    node: string;
    flow: Flow;
    choose: (values: { node?: string; flow?: Flow }) => void;
    /** Called with what is saved now; null: it is deleted. */
    done: (saved: Saved | null) => void;
    /** Called when there is something to save, and when there is nothing any more. */
    onChanged: (changed: boolean) => void;
}

/** Shows the editor. */
export function Editor(props: EditorProps): JSX.Element {
    const { kind, isGone, node, flow, choose, done } = props;
    const editing = useEditing(props);
    const { saved, draft, change, submit, wrong, shown, changed } = editing;
    const traits = traitsOf(kind, draft);
    const matching = useMatching(traits);
    const checked = useChecked(node, matching);
    const offers = useOffers(checked, flow);
    if (isGone && !editing.isDirty) return <Empty>{props.saved?.name} was deleted meanwhile.</Empty>;
    return (
        <form
            class="stack editor"
            noValidate
            onSubmit={(event) => {
                event.preventDefault();
                void submit();
            }}
        >
            <Head kind={kind} name={isGone ? null : (props.saved?.name ?? null)} editing={editing} matching={matching} done={() => done(null)} />
            <Notes editing={editing} isGone={isGone} />
            <Fields kind={kind} draft={draft} saved={saved} wrong={shown} change={change} />
            <NodeChoice
                node={checked}
                flow={flow}
                flows={KINDS[kind].flows}
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
            <MatchingNodes of={matching} isSaved={saved !== null && isSame(traits, saved.traits ?? [saved.name])} />
            <CommandFold command={() => commandOf(kind, saved, draft)} />
        </form>
    );
}

type Editing = ReturnType<typeof useEditing>;

interface HeadProps {
    kind: Kind;
    /** As it is called now, maybe by others; null: a new one. */
    name: string | null;
    editing: Editing;
    matching: Matching;
    done: () => void;
}

function Head({ kind, name, editing: { saved, changed, reason, isBusy }, matching, done }: HeadProps): JSX.Element {
    const [isDeleting, setDeleting] = useState(false);
    const reasonFor = useReason();
    const { rule, one } = KINDS[kind];
    return (
        <div class="page-head">
            <h2>{name ?? `New ${one}`}</h2>
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
            {isDeleting && saved && (
                <DeleteDialog
                    kind={kind}
                    saved={saved}
                    nodes={changed ? null : (matching.nodes.data.value?.matching ?? null)}
                    close={() => setDeleting(false)}
                    done={done}
                />
            )}
        </div>
    );
}

/** Shows what keeps the draft from being saved, and what others have done meanwhile. */
function Notes({ editing, isGone }: { editing: Editing; isGone: boolean }): JSX.Element {
    const { reason, isConflict, takeOver, refusal, isIncomplete } = editing;
    return (
        <>
            {reason && <p class="note-waiting">{reason}</p>}
            {isGone && (
                <p class="note-waiting" role="status">
                    It was deleted meanwhile. Saving makes it again, as it is here.
                </p>
            )}
            {isConflict && !isGone && (
                <p class="note-waiting" role="status">
                    It was changed by another request meanwhile. Saving writes only what is changed here.{" "}
                    <button type="button" class="button button-small" onClick={takeOver}>
                        Discard the changes here
                    </button>
                </p>
            )}
            {refusal && <Problem text={refusal} />}
            {isIncomplete && <Problem text="It cannot be saved yet: see what is marked." />}
        </>
    );
}

function isSame(some: string[], others: string[]): boolean {
    return JSON.stringify(some.toSorted()) === JSON.stringify(others.toSorted());
}

/** Return whether the steps are such that a node can be asked what they would do. */
function isPlannable(wrong: Wrong): boolean {
    return !Object.keys(wrong).some((field) => field.startsWith("steps"));
}

/** Return the node to check with: the chosen one, or else the first that matched, also while others are sought. */
function useChecked(node: string, matching: Matching): string {
    const first = useRef("");
    const [found] = (matching.traits.length ? matching.nodes.data.value?.nodes : null) ?? [];
    if (found) first.current = found.name ?? found.uuid;
    return node || first.current;
}

/** Return the steps that a node offers; null: it is not known. */
function useOffers(node: string, flow: Flow) {
    const path = node ? `/ingot/v1/nodes/${part(node)}/steps?flow=${flow}` : null;
    const found = useLive<{ steps: Offer[] }>(path, () => false);
    const error = found.error.value;
    return { steps: found.data.value?.steps ?? null, error: error && error.text, reload: found.reload };
}
