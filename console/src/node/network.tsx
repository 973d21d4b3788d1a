/** The tab Network: the ports of a machine, where their cables lead, and the networks that they are on. */

import type { JSX } from "preact";

import { CommandButton } from "../components/command";
import { Icon } from "../components/icon";
import { formatNumber } from "../components/number";
import { useLive } from "../live/resource";
import { part } from "../paths";
import {
    cardOf,
    describeEnd,
    describeHeard,
    describeLldp,
    findMismatch,
    listPortless,
    mapCards,
    vifOf,
    type Card,
    type Port,
    type Portgroup,
} from "./cables";
import { Facts, Found, None, Part, Rows } from "./sections";
import { ofWork, useInspection } from "./hardware";
import type { NodeDetail } from "./types";

type NetworkNode = Pick<NodeDetail, "uuid" | "name">;

/** Shows how a node is connected. */
export function NetworkTab({ node }: { node: NetworkNode }): JSX.Element {
    const concerns = ofWork(node.uuid);
    const path = `/v1/nodes/${part(node.uuid)}`;
    const ports = useLive<{ ports: Port[] }>(`${path}/ports/detail`, concerns);
    const groups = useLive<{ portgroups: Portgroup[] }>(`${path}/portgroups/detail`, concerns);
    const vifs = useLive<{ vifs: { id: string }[] }>(`${path}/vifs`, concerns);
    const { changes, inventory } = useInspection(node.uuid);
    const inspected = inventory?.data.value;
    const cards = mapCards(inspected?.inventory ?? {}, inspected?.plugin_data ?? {});
    const listed = groups.data.value?.portgroups ?? [];
    return (
        <div class="hardware">
            <div class="hardware-actions">
                <CommandButton command={commandOf(node)} />
            </div>
            <Part title="Ports">
                <Found of={ports}>{(found) => <Ports ports={found.ports} groups={listed} cards={cards} />}</Found>
            </Part>
            <Part title="Portgroups">
                <Found of={groups}>
                    {(found) => <Portgroups groups={found.portgroups} ports={ports.data.value?.ports ?? []} />}
                </Found>
            </Part>
            <Part title="VIFs">
                <Found of={vifs}>
                    {(found) => <Vifs vifs={found.vifs} places={[...(ports.data.value?.ports ?? []), ...listed]} />}
                </Found>
            </Part>
            <Part title="What switches say">
                {inventory ? (
                    <Found of={inventory}>{() => <Heard cards={cards} />}</Found>
                ) : (
                    <Found of={changes}>{() => <None>The machine was not inspected yet.</None>}</Found>
                )}
            </Part>
        </div>
    );
}

function commandOf({ uuid, name }: NetworkNode) {
    const ident = name ?? uuid;
    const path = `/v1/nodes/${part(ident)}`;
    const parts = ["ports/detail", "portgroups/detail", "vifs"];
    return {
        cli: [
            ["baremetal", "port", "list", "--node", ident, "--detail"],
            ["baremetal", "port", "group", "list", "--node", ident, "--detail"],
            ["baremetal", "node", "vif", "list", ident],
        ],
        requests: parts.map((one) => ({ method: "GET" as const, path: `${path}/${one}` })),
    };
}

interface PortsProps {
    ports: Port[];
    groups: Portgroup[];
    cards: Map<string, Card>;
}

function Ports({ ports, groups, cards }: PortsProps): JSX.Element {
    if (ports.length === 0) return <None>The node has no ports: an inspection makes them.</None>;
    const names = new Map(groups.map((group) => [group.uuid, group.name ?? group.uuid]));
    const portless = listPortless(ports, cards);
    return (
        <>
            <Rows
                label="Ports"
                heads={["MAC address", "Name", "Card", "Link", "PXE", "Physical network", "Portgroup", "Cable", "VIF", "Notes"]}
                rows={ports.map((port) => {
                    const card = cardOf(port, cards);
                    return [
                        <span class="mono nowrap">{port.address}</span>,
                        port.name,
                        card.name,
                        card.link,
                        port.pxe_enabled ? "yes" : "no",
                        port.physical_network,
                        port.portgroup_uuid && (names.get(port.portgroup_uuid) ?? port.portgroup_uuid),
                        <Cable port={port} card={card} />,
                        vifOf(port),
                        notesOf(port),
                    ];
                })}
            />
            {portless.length > 0 && (
                <p class="part-note">
                    {formatNumber(portless.length)} {portless.length === 1 ? "card has" : "cards have"} no port:{" "}
                    {portless.map(([mac, card]) => (card.name ? `${card.name} (${mac})` : mac)).join(", ")}
                </p>
            )}
        </>
    );
}

function notesOf(port: Port): string | null {
    return [port.description, port.category, port.is_smartnic && "smart NIC"].filter(Boolean).join(", ") || null;
}

/** Shows the other end of a cable, and that the switch says something else if it does. */
function Cable({ port, card }: { port: Port; card: Card }): JSX.Element {
    const recorded = describeEnd(port.local_link_connection);
    const other = findMismatch(port.local_link_connection, card.heard);
    if (other !== null) {
        return (
            <>
                {recorded}
                <span class="cable-other">
                    <Icon name="alert" /> The switch says: {other}
                </span>
            </>
        );
    }
    const heard = recorded === null ? describeHeard(card.heard) : null;
    return <>{recorded ?? (heard === null ? <span class="muted">unknown</span> : `${heard}, as the switch says`)}</>;
}

function Portgroups({ groups, ports }: { groups: Portgroup[]; ports: Port[] }): JSX.Element {
    if (groups.length === 0) return <None>The node has no portgroups.</None>;
    return (
        <Rows
            label="Portgroups"
            heads={["Name", "MAC address", "Mode", "Ports", "Ports alone", "Physical network", "VIF"]}
            rows={groups.map((group) => [
                group.name ?? group.uuid,
                group.address,
                group.mode,
                ports
                    .filter((port) => port.portgroup_uuid === group.uuid)
                    .map((port) => port.name ?? port.address)
                    .join(", "),
                group.standalone_ports_supported ? "may be used" : "may not be used",
                group.physical_network,
                vifOf(group),
            ])}
        />
    );
}

function Vifs({ vifs, places }: { vifs: { id: string }[]; places: (Port | Portgroup)[] }): JSX.Element {
    if (vifs.length === 0) return <None>No VIFs are attached.</None>;
    return (
        <Rows
            label="VIFs"
            heads={["VIF", "On"]}
            rows={vifs.map(({ id }) => {
                const place = places.find((one) => vifOf(one) === id);
                return [<code>{id}</code>, place && (place.name ?? place.address ?? place.uuid)];
            })}
        />
    );
}

function Heard({ cards }: { cards: Map<string, Card> }): JSX.Element {
    const found = [...cards].filter(([, card]) => Object.keys(card.heard).length > 0);
    if (found.length === 0) {
        return (
            <None>
                The last inspection has heard no switch. LLDP is collected with ipa-collect-lldp=1 and the hook parse-lldp.
            </None>
        );
    }
    return (
        <>
            {found.map(([mac, card]) => (
                <section key={mac} aria-label={card.name ?? mac}>
                    <h3 class="part-title">{card.name ?? mac}</h3>
                    <Facts facts={describeLldp(card.heard)} />
                </section>
            ))}
        </>
    );
}
