/** Where the ports of a machine lead: what is recorded of the other end of a cable, and what the switch itself says. */

import type { Json } from "../components/values";
import { brief, objectOf, objectsIn, textOf, type Fact } from "./parts";

export interface Port {
    uuid: string;
    address: string;
    name: string | null;
    description: string | null;
    pxe_enabled: boolean;
    physical_network: string | null;
    portgroup_uuid: string | null;
    is_smartnic: boolean;
    category: string | null;
    vendor: string | null;
    local_link_connection: Json;
    internal_info: Json;
    extra: Json;
}

export interface Portgroup {
    uuid: string;
    name: string | null;
    address: string | null;
    mode: string | null;
    standalone_ports_supported: boolean;
    physical_network: string | null;
    internal_info: Json;
    extra: Json;
    properties: Json;
}

/** A network card of the last inspection, and what its switch said by LLDP. */
export interface Card {
    name: string | null;
    link: string | null;
    heard: Json;
}

const UNKNOWN: Card = { name: null, link: null, heard: {} };

/** Return the cards of an inventory by MAC address, in lower case. */
export function mapCards(inventory: Json, pluginData: Json): Map<string, Card> {
    const heard = objectOf(pluginData["parsed_lldp"]);
    const found = new Map<string, Card>();
    for (const card of objectsIn(inventory["interfaces"])) {
        const [mac, name] = [textOf(card["mac_address"]), textOf(card["name"])];
        if (mac === null) continue;
        found.set(mac.toLowerCase(), { name, link: describeLink(card), heard: objectOf(heard[name ?? ""]) });
    }
    return found;
}

function describeLink(card: Json): string | null {
    const [link, speed] = [card["has_carrier"], textOf(card["speed_mbps"])];
    if (typeof link !== "boolean") return null;
    return link && speed ? `up, ${speed} Mbit/s` : link ? "up" : "down";
}

/** Return the card that a port is, as far as it is known. */
export function cardOf(port: Port, cards: Map<string, Card>): Card {
    return cards.get(port.address.toLowerCase()) ?? UNKNOWN;
}

/** Return the MAC addresses and names of cards that no port has. */
export function listPortless(ports: Port[], cards: Map<string, Card>): [string, Card][] {
    const known = new Set(ports.map((port) => port.address.toLowerCase()));
    return [...cards].filter(([mac]) => !known.has(mac));
}

/** Return the other end of a cable as it is recorded: `leaf-1 (52:54:00:00:00:01), port swp7`. */
export function describeEnd(link: Json): string | null {
    const [info, id, port] = [textOf(link["switch_info"]), textOf(link["switch_id"]), textOf(link["port_id"])];
    const name = info ?? textOf(link["hostname"]);
    const place = name && id ? `${name} (${id})` : (name ?? id);
    const parts = [place, port && `port ${port}`, link["network_type"] === "unmanaged" && "unmanaged"].filter(Boolean);
    return parts.join(", ") || null;
}

/** Return where the switch says that a cable leads, if that is another place than the recorded one; null: it agrees. */
export function findMismatch(link: Json, heard: Json): string | null {
    const pairs: [string, string][] = [
        ["switch_id", "switch_chassis_id"],
        ["port_id", "switch_port_id"],
    ];
    const differs = pairs.some(([recorded, said]) => {
        const [one, other] = [textOf(link[recorded]), textOf(heard[said])];
        return one !== null && other !== null && one.toLowerCase() !== other.toLowerCase();
    });
    return differs ? describeHeard(heard) : null;
}

/** Return where a switch says that it is. */
export function describeHeard(heard: Json): string | null {
    return describeEnd({
        switch_info: heard["switch_system_name"],
        switch_id: heard["switch_chassis_id"],
        port_id: heard["switch_port_id"],
    });
}

const SAID: [string, string][] = [
    ["Switch", "switch_system_name"],
    ["Chassis", "switch_chassis_id"],
    ["Port", "switch_port_id"],
    ["Port description", "switch_port_description"],
    ["Untagged VLAN", "switch_port_untagged_vlan_id"],
    ["VLANs", "switch_port_vlans"],
    ["Management addresses", "switch_mgmt_addresses"],
    ["MTU", "switch_port_mtu"],
    ["Link aggregation", "switch_port_link_aggregation_enabled"],
    ["Media", "switch_port_mau_type"],
    ["System", "switch_system_description"],
];

/** Return what a switch has said by LLDP. */
export function describeLldp(heard: Json): Fact[] {
    return SAID.map(([name, key]) => [name, spell(heard[key])]);
}

function spell(value: unknown): string | null {
    if (!Array.isArray(value)) return textOf(value);
    const parts = value.map((one) => {
        const { id, name } = objectOf(one);
        return id === undefined ? brief(one) : [textOf(id), textOf(name)].filter(Boolean).join(" ");
    });
    return parts.join(", ") || null;
}

/** Return the VIF that a port or portgroup is on; null: none. */
export function vifOf({ internal_info, extra }: { internal_info: Json; extra: Json }): string | null {
    return textOf(internal_info["tenant_vif_port_id"]) ?? textOf(extra["vif_port_id"]);
}
