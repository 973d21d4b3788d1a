/** The tab Hardware: what the machine has, how that differs from before, its settings, and what its sensors read. */

import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";

import { explain, get } from "../api/client";
import { Action, useReason } from "../components/action";
import { CommandButton } from "../components/command";
import { Icon } from "../components/icon";
import { Problem } from "../components/loading";
import { formatNumber } from "../components/number";
import { Time } from "../components/time";
import type { Json } from "../components/values";
import { serverNow } from "../live/clock";
import type { IngotEvent } from "../live/feed";
import { useLive, type Resource } from "../live/resource";
import { part } from "../paths";
import { Facts, Found, None, Part, Rows } from "./sections";
import {
    brief,
    countOf,
    describeArray,
    describeBoard,
    describeDisk,
    describeLimits,
    describeReading,
    describeSystem,
    groupSensors,
    kindOf,
    objectsIn,
    textOf,
    type Changes,
    type Sensor,
} from "./parts";
import type { NodeDetail } from "./types";

type HardwareNode = Pick<NodeDetail, "uuid" | "name" | "raid_config" | "target_raid_config">;

export interface Inventory {
    inventory: Json;
    plugin_data: Json;
}

interface Setting {
    name: string;
    value: string | null;
    read_only: boolean | null;
    allowable_values: unknown[] | null;
    lower_bound: number | null;
    upper_bound: number | null;
    reset_required: boolean | null;
}

interface Component {
    component: string;
    initial_version: string;
    current_version: string | null;
    last_version_flashed: string | null;
    updated_at: string | null;
    vendor: string | null;
    model: string | null;
    serial_number: string | null;
}

const SENSORS = "ingot:node:sensors:get";

/** Return a condition for `useLive`: work on a node, or a change by a user, by which what is known of its hardware changes. */
export function ofWork(uuid: string): (event: IngotEvent) => boolean {
    return (event) => (event.kind === "provision" || event.kind === "node") && event.node_uuid === uuid;
}

/**
 * Return what the last inspection of a node has found, and how that differs from the one before. There is no inventory
 * before the first one: it is not asked for then.
 */
export function useInspection(uuid: string): { changes: Resource<Changes>; inventory: Resource<Inventory> | null } {
    const concerns = ofWork(uuid);
    const path = `/v1/nodes/${part(uuid)}/inventory`;
    const changes = useLive<Changes>(`/ingot${path}/changes`, concerns);
    const isThere = Boolean(changes.data.value?.inspected_at);
    const inventory = useLive<Inventory>(isThere ? path : null, concerns);
    return { changes, inventory: isThere ? inventory : null };
}

/** Shows the hardware of a node. */
export function HardwareTab({ node }: { node: HardwareNode }): JSX.Element {
    const concerns = ofWork(node.uuid);
    const path = `/v1/nodes/${part(node.uuid)}`;
    const { changes, inventory } = useInspection(node.uuid);
    const bios = useLive<{ bios: Setting[] }>(`${path}/bios?detail=true`, concerns);
    const firmware = useLive<{ firmware: Component[] }>(`${path}/firmware`, concerns);
    const traits = useLive<{ traits: string[] }>(`${path}/traits`, concerns);
    return (
        <div class="hardware">
            <div class="hardware-actions">
                <CommandButton command={commandOf(node)} />
            </div>
            <Differences changes={changes} />
            {inventory && <Found of={inventory}>{(found) => <Parts inventory={found.inventory} changes={changes} />}</Found>}
            <Raid node={node} />
            <Part title="Firmware">
                <Found of={firmware}>{(found) => <Components components={found.firmware} />}</Found>
            </Part>
            <Part title="BIOS settings">
                <Found of={bios}>{(found) => <Settings settings={found.bios} />}</Found>
            </Part>
            <Sensors node={node.uuid} />
            <Part title="Traits">
                <Found of={traits}>{(found) => <Traits traits={found.traits} />}</Found>
            </Part>
        </div>
    );
}

function commandOf({ uuid, name }: HardwareNode) {
    const ident = name ?? uuid;
    const path = `/v1/nodes/${part(ident)}`;
    const paths = [`${path}/inventory`, `/ingot${path}/inventory/changes`, `${path}/bios`, `${path}/firmware`, `${path}/traits`];
    return {
        cli: [
            ["baremetal", "node", "inventory", "save", ident],
            ["baremetal", "node", "bios", "setting", "list", ident],
            ["baremetal", "node", "firmware", "list", ident],
            ["baremetal", "node", "trait", "list", ident],
        ],
        requests: paths.map((one) => ({ method: "GET" as const, path: one })),
    };
}

const KINDS = { added: "has come", gone: "is gone", changed: "has changed" };

/** Shows how the last inspection differs from the one before. */
function Differences({ changes }: { changes: Resource<Changes> }): JSX.Element {
    return (
        <Part title="Since the inspection before">
            <Found of={changes}>
                {(found) => (
                    <>
                        {found.inspected_at === null ? (
                            <None>The machine was not inspected yet.</None>
                        ) : (
                            <p class="part-note">
                                Inspected <Time at={found.inspected_at} both />
                                {found.before_at && (
                                    <>
                                        , before <Time at={found.before_at} both />
                                    </>
                                )}
                            </p>
                        )}
                        {found.inspected_at !== null && found.before_at === null && <None>There was no inspection before.</None>}
                        {found.before_at !== null && found.changes.length === 0 && (
                            <None>
                                <Icon name="check" /> Nothing has changed.
                            </None>
                        )}
                        {found.changes.length > 0 && (
                            <Rows
                                label="Changes of the hardware"
                                heads={["Part", "What", "Before", "Now"]}
                                rows={found.changes.map((change) => [
                                    <code>{change.path}</code>,
                                    <span class={`change change-${kindOf(change)}`}>{KINDS[kindOf(change)]}</span>,
                                    change.before === null ? "" : brief(change.before),
                                    change.after === null ? "" : brief(change.after),
                                ])}
                            />
                        )}
                    </>
                )}
            </Found>
        </Part>
    );
}

function Parts({ inventory, changes }: { inventory: Json; changes: Resource<Changes> }): JSX.Element {
    const found = changes.data.value?.changes ?? [];
    const disks = objectsIn(inventory["disks"]);
    const cards = objectsIn(inventory["interfaces"]);
    const mark = (...names: string[]): JSX.Element | null => {
        const count = names.reduce((sum, name) => sum + countOf(name, found), 0);
        return count ? <span class="change change-changed">{count === 1 ? "1 change" : `${count} changes`}</span> : null;
    };
    return (
        <>
            <div class="hardware-pair">
                <Part title="System" beside={mark("system_vendor", "boot", "bmc_address", "hostname")}>
                    <Facts facts={describeSystem(inventory)} />
                </Part>
                <Part title="Processor and memory" beside={mark("cpu", "memory")}>
                    <Facts facts={describeBoard(inventory)} />
                </Part>
            </div>
            <Part title="Disks" beside={[<Count of={disks.length} />, mark("disks")]}>
                {disks.length === 0 ? (
                    <None>The last inspection has found none.</None>
                ) : (
                    <Rows
                        label="Disks"
                        heads={["Name", "Size", "Type", "Model", "Serial number", "WWN"]}
                        rows={disks.map(describeDisk)}
                    />
                )}
            </Part>
            <Part title="Network cards" beside={[<Count of={cards.length} />, mark("interfaces")]}>
                {cards.length === 0 ? (
                    <None>The last inspection has found none.</None>
                ) : (
                    <Rows
                        label="Network cards"
                        heads={["Name", "MAC address", "Link", "Speed", "IPv4", "IPv6", "Driver", "PCI address"]}
                        rows={cards.map(describeCard)}
                    />
                )}
            </Part>
        </>
    );
}

function Count({ of }: { of: number }): JSX.Element {
    return <span class="count">{formatNumber(of)}</span>;
}

function describeCard(card: Json): (string | null)[] {
    const speed = textOf(card["speed_mbps"]);
    const names = ["ipv4_address", "ipv6_address", "driver", "pci_address"];
    const link = card["has_carrier"];
    return [
        textOf(card["name"]),
        textOf(card["mac_address"]),
        typeof link === "boolean" ? (link ? "up" : "down") : null,
        speed && `${speed} Mbit/s`,
        ...names.map((name) => textOf(card[name])),
    ];
}

const ARRAY = ["Name", "Level", "Size", "Disks", "Controller", "For the image"];

/** Shows the arrays that the machine has, and those that it is to have. */
function Raid({ node }: { node: HardwareNode }): JSX.Element {
    const [built, target] = [node.raid_config ?? {}, node.target_raid_config ?? {}];
    const at = textOf(built["last_updated"]);
    const show = (label: string, config: Json): JSX.Element | null => {
        const arrays = objectsIn(config["logical_disks"]);
        if (arrays.length === 0) return null;
        return (
            <>
                <h3 class="part-title">{label}</h3>
                <Rows label={`${label}: arrays`} heads={ARRAY} rows={arrays.map(describeArray)} />
            </>
        );
    };
    const [now, next] = [show("As built", built), show("To be built", target)];
    return (
        <Part title="RAID">
            {at && (
                <p class="part-note">
                    Built <Time at={at} both />
                </p>
            )}
            {now}
            {next}
            {!now && !next && <None>No arrays are known, and none are to be built.</None>}
        </Part>
    );
}

function Components({ components }: { components: Component[] }): JSX.Element {
    if (components.length === 0) return <None>No versions are known: the firmware interface has read none yet.</None>;
    return (
        <Rows
            label="Firmware"
            heads={["Component", "Version", "Flashed last", "At first", "Vendor", "Model", "Serial number"]}
            rows={components.map((one) => [
                one.component,
                one.current_version,
                one.last_version_flashed,
                one.initial_version === one.current_version ? null : one.initial_version,
                one.vendor,
                one.model,
                one.serial_number,
            ])}
        />
    );
}

function Settings({ settings }: { settings: Setting[] }): JSX.Element {
    const [sought, setSought] = useState("");
    const id = useId();
    if (settings.length === 0) return <None>No settings are known: the BIOS interface has read none yet.</None>;
    const words = sought.toLowerCase().split(/\s+/);
    const found = settings.filter((one) => words.every((word) => `${one.name} ${one.value}`.toLowerCase().includes(word)));
    return (
        <>
            <div class="part-search">
                <label for={id}>Search</label>
                <input
                    id={id}
                    class="input"
                    type="search"
                    value={sought}
                    spellcheck={false}
                    onInput={(event) => setSought(event.currentTarget.value)}
                />
                <span class="muted" role="status">
                    {formatNumber(found.length)} of {formatNumber(settings.length)}
                </span>
            </div>
            <div class="part-long">
                <Rows
                    label="BIOS settings"
                    heads={["Setting", "Value", "Allowed", "Notes"]}
                    rows={found.map((one) => [<code>{one.name}</code>, one.value, allowedOf(one), notesOf(one)])}
                />
            </div>
        </>
    );
}

function allowedOf({ allowable_values, lower_bound, upper_bound }: Setting): string | null {
    if (allowable_values?.length) return allowable_values.map(brief).join(", ");
    if (lower_bound === null && upper_bound === null) return null;
    return `${lower_bound ?? "…"} to ${upper_bound ?? "…"}`;
}

function notesOf({ read_only, reset_required }: Setting): string | null {
    return [read_only && "read only", reset_required && "needs a reset"].filter(Boolean).join(", ") || null;
}

const TONES: Record<string, string> = { OK: "good", Warning: "waiting", Critical: "bad" };

/** Reads the sensors when that is asked for: the BMC takes its time, and may be asked by others. */
function Sensors({ node }: { node: string }): JSX.Element {
    const refusal = useReason(node)(SENSORS);
    const [sensors, setSensors] = useState<Sensor[] | null>(null);
    const [at, setAt] = useState<string | null>(null);
    const [isBusy, setBusy] = useState(false);
    const [error, setError] = useState<string | null>(null);
    const read = async (): Promise<void> => {
        if (isBusy) return;
        setBusy(true);
        setError(null);
        try {
            setSensors((await get<{ sensors: Sensor[] }>(`/ingot/v1/nodes/${part(node)}/sensors`)).sensors);
            setAt(new Date(serverNow()).toISOString());
        } catch (problem) {
            setError(explain(problem));
        } finally {
            setBusy(false);
        }
    };
    const button = (
        <Action class="button button-small part-end" reason={refusal} run={() => void read()}>
            <Icon name="refresh" /> {isBusy ? "Reading…" : sensors ? "Read again" : "Read now"}
        </Action>
    );
    return (
        <Part title="Sensors" beside={button}>
            {error !== null && <Problem text={error} />}
            {at !== null && (
                <p class="part-note" role="status">
                    Read <Time at={at} both />
                </p>
            )}
            {sensors === null && <None>Not read yet.</None>}
            {sensors?.length === 0 && <None>The BMC has no sensors.</None>}
            {groupSensors(sensors ?? []).map(([kind, found]) => (
                <section key={kind} aria-label={kind.replace("_", " ")}>
                    <h3 class="part-title">{kind.replace("_", " ")}</h3>
                    <Rows
                        label={`Sensors: ${kind.replace("_", " ")}`}
                        heads={["Sensor", "Reading", "Health", "Limits", "Place"]}
                        rows={found.map((one) => [
                            one.name,
                            describeReading(one),
                            one.health && <Health health={one.health} />,
                            describeLimits(one),
                            one.place,
                        ])}
                    />
                </section>
            ))}
        </Part>
    );
}

function Health({ health }: { health: string }): JSX.Element {
    const tone = TONES[health] ?? "idle";
    return (
        <span class={`state state-${tone}`}>
            <Icon name={tone === "good" ? "check" : "alert"} />
            {health}
        </span>
    );
}

function Traits({ traits }: { traits: string[] }): JSX.Element {
    if (traits.length === 0) return <None>The node has no traits.</None>;
    return (
        <ul class="part-traits">
            {[...traits].sort().map((trait) => (
                <li key={trait}>
                    <code>{trait}</code>
                </li>
            ))}
        </ul>
    );
}
