/** Plans: deploy templates and runbooks, and the editor of one. */

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { Action, useReason } from "../components/action";
import { CommandButton } from "../components/command";
import { Icon } from "../components/icon";
import { useKeys } from "../components/keys";
import { Empty, Loaded } from "../components/loading";
import { formatNumber } from "../components/number";
import { toast } from "../components/toasts";
import { useList } from "../live/list";
import { ofPlans } from "../live/resource";
import { Editor } from "../plans/editor";
import { compareAge, findChosen, KINDS, type Flow, type Kind, type Saved } from "../plans/kinds";
import { address, guardLeave, navigate, query, setQuery } from "../router";

const KIND_NAMES = Object.keys(KINDS) as Kind[];

/** Return the address of a list, or of one of it. */
function placeOf(kind: Kind, values: Record<string, string> = {}): string {
    const kept = query.value.get("node");
    return `/plans?${new URLSearchParams({ kind, ...values, ...(kept ? { node: kept } : {}) })}`;
}

/** Ask before something is left that is not saved; the browser asks itself before it leaves the console. */
function useGuard(isChanged: boolean): void {
    useEffect(() => {
        if (!isChanged) return undefined;
        const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
        addEventListener("beforeunload", warn);
        const end = guardLeave(() => confirm("Discard the changes? What was changed here is not saved."));
        return () => {
            end();
            removeEventListener("beforeunload", warn);
        };
    }, [isChanged]);
}

/** Shows deploy templates or runbooks, and the one that is chosen. */
export function PlansPage(): JSX.Element {
    const asked = query.value.get("kind");
    const kind: Kind = KIND_NAMES.find((name) => name === asked) ?? "template";
    const { path, key, about, rule, one, cli } = KINDS[kind];
    const list = useList<Saved>(`${path}?detail=True`, key, ofPlans);
    const [isChanged, setChanged] = useState(false);
    const reason = useReason()(`${rule}:create`);
    useGuard(isChanged);
    const make = (): void => navigate(placeOf(kind, { new: "1" }));
    useKeys("Plans", [
        { key: "n", text: `New ${one}`, run: () => (reason === null ? make() : toast(reason, "bad")) },
        { key: "r", text: "Read again", run: list.reload },
    ]);
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
                        >
                            {KINDS[name].many}
                        </a>
                    ))}
                </nav>
                <div class="page-actions">
                    <CommandButton command={{ cli: [[...cli, "list"]], requests: [{ method: "GET", path }] }} />
                    <Action class="button button-primary" reason={reason} run={make}>
                        <Icon name="plus" /> New {one}
                    </Action>
                </div>
            </div>
            <p class="muted">{about}</p>
            <Loaded of={list}>
                {(all) => <Content key={kind} kind={kind} all={all} reload={list.reload} onChanged={setChanged} />}
            </Loaded>
        </>
    );
}

interface ContentProps {
    kind: Kind;
    all: Saved[];
    reload: () => void;
    onChanged: (changed: boolean) => void;
}

function Content({ kind, all, reload, onChanged }: ContentProps): JSX.Element {
    const { one, flows } = KINDS[kind];
    const [latest, setLatest] = useState<Saved[]>([]); // saved here, maybe after the list was read
    const isNew = query.value.has("new");
    const ident = query.value.get("plan") ?? "";
    const known = [...latest, ...all].sort((a, b) => compareAge(b, a));
    const held = useRef<Saved | null>(null);
    const found = isNew ? null : findChosen(known, ident, held.current);
    const chosen = isNew ? null : found?.saved;
    held.current = chosen ?? null;
    useEffect(() => {
        // A list that has it knows from now on whether it is there.
        setLatest((before) => before.filter((saved) => !all.some((one) => one.uuid === saved.uuid && compareAge(one, saved) >= 0)));
    }, [all]);
    useLayoutEffect(() => {
        if (chosen && ident && ident !== chosen.uuid && ident !== chosen.name) setQuery({ plan: chosen.name });
    }, [chosen?.name]);
    const flow = flows.find((name): name is Flow => name === query.value.get("flow")) ?? flows[0];
    const done = (saved: Saved | null): void => {
        reload();
        onChanged(false);
        setLatest(saved ? [saved] : []);
        navigate(placeOf(kind, saved ? { plan: saved.name, ...(flow === flows[0] ? {} : { flow }) } : {}), { replace: true });
    };
    return (
        <div class={chosen === undefined ? "plans" : "plans is-open"}>
            <PlansList kind={kind} all={all} chosen={chosen ?? null} />
            {chosen === undefined ? (
                <Empty>{whyEmpty(one, ident, all.length)}</Empty>
            ) : (
                <Editor
                    key={`${kind} ${chosen?.uuid ?? "new"}`}
                    kind={kind}
                    saved={chosen}
                    isGone={found?.isGone ?? false}
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
}

function PlansList({ kind, all, chosen }: ListProps): JSX.Element | null {
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
