/** A deploy template or runbook while it is edited: its draft, what is wrong with it, and saving it. */

import { useEffect, useMemo, useState } from "preact/hooks";

import { explain } from "../api/client";
import { useReason } from "../components/action";
import { toast, toastError } from "../components/toasts";
import { draftOf, fieldOf, findWrong, type Draft } from "./draft";
import { compareAge, KINDS, type Kind, type Saved } from "./kinds";
import { HalfSaved, isChanged, save } from "./save";
import type { Wrong } from "./values";

const LIVE = new Set(["traits", "extra", "owner"]);

/** Return what is wrong while it is still typed: what is not there yet is not. */
function typedOnly(wrong: Wrong): Wrong {
    return Object.fromEntries(Object.entries(wrong).filter(([field]) => field.includes(".priority") || LIVE.has(field)));
}

/** Return a draft without what tells its steps apart. */
function strip(draft: Draft): unknown {
    return { ...draft, steps: draft.steps.map(({ key: _key, ...step }) => step) };
}

interface Edited {
    kind: Kind;
    /** As the server has it; null: a new one. */
    saved: Saved | null;
    /** Whether it was deleted while it was edited: saving makes it anew. */
    isGone: boolean;
    done: (saved: Saved) => void;
    onChanged: (changed: boolean) => void;
}

/** Return the state of an editor. */
export function useEditing({ kind, saved: given, isGone, done, onChanged }: Edited) {
    const [known, setKnown] = useState(given);
    const [draft, setDraft] = useState(() => draftOf(given));
    const [refused, setRefused] = useState<string | null>(null);
    const [isBusy, setBusy] = useState(false);
    const [isTried, setTried] = useState(false);
    const saved = isGone ? null : known;
    const reason = useReason()(`${KINDS[kind].rule}:${saved ? "update" : "create"}`);
    const wrong = useMemo(() => findWrong(kind, draft), [kind, draft]);
    const changed = isChanged(kind, saved, draft);
    const isDirty = known === null ? JSON.stringify(strip(draft)) !== JSON.stringify(strip(draftOf(null))) : isChanged(kind, known, draft);
    const isStale = given !== null && known !== null && compareAge(given, known) > 0;
    const takeOver = (): void => {
        setKnown(given);
        setDraft(draftOf(given));
    };
    useEffect(() => onChanged(isDirty), [isDirty]);
    useEffect(() => () => onChanged(false), []);
    useEffect(() => {
        if (isStale && !isDirty) takeOver();
    }, [isStale, isDirty]);
    const change = (values: Partial<Draft>): void => {
        setRefused(null);
        setDraft((before) => ({ ...before, ...values }));
    };
    const keep = (next: Saved): void => {
        setKnown(next);
        done(next);
    };
    const submit = async (): Promise<void> => {
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
    const field = refused === null ? null : fieldOf(refused);
    const shown: Wrong = { ...(isTried ? wrong : typedOnly(wrong)), ...(refused !== null && field !== null ? { [field]: refused } : {}) };
    return {
        saved,
        draft,
        change,
        submit,
        takeOver,
        reason,
        wrong,
        shown,
        changed,
        isDirty,
        isBusy,
        /** Whether it was changed by others, and is changed here. */
        isConflict: isStale && isDirty,
        /** Whether saving it was tried though something is wrong. */
        isIncomplete: isTried && Object.keys(wrong).length > 0,
        /** Why the server refuses it, if that is about no field. */
        refusal: field === null ? refused : null,
    };
}
