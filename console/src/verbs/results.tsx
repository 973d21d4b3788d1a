/** What became of each node that was asked: the refused ones with their reasons first. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import type { BulkResult } from "../api/types";
import { Icon } from "../components/icon";
import { formatNumber } from "../components/number";
import { VirtualTable, type Column } from "../components/table";
import { part } from "../paths";
import { address } from "../router";

const SHOWN = 200;

interface ResultsProps {
    results: BulkResult[];
    /** Whether the nodes were only asked whether they would accept. */
    dryRun: boolean;
}

const nameOf = (one: BulkResult): string => one.name ?? one.node;
const keyOf = (one: BulkResult): string => one.node;

/** A link that leaves the results where they are. */
function NodeLink({ of: one }: { of: BulkResult }): JSX.Element {
    return (
        <a href={address(`/nodes/${part(one.node)}`)} target="_blank" tabIndex={-1}>
            {nameOf(one)}
        </a>
    );
}

const COLUMNS: Column<BulkResult>[] = [
    { name: "name", title: "Node", width: "minmax(9rem, 1fr)", show: (one) => <NodeLink of={one} /> },
    { name: "reason", title: "Answer", width: "minmax(9rem, 2fr)", show: (one) => one.reason ?? "accepts" },
];

/** Shows what unfolds to a table of nodes, however many there are. */
export function NodeFold({ title, nodes }: { title: string; nodes: BulkResult[] }): JSX.Element | null {
    const [isOpen, setOpen] = useState(false);
    if (nodes.length === 0) return null;
    return (
        <details class="fold" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
            <summary>{title}</summary>
            {isOpen && (
                <VirtualTable
                    label={title}
                    columns={COLUMNS}
                    count={nodes.length}
                    rowAt={(index) => nodes[index]}
                    keyOf={keyOf}
                    nameOf={nameOf}
                    open={(one) => window.open(address(`/nodes/${part(one.node)}`))}
                />
            )}
        </details>
    );
}

/** Shows results: the refused ones with why, all others behind their number. */
export function Results({ results, dryRun }: ResultsProps): JSX.Element {
    const refused = results.filter((one) => !one.accepted);
    const accepted = results.filter((one) => one.accepted);
    const [accepts, refuses] = dryRun ? ["would accept", "would refuse"] : ["accepted", "refused"];
    return (
        <div class="results">
            <p class="results-counts" role="status">
                <span class="results-good">
                    <Icon name="check" /> {accepted.length} {accepts}
                </span>
                <span class={refused.length ? "results-bad" : "muted"}>
                    <Icon name={refused.length ? "alert" : "circle"} /> {refused.length} {refuses}
                </span>
            </p>
            {refused.length > 0 && (
                <ul class="results-list" tabIndex={0} aria-label="Results by node">
                    {refused.slice(0, SHOWN).map((one) => (
                        <li key={one.node}>
                            <Icon name="alert" />
                            <a href={address(`/nodes/${part(one.node)}`)} target="_blank">
                                {nameOf(one)}
                            </a>
                            <span>{one.reason}</span>
                        </li>
                    ))}
                </ul>
            )}
            {refused.length > SHOWN && <NodeFold title={`All ${formatNumber(refused.length)} that ${refuses}`} nodes={refused} />}
            <NodeFold title={`Nodes that ${accepts} (${formatNumber(accepted.length)})`} nodes={accepted} />
        </div>
    );
}
