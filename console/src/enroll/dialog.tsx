/** Enrolling a machine: its driver, how the BMC is reached, and the port it boots from. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { explain, post, put } from "../api/client";
import { usePermission } from "../api/permissions";
import { CommandPanel, type Command } from "../components/command";
import { Dialog } from "../components/dialog";
import { Problem } from "../components/loading";
import { toast, toastError } from "../components/toasts";
import { useLive } from "../live/resource";
import { part } from "../paths";
import { navigate } from "../router";

interface Drivers {
    drivers: { name: string; hosts: string[] }[];
}

type Properties = Record<string, string>;

interface Enrolled {
    uuid: string;
    name: string | null;
}

const CREATE = "baremetal:node:create";
const SECRET = /password|secret|key$|token/;
const MAC = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/i;

/** Return whether a property is one that machines need, by what the driver says of it. */
function isNeeded(name: string, about: string): boolean {
    return /\brequired\.?$/i.test(about) || /^[a-z]+_(address|username|password)$/.test(name);
}

/** Shows the dialog. */
export function EnrollDialog({ close, done }: { close: () => void; done: () => void }): JSX.Element {
    const drivers = useLive<Drivers>("/v1/drivers", (event) => event.kind === "conductor");
    const names = (drivers.data.value?.drivers ?? []).map((one) => one.name);
    const [values, setValues] = useState<Record<string, string>>({});
    const [info, setInfo] = useState<Properties>({});
    const [manages, setManages] = useState(true);
    const [error, setError] = useState<string | null>(null);
    const [isBusy, setBusy] = useState(false);
    const driver = values["driver"] ?? names[0] ?? "";
    const properties = useLive<Properties>(driver ? `/v1/drivers/${part(driver)}/properties` : null, () => false);
    const permission = usePermission()(CREATE);
    const change = (name: string, value: string): void => setValues({ ...values, [name]: value });
    const mac = values["mac"]?.trim() ?? "";
    const isWrong = mac !== "" && !MAC.test(mac);
    const known = properties.data.value ?? {};
    const body = {
        driver,
        ...Object.fromEntries(["name", "resource_class", "conductor_group"].filter((name) => values[name]).map((name) => [name, values[name]])),
        driver_info: Object.fromEntries(Object.entries(info).filter(([name, value]) => value !== "" && name in known)),
    };

    const submit = async (event: Event): Promise<void> => {
        event.preventDefault();
        setBusy(true);
        setError(null);
        try {
            const node = await post<Enrolled>("/v1/nodes", body);
            toast(`${node.name ?? node.uuid} is enrolled.`);
            done();
            close();
            await follow(node, mac, manages);
            navigate(`/nodes/${part(node.name ?? node.uuid)}`);
        } catch (problem) {
            setError(explain(problem));
            setBusy(false);
        }
    };
    const fields = Object.entries(known).sort(([a, left], [b, right]) => Number(isNeeded(b, right)) - Number(isNeeded(a, left)));
    const needed = fields.filter(([name, about]) => isNeeded(name, about));
    const others = fields.filter(([name, about]) => !isNeeded(name, about));
    const property = ([name, about]: [string, string]): JSX.Element => (
        <label class="field" key={name}>
            <span class="mono">{name}</span>
            <PropertyInput name={name} value={info[name] ?? ""} change={(value) => setInfo({ ...info, [name]: value })} />
            <span class="field-note">{about}</span>
        </label>
    );
    return (
        <Dialog title="Enroll a machine" onClose={close}>
            <form class="stack" onSubmit={(event) => void submit(event)}>
                {error && <Problem text={error} />}
                {drivers.error.value && <Problem text={drivers.error.value.text} retry={drivers.reload} />}
                <div class="columns-2">
                    <Text name="name" title="Name" value={values["name"]} change={change} />
                    <label class="field">
                        <span>Driver</span>
                        <select name="driver" value={driver} onChange={(event) => change("driver", event.currentTarget.value)}>
                            {names.map((name) => (
                                <option key={name}>{name}</option>
                            ))}
                        </select>
                    </label>
                    <Text name="resource_class" title="Resource class" value={values["resource_class"]} change={change} />
                    <Text name="conductor_group" title="Conductor group" value={values["conductor_group"]} change={change} />
                    <label class="field">
                        <span>MAC address</span>
                        <input
                            type="text"
                            name="mac"
                            class="mono"
                            value={mac}
                            placeholder="52:54:00:12:34:56"
                            aria-invalid={isWrong}
                            onInput={(event) => change("mac", event.currentTarget.value)}
                        />
                        <span class={isWrong ? "field-wrong" : "field-note"}>
                            {isWrong ? "Six pairs of hexadecimal digits, with colons between" : "Of the port it boots from"}
                        </span>
                    </label>
                </div>
                <fieldset class="fields">
                    <legend>BMC and boot ({driver})</legend>
                    {properties.error.value && <Problem text={properties.error.value.text} retry={properties.reload} />}
                    {needed.map(property)}
                    {others.length > 0 && (
                        <details class="fold">
                            <summary>{others.length} more properties</summary>
                            <div class="fold-body">{others.map(property)}</div>
                        </details>
                    )}
                </fieldset>
                <label class="check">
                    <input type="checkbox" checked={manages} onChange={(event) => setManages(event.currentTarget.checked)} />
                    Check the BMC at once (manage)
                </label>
                <details class="fold">
                    <summary>As a command</summary>
                    <CommandPanel command={commandOf(body, mac)} />
                </details>
                {!permission.allowed && <p class="field-wrong">{permission.reason}</p>}
                <div class="dialog-end">
                    <button type="button" class="button" onClick={close}>
                        Cancel
                    </button>
                    <button class="button button-primary" disabled={isBusy || !driver || isWrong || !permission.allowed}>
                        Enroll
                    </button>
                </div>
            </form>
        </Dialog>
    );
}

/** Do what comes after the node is there; what goes wrong then is shown beside it. */
async function follow(node: Enrolled, mac: string, manages: boolean): Promise<void> {
    try {
        if (mac) await post("/v1/ports", { node_uuid: node.uuid, address: mac });
        if (manages) await put(`/v1/nodes/${node.uuid}/states/provision`, { target: "manage" });
    } catch (error) {
        toastError(error);
    }
}

interface TextProps {
    name: string;
    title: string;
    value: string | undefined;
    change: (name: string, value: string) => void;
}

function Text({ name, title, value = "", change }: TextProps): JSX.Element {
    return (
        <label class="field">
            <span>{title}</span>
            <input type="text" name={name} value={value} spellcheck={false} onInput={(event) => change(name, event.currentTarget.value)} />
        </label>
    );
}

interface PropertyProps {
    name: string;
    value: string;
    change: (value: string) => void;
}

function PropertyInput({ name, value, change }: PropertyProps): JSX.Element {
    const type = (event: { currentTarget: { value: string } }): void => change(event.currentTarget.value);
    return SECRET.test(name) ? (
        <input type="password" name={name} value={value} autocomplete="new-password" onInput={type} />
    ) : (
        <input type="text" name={name} value={value} autocomplete="off" spellcheck={false} onInput={type} />
    );
}

/** Return the requests as commands; what is secret in them is left out. */
function commandOf(body: { driver: string; driver_info: Properties } & Record<string, unknown>, mac: string): Command {
    const hidden = Object.fromEntries(
        Object.entries(body.driver_info).map(([name, value]) => [name, SECRET.test(name) ? "PASSWORD" : value]),
    );
    const { driver, driver_info: _info, ...rest } = body;
    const options = Object.entries(rest).flatMap(([name, value]) => [`--${name.replaceAll("_", "-")}`, String(value)]);
    const info = Object.entries(hidden).flatMap(([name, value]) => ["--driver-info", `${name}=${value}`]);
    const cli = [["baremetal", "node", "create", "--driver", driver, ...options, ...info]];
    if (mac) cli.push(["baremetal", "port", "create", mac, "--node", String(body["name"] ?? "UUID")]);
    return { cli, requests: [{ method: "POST", path: "/v1/nodes", body: { ...body, driver_info: hidden } }] };
}
