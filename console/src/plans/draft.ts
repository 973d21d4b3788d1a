/** A deploy template or runbook while it is edited: what is sent, and what is wrong with it. */

import type { Flow, Kind, Saved, Step } from "./kinds";
import { readObject, writeValue, type Args, type Wrong } from "./values";

export interface StepDraft {
    /** Stays while the step is moved. */
    key: number;
    interface: string;
    step: string;
    /** Of templates; the steps of runbooks run in the order that they stand in. */
    priority: string;
    args: Args;
    /** Arguments whose text means no value. */
    wrong: Wrong;
}

export interface Draft {
    name: string;
    description: string;
    traits: string;
    disable_ramdisk: boolean;
    public: boolean;
    owner: string;
    /** As it is typed: an object in JSON. */
    extra: string;
    steps: StepDraft[];
}

export type Body = Record<string, unknown>;

const TRAIT = /^[A-Z][A-Z0-9_]*$/;
const NAME = /^[\w.~-]{1,255}$/;
const TRAIT_FORM = "CUSTOM_ and then A-Z, 0-9 and _, or a standard trait";

let latest = 0;

/** Return a step that is still to be chosen. */
export function newStep(): StepDraft {
    return { key: ++latest, interface: "deploy", step: "", priority: "50", args: {}, wrong: {} };
}

/** Return what is saved as a draft; null: a new one. */
export function draftOf(saved: Saved | null): Draft {
    const steps = [...(saved?.steps ?? [])].sort((a, b) => (a.order ?? 0) - (b.order ?? 0));
    return {
        name: saved?.name ?? "",
        description: saved?.description ?? "",
        traits: (saved?.traits ?? []).join(" "),
        disable_ramdisk: saved?.disable_ramdisk ?? false,
        public: saved?.public ?? false,
        owner: saved?.owner ?? "",
        extra: Object.keys(saved?.extra ?? {}).length ? writeValue(saved?.extra) : "",
        steps: saved
            ? steps.map((step) => ({
                  ...newStep(),
                  interface: step.interface,
                  step: step.step,
                  priority: String(step.priority ?? 0),
                  args: step.args ?? {},
              }))
            : [newStep()],
    };
}

/** Return the names in a text, once each. */
export function splitNames(text: string): string[] {
    return [...new Set(text.split(/[\s,]+/).filter(Boolean))];
}

/** Return the traits of nodes that a draft is for; what is none yet is left out. */
export function traitsOf(kind: Kind, draft: Draft): string[] {
    return splitNames(kind === "template" ? draft.name : draft.traits).filter((trait) => TRAIT.test(trait));
}

function stepsOf(kind: Kind, draft: Draft): Step[] {
    return draft.steps.map(({ interface: type, step, priority, args }, at) => ({
        interface: type,
        step,
        args,
        ...(kind === "template" ? { priority: Number(priority) } : { order: at + 1 }),
    }));
}

/** Return the whole of a draft as the server has it; the traits of a runbook are a request of their own. */
export function bodyOf(kind: Kind, draft: Draft): Body {
    const common = { name: draft.name.trim(), steps: stepsOf(kind, draft), extra: extraOf(draft) ?? {} };
    if (kind === "template") return common;
    const { disable_ramdisk, public: isPublic } = draft;
    const owner = draft.owner.trim() || null;
    return { ...common, description: draft.description.trim() || null, disable_ramdisk, public: isPublic, owner };
}

/** Return the body of the request that makes a draft: what is empty is left to the server. */
export function creationOf(kind: Kind, draft: Draft): Body {
    const isGiven = ([name, value]: [string, unknown]): boolean =>
        name === "extra" ? draft.extra.trim() !== "" : name !== "owner" || value !== null;
    return Object.fromEntries(Object.entries(bodyOf(kind, draft)).filter(isGiven));
}

/** Return what the text of `extra` means; null: no object. */
function extraOf(draft: Draft): Args | null {
    try {
        return readObject(draft.extra);
    } catch {
        return null;
    }
}

/** Return the operations that make what is saved a draft. */
export function changesOf(kind: Kind, saved: Saved, draft: Draft): { op: string; path: string; value: unknown }[] {
    const [before, after] = [bodyOf(kind, draftOf(saved)), bodyOf(kind, draft)];
    return Object.entries(after)
        .filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]))
        .map(([name, value]) => ({ op: "add", path: `/${name}`, value }));
}

/** Return the traits if a draft changes them; null: it does not. */
export function changedTraits(kind: Kind, saved: Saved | null, draft: Draft): string[] | null {
    if (kind === "template") return null;
    const [before, after] = [[...(saved?.traits ?? [])].sort(), splitNames(draft.traits).sort()];
    return JSON.stringify(before) === JSON.stringify(after) ? null : after;
}

/** Return what a draft is planned with on a node. */
export function planOf(flow: Flow, draft: Draft): Body {
    const steps = stepsOf(flow === "deploy" ? "template" : "runbook", draft);
    if (flow === "deploy") return { deploy_steps: steps };
    const inOrder = steps.map(({ order: _order, ...step }) => step);
    return { [`${flow}_steps`]: inOrder, ...(draft.disable_ramdisk ? { disable_ramdisk: true } : {}) };
}

/** Return what keeps a draft from being saved, by field: `name`, `traits`, `extra`, `steps`, `steps.0`, `steps.0.priority`. */
export function findWrong(kind: Kind, draft: Draft): Wrong {
    const wrong: Wrong = {};
    const name = draft.name.trim();
    if (kind === "template" && !TRAIT.test(name)) wrong["name"] = `Must be the name of a trait: ${TRAIT_FORM}.`;
    if (kind === "runbook" && !NAME.test(name)) wrong["name"] = "1 to 255 of A-Z a-z 0-9 - . _ ~";
    const odd = splitNames(draft.traits).filter((trait) => !TRAIT.test(trait));
    if (odd.length) wrong["traits"] = `${odd.join(", ")}: a trait is ${TRAIT_FORM}.`;
    if (extraOf(draft) === null) wrong["extra"] = "Write an object in JSON: {…}.";
    if (draft.public && draft.owner.trim()) wrong["owner"] = "A public runbook has no owner.";
    if (draft.steps.length === 0) wrong["steps"] = "At least one step is needed.";
    for (const [at, step] of draft.steps.entries()) Object.assign(wrong, findWrongIn(kind, draft, step, at));
    return wrong;
}

function findWrongIn(kind: Kind, draft: Draft, step: StepDraft, at: number): Wrong {
    const wrong: Wrong = {};
    const isSame = (other: StepDraft): boolean => other.interface === step.interface && other.step === step.step;
    if (!step.step.trim()) wrong[`steps.${at}`] = "Choose a step.";
    else if (draft.steps.findIndex(isSame) !== at) wrong[`steps.${at}`] = "Each step can be named only once.";
    if (kind === "template" && !/^\d{1,18}$/.test(step.priority.trim())) {
        wrong[`steps.${at}.priority`] = "A whole number, 0 or more.";
    }
    for (const [name, text] of Object.entries(step.wrong)) wrong[`steps.${at}.args.${name}`] = text;
    return wrong;
}

/** Return the field that a message of the server is about, as `findWrong` calls them; null: none, or none that is known. */
export function fieldOf(message: string): string | null {
    const found =
        /^(?:Invalid |Schema error for [\w ]+?: )?(name|description|traits|owner|public|extra|disable_ramdisk|steps(?:\.\d+(?:\.\w+)*)?): /.exec(message) ??
        /^Schema error for (steps|name|traits): /.exec(message) ??
        /^A [\w ]+ with (name) /.exec(message);
    const [field = "", at, part] = found?.[1]?.split(".") ?? [];
    if (!field) return null;
    if (at === undefined) return field;
    return part === "priority" ? `steps.${at}.priority` : `steps.${at}`;
}

/** Return steps with one of them moved. */
export function moveStep(steps: StepDraft[], at: number, by: number): StepDraft[] {
    const to = at + by;
    const moved = steps[at];
    if (moved === undefined || to < 0 || to >= steps.length) return steps;
    const rest = steps.filter((_step, other) => other !== at);
    return [...rest.slice(0, to), moved, ...rest.slice(to)];
}
