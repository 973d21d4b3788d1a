/** The columns of the fleet. */

import type { JSX } from "preact";

import type { FleetNode } from "../api/types";
import { Icon } from "../components/icon";
import { PowerBadge, StateBadge } from "../components/state";
import type { Column } from "../components/table";
import { Time } from "../components/time";
import { part } from "../paths";
import { address } from "../router";

type FleetColumn = Column<FleetNode>;

function Name({ node }: { node: FleetNode }): JSX.Element {
    return (
        <a class="fleet-name" tabIndex={-1} href={address(`/nodes/${part(node.name ?? node.uuid)}`)}>
            {node.name ?? node.uuid}
        </a>
    );
}

/** Shows what keeps a node back: an error, a maintenance, a lock. */
function Notes({ node }: { node: FleetNode }): JSX.Element {
    const { maintenance, maintenance_reason: why, fault, last_error: error, reservation } = node;
    return (
        <span class="fleet-notes">
            {maintenance && (
                <span class="note note-waiting" title={why ?? fault ?? "no reason was given"}>
                    <Icon name="wrench" /> {why ?? fault ?? "maintenance"}
                </span>
            )}
            {error && (
                <span class="note note-bad" title={error}>
                    <Icon name="alert" /> {error}
                </span>
            )}
            {reservation && !error && (
                <span class="note" title={`A conductor works on it: ${reservation}`}>
                    <Icon name="lock" /> {reservation}
                </span>
            )}
        </span>
    );
}

function text(name: keyof FleetNode, title: string, width: string, sort: string | undefined = name): FleetColumn {
    return {
        name,
        title,
        width,
        show: (node) => (node[name] === null || node[name] === undefined ? "" : String(node[name])),
        ...(sort ? { sort } : {}),
    };
}

export const COLUMNS: FleetColumn[] = [
    { name: "name", title: "Name", width: "minmax(9rem, 1.4fr)", sort: "name", narrow: "minmax(5rem, 1fr)", show: (node) => <Name node={node} /> },
    {
        name: "provision_state",
        title: "State",
        width: "minmax(9.5rem, 1.2fr)",
        sort: "provision_state",
        narrow: "9.25rem",
        show: (node) => <StateBadge state={node.provision_state} />,
    },
    {
        name: "provision_updated_at",
        title: "Since",
        width: "6.5rem",
        sort: "provision_updated_at",
        below: true,
        show: (node) => <Time at={node.provision_updated_at} />,
    },
    {
        name: "power_state",
        title: "Power",
        width: "5.75rem",
        sort: "power_state",
        narrow: "5.75rem",
        show: (node) => <PowerBadge state={node.power_state} />,
    },
    text("resource_class", "Class", "minmax(6rem, 0.8fr)"),
    text("driver", "Driver", "minmax(7rem, 0.8fr)"),
    text("conductor", "Conductor", "minmax(7rem, 0.9fr)"),
    { name: "notes", title: "Notes", width: "minmax(12rem, 3fr)", below: true, show: (node) => <Notes node={node} /> },
    text("conductor_group", "Group", "minmax(6rem, 0.7fr)"),
    text("owner", "Owner", "minmax(7rem, 0.8fr)"),
    text("lessee", "Lessee", "minmax(7rem, 0.8fr)"),
    text("instance_name", "Instance", "minmax(8rem, 1fr)"),
    text("instance_uuid", "Instance UUID", "19rem"),
    text("shard", "Shard", "minmax(6rem, 0.7fr)"),
    text("description", "Description", "minmax(10rem, 2fr)"),
    text("uuid", "UUID", "19rem"),
    { name: "updated_at", title: "Changed", width: "6.5rem", sort: "updated_at", show: (node) => <Time at={node.updated_at} /> },
];

/** Columns that are shown until others are chosen. */
export const FIRST_COLUMNS = COLUMNS.slice(0, 8).map((column) => column.name);
