/** Facts about a machine: pairs, tables, and panels that say why they are empty. */

import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";

import { Loaded } from "../components/loading";
import type { Resource } from "../live/resource";
import type { Fact } from "./parts";

interface PartProps {
    title: string;
    children: ComponentChildren;
    /** What stands beside the title. */
    beside?: ComponentChildren;
}

/** Shows a part of the machine. */
export function Part({ title, children, beside }: PartProps): JSX.Element {
    const id = useId();
    return (
        <section class="panel" aria-labelledby={id}>
            <div class="panel-head">
                <h2 id={id}>{title}</h2>
                {beside}
            </div>
            {children}
        </section>
    );
}

/** Shows that something is not there. */
export function None({ children }: { children: ComponentChildren }): JSX.Element {
    return <p class="part-none">{children}</p>;
}

/** Shows pairs of a name and a value; those that are not known are left out. */
export function Facts({ facts }: { facts: Fact[] }): JSX.Element {
    const known = facts.filter(([, value]) => value !== null);
    if (known.length === 0) return <None>Nothing is known.</None>;
    return (
        <dl class="part-facts">
            {known.map(([name, value]) => (
                <div key={name}>
                    <dt>{name}</dt>
                    <dd>{value}</dd>
                </div>
            ))}
        </dl>
    );
}

interface RowsProps {
    label: string;
    heads: string[];
    rows: ComponentChildren[][];
}

/** Shows a table; columns in which no row has anything are left out. */
export function Rows({ label, heads, rows }: RowsProps): JSX.Element {
    const shown = heads.map((_head, at) => rows.some((row) => row[at] !== null && row[at] !== undefined && row[at] !== ""));
    return (
        <div class="list-scroll" role="region" aria-label={label} tabIndex={0}>
            <table class="list">
                <thead>
                    <tr>{heads.map((head, at) => shown[at] && <th scope="col">{head}</th>)}</tr>
                </thead>
                <tbody>
                    {rows.map((row, number) => (
                        <tr key={number}>{row.map((cell, at) => shown[at] && <td>{cell}</td>)}</tr>
                    ))}
                </tbody>
            </table>
        </div>
    );
}

/** Shows what was read, or in the server's words that there is none. */
export function Found<T>({ of, children }: { of: Resource<T>; children: (data: T) => ComponentChildren }): JSX.Element {
    const error = of.error.value;
    if (error?.status === 404) return <None>{error.message}</None>;
    return <Loaded of={of}>{children}</Loaded>;
}
