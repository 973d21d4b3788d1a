/** The fleet: all machines that match a filter, and verbs for many of them. */

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";

import type { FleetNode } from "../api/types";
import { Action, useReason } from "../components/action";
import { CommandButton, type Command } from "../components/command";
import { Icon } from "../components/icon";
import { useKeys } from "../components/keys";
import { Empty, Problem } from "../components/loading";
import { Menu } from "../components/menu";
import { formatNumber } from "../components/number";
import { VirtualTable, type PlaceKeeper, type TablePlace } from "../components/table";
import { toast } from "../components/toasts";
import { CREATE, EnrollDialog } from "../enroll/dialog";
import { COLUMNS, FIRST_COLUMNS } from "../fleet/columns";
import { FilterField } from "../fleet/filter";
import { FleetRows } from "../fleet/rows";
import { FleetSelection } from "../fleet/selection";
import { ViewsMenu, type View } from "../fleet/views";
import { part } from "../paths";
import { navigate, query, setQuery } from "../router";
import { load, save } from "../storage";
import { useRefusal, VerbMenu } from "../verbs/menu";
import { openVerb } from "../verbs/request";
import { verbOf, VERB_NAMES, type VerbName } from "../verbs/verbs";

const chosenColumns = signal(load<string[]>("columns", FIRST_COLUMNS));

function choose(columns: string[]): void {
    chosenColumns.value = columns;
    save("columns", columns);
}

/** The place in the list is part of the browser's history: "back" from a node leads to it. */
const PLACE: PlaceKeeper = {
    read: () => ((history.state as { table?: TablePlace } | null)?.table ?? null),
    write: (table) => history.replaceState({ ...(history.state as object | null), table }, ""),
};

const keyOf = (node: FleetNode): string => node.uuid;
const nameOf = (node: FleetNode): string => node.name ?? node.uuid;
const open = (node: FleetNode): void => navigate(`/nodes/${part(nameOf(node))}`);

/** Shows the fleet. */
export function FleetPage(): JSX.Element {
    const [filter, sort] = [query.value.get("filter") ?? "", query.value.get("sort") ?? ""];
    const rows = useMemo(() => new FleetRows(), []);
    const [isEnrolling, setEnrolling] = useState(false);
    useEffect(() => {
        rows.start();
        return () => rows.stop();
    }, [rows]);
    const [typed, setTyped] = useState({ text: filter, asked: filter.trim() });
    const asked = typed.text === filter ? typed.asked : filter.trim();
    useEffect(() => rows.ask({ filter: asked, sort: sort || "name" }), [rows, asked, sort]);
    const selection = useMemo(() => new FleetSelection(rows, asked), [rows]);
    useEffect(() => selection.follow(asked), [selection, asked]);
    useEffect(() => selection.reorder(), [selection, sort]);
    const shown = chosenColumns.value;
    const columns = useMemo(() => COLUMNS.filter((column) => shown.includes(column.name)), [shown]);
    const show = (view: View): void => {
        if (view.columns) choose(view.columns);
        setQuery({ filter: view.filter, sort: view.sort }, { replace: false });
    };
    const reason = useReason()(CREATE);
    const enroll = (): void => (reason === null ? setEnrolling(true) : toast(reason, "bad"));
    useKeys("Fleet", [{ key: "n", text: "Enroll a machine", run: enroll }]);
    return (
        <>
            <div class="page-head">
                <h1>Fleet</h1>
                <Counts rows={rows} filter={filter} />
                <div class="page-actions">
                    <ViewsMenu current={{ filter, sort, columns: chosenColumns.value }} choose={show} />
                    <ColumnsMenu />
                    <CommandButton command={commandOf(asked, sort)} />
                    <Action class="button button-primary" reason={reason} run={enroll}>
                        <Icon name="plus" /> Enroll
                    </Action>
                </div>
            </div>
            <FilterField
                value={filter}
                change={(text, next) => {
                    setTyped({ text, asked: next });
                    if (text !== filter) setQuery({ filter: text });
                }}
                error={rows.error.value?.status === 400 ? rows.error.value.message : null}
                autofocus={query.value.has("search")}
            />
            {rows.error.value && rows.error.value.status !== 400 && (
                <Problem text={rows.error.value.text} retry={rows.refresh} />
            )}
            <SelectionBar selection={selection} filter={asked} />
            <Rows rows={rows} selection={selection} columns={columns} sort={sort || "name"} list={`${asked} ${sort}`} />
            {isEnrolling && <EnrollDialog close={() => setEnrolling(false)} done={rows.refresh} />}
        </>
    );
}

function Counts({ rows, filter }: { rows: FleetRows; filter: string }): JSX.Element {
    const [matching, total] = [rows.matching.value, rows.total.value];
    const text = rows.loading.value && !total ? "Loading…" : filter ? `${formatNumber(matching)} of ${formatNumber(total)}` : `${formatNumber(total)} nodes`;
    return (
        <span class="muted" role="status">
            {text}
        </span>
    );
}

interface RowsProps {
    rows: FleetRows;
    selection: FleetSelection;
    columns: typeof COLUMNS;
    sort: string;
    list: string;
}

function Rows({ rows, selection, columns, sort, list }: RowsProps): JSX.Element {
    void [rows.version.value, selection.version.value]; // what they hold has changed
    if (rows.matching.value === 0 && !rows.loading.value && !rows.error.value) {
        return rows.total.value ? (
            <Empty>
                No machine matches.{" "}
                <button type="button" class="button" onClick={() => setQuery({ filter: "" })}>
                    Clear the filter
                </button>
            </Empty>
        ) : (
            <Empty>There is no machine yet: enroll one.</Empty>
        );
    }
    return (
        <VirtualTable
            label="Machines"
            columns={columns}
            count={rows.matching.value}
            rowAt={rows.at}
            keyOf={keyOf}
            nameOf={nameOf}
            open={open}
            onRange={rows.show}
            list={list}
            place={PLACE}
            sort={sort}
            onSort={(chosen) => setQuery({ sort: chosen === "name" ? "" : chosen })}
            selection={selection.asSelection()}
        />
    );
}

function SelectionBar({ selection, filter }: { selection: FleetSelection; filter: string }): JSX.Element {
    void selection.version.value;
    const count = selection.count;
    const targets = selection.targets(filter);
    const refusal = useRefusal(targets);
    const ask = (verb: VerbName): void => {
        const reason = count ? refusal(verb) : "Select nodes first: space selects the one that is marked.";
        if (reason) toast(reason, "bad");
        else openVerb({ ...targets, verb });
    };
    const lettered = VERB_NAMES.filter((name) => verbOf(name).key);
    useKeys(
        "Selected nodes",
        lettered.map((name) => ({ key: verbOf(name).key ?? "", text: verbOf(name).text, run: () => ask(name) })),
    );
    return (
        <div class={count ? "selection" : "selection is-empty"}>
            <span role="status">{selection.reading.value ? "Reading the rows between…" : count ? `${formatNumber(count)} selected` : "None selected"}</span>
            {count > 0 && (
                <>
                    <VerbMenu targets={targets} />
                    <button type="button" class="button-plain" onClick={selection.clear}>
                        Clear
                    </button>
                </>
            )}
        </div>
    );
}

function ColumnsMenu(): JSX.Element {
    const chosen = chosenColumns.value;
    const items = COLUMNS.filter((column) => column.name !== "name").map((column) => ({
        text: column.title,
        checked: chosen.includes(column.name),
        run: () => {
            const isIn = chosen.includes(column.name);
            choose(isIn ? chosen.filter((name) => name !== column.name) : [...chosen, column.name]);
        },
    }));
    const label = (
        <>
            <Icon name="columns" /> Columns
        </>
    );
    return <Menu label={label} title="Columns" items={items} stays />;
}

function commandOf(filter: string, sort: string): Command {
    const sent = new URLSearchParams({ ...(filter && { filter }), ...(sort && { sort }) }).toString();
    const path = `/ingot/v1/fleet${sent ? `?${sent}` : ""}`;
    return { requests: [{ method: "GET", path }], ...(filter ? {} : { cli: [["baremetal", "node", "list"]] }) };
}
