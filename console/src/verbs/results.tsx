/** What became of each node that was asked: the refused ones with their reasons first. */

import type { JSX } from "preact";

import type { BulkResult } from "../api/types";
import { Icon } from "../components/icon";
import { part } from "../paths";
import { address } from "../router";

const SHOWN = 200;

interface ResultsProps {
    results: BulkResult[];
    /** Whether the nodes were only asked whether they would accept. */
    dryRun: boolean;
}

/** Shows results, as many as anyone reads. */
export function Results({ results, dryRun }: ResultsProps): JSX.Element {
    const refused = results.filter((one) => !one.accepted);
    const accepted = results.length - refused.length;
    const shown = [...refused, ...results.filter((one) => one.accepted && !dryRun)];
    return (
        <div class="results">
            <p class="results-counts" role="status">
                <span class="results-good">
                    <Icon name="check" /> {accepted} {dryRun ? "would accept" : "accepted"}
                </span>
                <span class={refused.length ? "results-bad" : "muted"}>
                    <Icon name={refused.length ? "alert" : "circle"} /> {refused.length}{" "}
                    {dryRun ? "would refuse" : "refused"}
                </span>
            </p>
            {shown.length > 0 && (
                <ul class="results-list" tabIndex={0} aria-label="Results by node">
                    {shown.slice(0, SHOWN).map((one) => (
                        <li key={one.node}>
                            <Icon name={one.accepted ? "check" : "alert"} />
                            <a href={address(`/nodes/${part(one.node)}`)}>{one.name ?? one.node}</a>
                            <span class={one.accepted ? "muted" : ""}>{one.reason ?? "accepted"}</span>
                        </li>
                    ))}
                    {shown.length > SHOWN && <li class="muted">and {shown.length - SHOWN} more</li>}
                </ul>
            )}
        </div>
    );
}
