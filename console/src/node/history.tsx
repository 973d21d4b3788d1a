/** The past of a node: what has happened to it, and who has requested what. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { get } from "../api/client";
import { CopyButton } from "../components/copy";
import { Icon } from "../components/icon";
import { Loaded } from "../components/loading";
import { Older } from "../components/older";
import { formatDuration, Time } from "../components/time";
import { toastError } from "../components/toasts";
import { ofNode, useLive, type Resource } from "../live/resource";
import { part } from "../paths";
import type { Audit, AuditEvent, History, HistoryEntry, NodeDetail } from "./types";
import { spellAction } from "./words";

const PAGE = 50;

/** Shows both. */
export function HistoryTab({ node }: { node: NodeDetail }): JSX.Element {
    return (
        <div class="stack">
            <Events node={node} />
            <Requests node={node} />
        </div>
    );
}

function Events({ node }: { node: NodeDetail }): JSX.Element {
    const [limit, setLimit] = useState(PAGE);
    const path = `/v1/nodes/${part(node.uuid)}/history`;
    const asked = `/ingot${path}?sort_key=created_at&sort_dir=desc&limit=${limit}`;
    const found = useLive<History>(asked, ofNode(node.uuid));
    return (
        <Section
            title="What happened"
            of={found}
            older={() => setLimit(limit + PAGE)}
            none="Nothing recorded."
            columns={["When", "Event", "State", "Who", "Request"]}
        >
            {({ history }) => history.map((entry) => <EntryRow key={entry.uuid} entry={entry} path={`${path}/${entry.uuid}`} />)}
        </Section>
    );
}

function Requests({ node }: { node: NodeDetail }): JSX.Element {
    const [limit, setLimit] = useState(PAGE);
    const found = useLive<Audit>(`/ingot/v1/audit?target=${part(node.uuid)}&limit=${limit}`, ofNode(node.uuid));
    return (
        <Section
            title="Who requested what"
            of={found}
            older={() => setLimit(limit + PAGE)}
            none="Nothing recorded. To record requests, set [audit] enabled."
            columns={["When", "What", "Answer", "Who", "Request"]}
        >
            {({ events }) => events.map((event) => <EventRow key={event.id} event={event} />)}
        </Section>
    );
}

interface SectionProps<T> {
    title: string;
    of: Resource<T>;
    columns: string[];
    older: () => void;
    /** What is said if there is nothing. */
    none: string;
    children: (found: T) => JSX.Element[];
}

function Section<T extends { next?: string }>(props: SectionProps<T>): JSX.Element {
    const { title, of, columns, older, none, children } = props;
    return (
        <section class="panel" aria-label={title}>
            <div class="panel-head">
                <h2>{title}</h2>
                <button type="button" class="button-plain panel-end" aria-label={`Read again: ${title}`} onClick={of.reload}>
                    <Icon name="refresh" /> Read again
                </button>
            </div>
            <Loaded of={of}>
                {(found) => (
                    <>
                        <Rows title={title} columns={columns} rows={children(found)} none={none} />
                        <Older isThere={Boolean(found.next)} show={older} text="Show older ones" />
                    </>
                )}
            </Loaded>
        </section>
    );
}

interface RowsProps {
    title: string;
    columns: string[];
    rows: JSX.Element[];
    none: string;
}

function Rows({ title, columns, rows, none }: RowsProps): JSX.Element {
    if (rows.length === 0) return <p class="quiet">{none}</p>;
    return (
        <div class="list-scroll" role="group" aria-label={title} tabIndex={0}>
            <table class="list">
                <thead>
                    <tr>
                        {columns.map((column) => (
                            <th key={column} scope="col">
                                {column}
                            </th>
                        ))}
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    );
}

function EntryRow({ entry, path }: { entry: HistoryEntry; path: string }): JSX.Element {
    const isBad = entry.severity === "ERROR";
    const seconds = entry.duration_seconds;
    return (
        <tr>
            <td class="nowrap">
                <Time at={entry.created_at} both />
            </td>
            <td>
                <span class={isBad ? "tone-text-bad" : "muted"}>
                    {isBad && <Icon name="alert" />}
                    {isBad && <span class="visually-hidden">Error: </span>}
                    {entry.event_type}
                </span>{" "}
                <EventText entry={entry} path={path} />
                {seconds !== null && <span class="muted"> {formatDuration(seconds)}</span>}
            </td>
            <td>
                {entry.state}
                {entry.target_provision_state && <span class="muted"> to {entry.target_provision_state}</span>}
            </td>
            <td>
                {entry.user ?? "Ingot"}
                {entry.conductor && <span class="muted"> on {entry.conductor}</span>}
            </td>
            <RequestCell id={entry.request_id} />
        </tr>
    );
}

/** Shows the id of a request, by which logs are searched. */
function RequestCell({ id }: { id: string | null }): JSX.Element {
    if (id === null) return <td />;
    return (
        <td>
            <code>{id}</code>
            <CopyButton text={id} of="the id of the request" />
        </td>
    );
}

/** Shows the text of an entry; lists have the beginning of a long one only. */
function EventText({ entry, path }: { entry: HistoryEntry; path: string }): JSX.Element {
    const [whole, setWhole] = useState<string | null>(null);
    const read = (): void => {
        get<HistoryEntry>(path)
            .then((found) => setWhole(found.event))
            .catch(toastError);
    };
    return (
        <>
            {whole ?? entry.event}
            {whole === null && entry.event.endsWith("...") && (
                <button type="button" class="button-plain button-small" onClick={read}>
                    Whole text
                </button>
            )}
        </>
    );
}

const OUTCOMES: Partial<Record<string, [string, string]>> = {
    success: ["done", "good"],
    pending: ["accepted", "busy"],
    failure: ["refused", "bad"],
};

function EventRow({ event }: { event: AuditEvent }): JSX.Element {
    const { initiator, reason, request } = event;
    const [word, tone] = OUTCOMES[event.outcome] ?? [event.outcome, "idle"]; // of a newer server
    return (
        <tr>
            <td class="nowrap">
                <Time at={event.event_time} both />
            </td>
            <td>
                {spellAction(event)}
                <code class="audit-path">
                    {request.method} {request.path}
                </code>
            </td>
            <td>
                <span class={`tone-text-${tone}`}>
                    {reason.code >= 500 ? "failed" : word} ({reason.code})
                </span>{" "}
                {reason.message}
            </td>
            <td>
                {initiator.name ?? initiator.id ?? "no login"}
                {(initiator.project_name ?? initiator.project_id) && (
                    <span class="muted"> of project {initiator.project_name ?? initiator.project_id}</span>
                )}
                {initiator.address && <span class="muted"> from {initiator.address}</span>}
            </td>
            <RequestCell id={event.request_id} />
        </tr>
    );
}
