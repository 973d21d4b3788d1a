/** Plans: deploy templates and runbooks, and the editor of one. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import { Action, useReason } from "../components/action";
import { CommandButton } from "../components/command";
import { Dialog } from "../components/dialog";
import { Icon } from "../components/icon";
import { useKeys } from "../components/keys";
import { Empty, Loaded } from "../components/loading";
import { formatNumber } from "../components/number";
import { ofPlans, useLive } from "../live/resource";
import { Editor } from "../plans/editor";
import { compareAge, KINDS, type Flow, type Kind, type Saved } from "../plans/kinds";
import { address, navigate, query, setQuery } from "../router";

type Lists = Record<string, Saved[]>;

const KIND_NAMES = Object.keys(KINDS) as Kind[];

/** Return the address of a list, or of one of it. */
function placeOf(kind: Kind, values: Record<string, string> = {}): string {
    const kept = query.value.get("node");
    return `/plans?${new URLSearchParams({ kind, ...values, ...(kept ? { node: kept } : {}) })}`;
}

/** Warn before the browser leaves a page with something that is not saved. */
function useWarning(isChanged: boolean): void {
    useEffect(() => {
        if (!isChanged) return undefined;
        const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
        addEventListener("beforeunload", warn);
        return () => removeEventListener("beforeunload", warn);
    }, [isChanged]);
}

/** Shows deploy templates or runbooks, and the one that is chosen. */
export function PlansPage(): JSX.Element {
    const asked = query.value.get("kind");
    const kind: Kind = KIND_NAMES.find((name) => name === asked) ?? "template";
    const { path, key, about, rule, one, cli } = KINDS[kind];
    const list = useLive<Lists>(`${path}?detail=True`, ofPlans);
    const [isChanged, setChanged] = useState(false);
    const [next, setNext] = useState<string | null>(null);
    const reason = useReason()(`${rule}:create`);
    useWarning(isChanged);
    const go = (place: string): void => (isChanged ? setNext(place) : navigate(place));
    useKeys("Plans", [
        { key: "n", text: `New ${one}`, run: () => reason === null && go(placeOf(kind, { new: "1" })) },
        { key: "r", text: "Read again", run: list.reload },
    ]);
    const follow = (event: Event, place: string): void => {
        if (!isChanged) return;
        event.preventDefault();
        setNext(place);
    };
    return (
        <>
            <div class="page-head">
                <h1>Plans</h1>
                <nav class="kinds" aria-label="Kinds of plans">
                    {KIND_NAMES.map((name) => (
                        <a
                            key={name}
                            class="button"
                            href={address(placeOf(name))}
                            aria-current={name === kind ? "true" : undefined}
                            onClick={(event) => follow(event, placeOf(name))}
                        >
                            {KINDS[name].many}
                        </a>
                    ))}
                </nav>
                <div class="page-actions">
                    <CommandButton command={{ cli: [[...cli, "list"]], requests: [{ method: "GET", path }] }} />
                    <Action class="button button-primary" reason={reason} run={() => go(placeOf(kind, { new: "1" }))}>
                        <Icon name="plus" /> New {one}
                    </Action>
                </div>
            </div>
            <p class="muted">{about}</p>
            <Loaded of={list}>
                {(found) => (
                    <Content kind={kind} all={found[key] ?? []} reload={list.reload} follow={follow} onChanged={setChanged} />
                )}
            </Loaded>
            {next !== null && (
                <LeaveDialog
                    close={() => setNext(null)}
                    leave={() => {
                        setNext(null);
                        setChanged(false);
                        navigate(next);
                    }}
                />
            )}
        </>
    );
}

interface ContentProps {
    kind: Kind;
    all: Saved[];
    reload: () => void;
    follow: (event: Event, place: string) => void;
    onChanged: (changed: boolean) => void;
}

function Content({ kind, all, reload, follow, onChanged }: ContentProps): JSX.Element {
    const { one, flows } = KINDS[kind];
    const [latest, setLatest] = useState<Saved[]>([]); // saved here, maybe after the list was read
    const isNew = query.value.has("new");
    const ident = query.value.get("plan") ?? "";
    const known = [...latest, ...all].sort((a, b) => compareAge(b, a));
    const chosen = isNew ? null : known.find((saved) => saved.name === ident || saved.uuid === ident);
    const flow = flows.find((name): name is Flow => name === query.value.get("flow")) ?? flows[0];
    const done = (saved: Saved | null): void => {
        reload();
        onChanged(false);
        setLatest(saved ? [saved] : []);
        navigate(placeOf(kind, saved ? { plan: saved.name, ...(flow === flows[0] ? {} : { flow }) } : {}), { replace: true });
    };
    return (
        <div class={chosen === undefined ? "plans" : "plans is-open"}>
            <PlansList kind={kind} all={all} chosen={chosen ?? null} follow={follow} />
            {chosen === undefined ? (
                <Empty>{whyEmpty(one, ident, all.length)}</Empty>
            ) : (
                <Editor
                    key={`${kind} ${chosen?.uuid ?? "new"}`}
                    kind={kind}
                    saved={chosen}
                    node={query.value.get("node") ?? ""}
                    flow={flow}
                    choose={(values) => setQuery(values)}
                    done={done}
                    onChanged={onChanged}
                />
            )}
        </div>
    );
}

function whyEmpty(one: string, ident: string, count: number): string {
    if (ident) return `There is no ${one} ${ident}.`;
    return count ? `Choose a ${one} to see what it does.` : `There is no ${one} yet: make one.`;
}

interface ListProps {
    kind: Kind;
    all: Saved[];
    chosen: Saved | null;
    follow: (event: Event, place: string) => void;
}

function PlansList({ kind, all, chosen, follow }: ListProps): JSX.Element | null {
    if (all.length === 0) return null;
    const sorted = [...all].sort((a, b) => a.name.localeCompare(b.name));
    return (
        <nav class="panel" aria-label={KINDS[kind].many}>
            <div class="panel-head">
                <h2>{KINDS[kind].many}</h2>
                <span class="count">{formatNumber(all.length)}</span>
            </div>
            <ul class="plans-list">
                {sorted.map((saved) => {
                    const place = placeOf(kind, { plan: saved.name });
                    return (
                        <li key={saved.uuid}>
                            <a
                                href={address(place)}
                                aria-current={saved.uuid === chosen?.uuid ? "true" : undefined}
                                onClick={(event) => follow(event, place)}
                            >
                                <span class="plans-name">{saved.name}</span>
                                <span class="muted">{summarize(saved)}</span>
                            </a>
                        </li>
                    );
                })}
            </ul>
        </nav>
    );
}

function summarize(saved: Saved): string {
    const steps = saved.steps.map((step) => step.step).join(", ");
    return saved.description || steps;
}

function LeaveDialog({ close, leave }: { close: () => void; leave: () => void }): JSX.Element {
    return (
        <Dialog
            title="Discard the changes?"
            onClose={close}
            actions={
                <>
                    <button type="button" class="button" onClick={close}>
                        Go on editing
                    </button>
                    <button type="button" class="button button-danger" onClick={leave}>
                        Discard
                    </button>
                </>
            }
        >
            <p>What was changed here is not saved.</p>
        </Dialog>
    );
}
