/** Tables of any length: a grid that renders the rows in view only, used with arrow keys. */

import { signal, type Signal } from "@preact/signals";
import { Component, type ComponentChildren, type JSX, type RefObject } from "preact";
import { useEffect, useId, useLayoutEffect, useMemo, useRef } from "preact/hooks";

import { isNarrow } from "../media";
import { Icon } from "./icon";

export interface Column<Row> {
    name: string;
    title: string;
    /** Width in the way of grid-template-columns: `6rem`, `minmax(8rem, 2fr)`. */
    width: string;
    show: (row: Row) => ComponentChildren;
    /** What the server sorts by; none: it cannot. */
    sort?: string;
    /** Its width on small screens, where columns that have one come first; the others are reached by scrolling. */
    narrow?: string;
    /** Whether it is on a second line of each row on small screens. */
    below?: boolean;
}

/** Where one is in a table. */
export interface TablePlace {
    /** How far it is scrolled, in pixels. */
    top: number;
    /** The key of the row that the arrow keys have reached. */
    active: string | null;
}

/** Where a table keeps its place, to be found there again when one comes back. */
export interface PlaceKeeper {
    read: () => TablePlace | null;
    write: (place: TablePlace) => void;
}

export interface Selection {
    has: (key: string) => boolean;
    toggle: (key: string, from: number, event: { shiftKey: boolean }) => void;
    /** Whether all rows are selected, also those that are not loaded. */
    all: boolean;
    toggleAll: () => void;
}

export interface TableProps<Row> {
    label: string;
    columns: Column<Row>[];
    count: number;
    /** Return a row, or undefined until it is loaded. */
    rowAt: (index: number) => Row | undefined;
    keyOf: (row: Row) => string;
    nameOf: (row: Row) => string;
    open?: (row: Row) => void;
    /** Called with the rows in view, the last one exclusive. */
    onRange?: (first: number, last: number) => void;
    sort?: string;
    onSort?: (sort: string) => void;
    selection?: Selection;
    rowHeight?: number;
    /** What the list is of: the table goes back to its beginning, or to a place that was kept, when this changes. */
    list?: string;
    place?: PlaceKeeper;
}

const ROW_HEIGHT = 36;
const BELOW_HEIGHT = 20; // of the second line
const MARGIN = 8; // rows above and below the view
const SCROLLED_MS = 150; // after the last movement

/** Shows a table. */
export function VirtualTable<Row>(props: TableProps<Row>): JSX.Element {
    const { count, rowAt, keyOf, onRange, selection } = props;
    const narrow = isNarrow.value;
    const { columns, below } = useMemo(() => arrange(props.columns, narrow), [narrow, props.columns]);
    const rowHeight = (props.rowHeight ?? ROW_HEIGHT) + (below.length ? BELOW_HEIGHT : 0);
    const box = useRef<HTMLDivElement>(null);
    const id = useId();
    const view = useMemo(() => signal({ top: 0, height: 600 }), []);
    const active = useMemo(() => signal(-1), []);
    const { top, height } = view.value;
    const first = Math.max(0, Math.floor(top / rowHeight) - MARGIN);
    const last = Math.min(count, Math.ceil((top + height) / rowHeight) + MARGIN);
    useEffect(() => onRange?.(first, last), [first, last, onRange]);
    useLayoutEffect(() => {
        const element = box.current;
        if (!element) return;
        const measure = (): void => {
            view.value = { top: element.scrollTop, height: element.clientHeight };
        };
        const observer = new ResizeObserver(measure);
        observer.observe(element);
        element.addEventListener("scroll", measure, { passive: true });
        return () => {
            observer.disconnect();
            element.removeEventListener("scroll", measure);
        };
    }, []);

    const findActive = (): string | null => {
        const row = active.peek() < 0 ? undefined : rowAt(active.peek());
        return row === undefined ? null : keyOf(row);
    };
    const { keep, requested } = usePlace(box, props, active, findActive);
    useLayoutEffect(() => {
        if (requested.current?.active == null) return;
        for (let index = first; index < last; index += 1) {
            const row = rowAt(index);
            if (row === undefined || keyOf(row) !== requested.current.active) continue;
            active.value = index;
            requested.current = null;
            return;
        }
    });

    const go = (index: number): void => {
        const element = box.current;
        active.value = Math.min(Math.max(0, index), count - 1);
        requested.current = null;
        if (!element) return;
        const [above, head] = [active.value * rowHeight, element.querySelector<HTMLElement>(".table-head")?.offsetHeight ?? 0];
        if (above < element.scrollTop) element.scrollTop = above;
        const end = above + rowHeight + head - element.clientHeight;
        if (end > element.scrollTop) element.scrollTop = end;
        keep();
    };
    const page = Math.max(1, Math.floor(height / rowHeight) - 2);
    const steer = (event: KeyboardEvent): void => {
        if (event.target !== box.current) return;
        const row = active.value < 0 ? undefined : rowAt(active.value);
        const moves: Record<string, number> = {
            ArrowDown: active.value + 1,
            ArrowUp: active.value - 1,
            PageDown: active.value + page,
            PageUp: active.value - page,
            Home: 0,
            End: count - 1,
        };
        const to = moves[event.key];
        if (to !== undefined) go(to);
        else if (event.key === "Enter" && row !== undefined) {
            keep();
            props.open?.(row);
        }
        else if (event.key === " " && row !== undefined) selection?.toggle(keyOf(row), active.value, event);
        else return;
        event.preventDefault();
    };
    const widths = columns.map((one) => (narrow && one.narrow) || one.width);
    if (selection) widths.unshift("2.25rem");
    const least = widths.reduce((sum, width) => sum + Number.parseFloat(width.replace("minmax(", "")), 0);
    const rows: JSX.Element[] = [];
    const slots = Math.ceil(height / rowHeight) + 2 * MARGIN + 1;
    for (let index = first; index < last; index += 1) {
        const row = rowAt(index);
        rows.push(
            <TableRow
                key={index % slots} // elements of rows that leave the view serve those that enter it
                id={`${id}-${index}`}
                index={index}
                row={row}
                columns={columns}
                below={below}
                table={props}
                height={rowHeight}
                isActive={index === active.value}
                isSelected={row !== undefined && (selection?.has(keyOf(row)) ?? false)}
            />,
        );
    }
    const isShown = active.value >= first && active.value < last;
    return (
        <div
            class="table"
            ref={box}
            role="grid"
            tabIndex={0}
            aria-label={props.label}
            aria-rowcount={count + 1}
            aria-colcount={columns.length + below.length + (selection ? 1 : 0)}
            aria-multiselectable={selection ? true : undefined}
            aria-activedescendant={isShown ? `${id}-${active.value}` : undefined}
            onKeyDown={steer}
            onPointerDown={() => {
                requested.current = null;
                keep();
            }}
            onFocus={(event) => event.target === box.current && active.value < 0 && count > 0 && go(0)}
            style={{ "--columns": widths.join(" "), "--least": `${least}rem`, "--row-height": `${rowHeight}px` }}
        >
            <TableHead columns={columns} table={props} />
            <div class="table-body" role="rowgroup" style={{ height: `${count * rowHeight}px` }}>
                {rows}
            </div>
        </div>
    );
}

/** Return the columns as a screen has room for them. */
export function arrange<Row>(columns: Column<Row>[], narrow: boolean): { columns: Column<Row>[]; below: Column<Row>[] } {
    if (!narrow) return { columns, below: [] };
    const rank = (one: Column<Row>): number => Number(!one.narrow);
    return {
        columns: columns.filter((one) => !one.below).toSorted((one, other) => rank(one) - rank(other)),
        below: columns.filter((one) => one.below),
    };
}

/** Keep the place of a table, and go to the one that was kept as soon as there are rows. */
function usePlace<Row>(
    box: RefObject<HTMLDivElement | null>,
    { place, list, count }: TableProps<Row>,
    active: Signal<number>,
    findActive: () => string | null,
) {
    const requested = useRef<TablePlace | null>(null);
    const latest = useRef(findActive);
    latest.current = findActive;
    const keep = (): void => {
        if (box.current && requested.current === null) place?.write({ top: box.current.scrollTop, active: latest.current() });
    };
    useLayoutEffect(() => {
        requested.current = place?.read() ?? null;
        active.value = -1;
        if (box.current) box.current.scrollTop = 0;
    }, [list]);
    useLayoutEffect(() => {
        if (!box.current || !requested.current || count === 0) return;
        box.current.scrollTop = requested.current.top;
        if (requested.current.active === null) requested.current = null;
    }, [list, count > 0]);
    useEffect(() => {
        const element = box.current;
        if (!element || !place) return undefined;
        let timer: ReturnType<typeof setTimeout> | undefined;
        const scrolled = (): void => {
            clearTimeout(timer);
            timer = setTimeout(keep, SCROLLED_MS);
        };
        element.addEventListener("scroll", scrolled, { passive: true });
        return () => {
            clearTimeout(timer); // another page has the address by now
            element.removeEventListener("scroll", scrolled);
        };
    }, [place]);
    return { keep, requested };
}

interface HeadProps<Row> {
    columns: Column<Row>[];
    table: TableProps<Row>;
}

function TableHead<Row>({ columns, table }: HeadProps<Row>): JSX.Element {
    const { selection, sort = "", onSort } = table;
    const field = sort.replace(/^-/, "");
    const directionOf = (column: Column<Row>): "ascending" | "descending" | "none" | undefined => {
        if (!column.sort || !onSort) return undefined;
        if (column.sort !== field) return "none";
        return sort.startsWith("-") ? "descending" : "ascending";
    };
    return (
        <div class="table-head" role="rowgroup">
            <div class="table-row" role="row" aria-rowindex={1}>
                {selection && (
                    <div class="table-cell table-check" role="columnheader">
                        <input
                            type="checkbox"
                            aria-label="Select all that match"
                            checked={selection.all}
                            onChange={selection.toggleAll}
                        />
                    </div>
                )}
                {columns.map((column) => {
                    const direction = directionOf(column);
                    const next = direction === "ascending" ? `-${column.sort}` : (column.sort ?? "");
                    return (
                        <div class="table-cell" role="columnheader" key={column.name} aria-sort={direction}>
                            {direction === undefined ? (
                                column.title
                            ) : (
                                <button type="button" class="table-sort" onClick={() => onSort?.(next)}>
                                    {column.title}
                                    {direction !== "none" && <Icon name={direction === "ascending" ? "up" : "down"} />}
                                </button>
                            )}
                        </div>
                    );
                })}
            </div>
        </div>
    );
}

interface RowProps<Row> {
    id: string;
    index: number;
    row: Row | undefined;
    columns: Column<Row>[];
    below: Column<Row>[];
    table: TableProps<Row>;
    height: number;
    isActive: boolean;
    isSelected: boolean;
}

/** A row renders again only when it shows something else: not when others come into view. */
class TableRow<Row> extends Component<RowProps<Row>> {
    override shouldComponentUpdate(next: RowProps<Row>): boolean {
        const shown = ["index", "row", "columns", "below", "height", "isActive", "isSelected"] as const;
        return shown.some((name) => next[name] !== this.props[name]);
    }

    override render(): JSX.Element {
        const { id, index, row, columns, below, table, height, isActive, isSelected } = this.props;
        const { selection, keyOf, nameOf } = table;
        const classes = ["table-row", isActive && "is-active", isSelected && "is-selected", !row && "is-empty"];
        return (
            <div
                class={classes.filter(Boolean).join(" ")}
                role="row"
                id={id}
                aria-rowindex={index + 2}
                aria-selected={selection ? isSelected : undefined}
                style={{ transform: `translateY(${index * height}px)` }}
            >
                {selection && (
                    <div class="table-cell table-check" role="gridcell">
                        {row !== undefined && (
                            <input
                                type="checkbox"
                                tabIndex={-1}
                                aria-label={`Select ${nameOf(row)}`}
                                checked={isSelected}
                                onClick={(event) => selection.toggle(keyOf(row), index, event)}
                            />
                        )}
                    </div>
                )}
                {columns.map((column) => (
                    <div class="table-cell" role="gridcell" key={column.name}>
                        {row === undefined ? <span class="table-blank" /> : column.show(row)}
                    </div>
                ))}
                {below.length > 0 && (
                    <div class="table-below">
                        {below.map((column) => (
                            <div class="table-cell" role="gridcell" key={column.name}>
                                {row !== undefined && column.show(row)}
                            </div>
                        ))}
                    </div>
                )}
            </div>
        );
    }
}
