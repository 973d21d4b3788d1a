/** Enrolling a machine: its driver, how the BMC is reached, and the port it boots from. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { explain, post, put } from "../api/client";
import { usePermission } from "../api/permissions";
import { CommandPanel, type Command } from "../components/command";
import { Dialog } from "../components/dialog";
import { Problem } from "../components/loading";
import { toast, toastError } from "../components/toasts";
import { part } from "../paths";
import { navigate } from "../router";
import { DriverProperties, DriverSelect, hideSecrets, TextField, useDriver, type Properties } from "./fields";

interface Enrolled {
    uuid: string;
    name: string | null;
}

const CREATE = "baremetal:node:create";
const MAC = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/i;

/** Shows the dialog. */
export function EnrollDialog({ close, done }: { close: () => void; done: () => void }): JSX.Element {
    const choice = useDriver();
    const { driver, driverInfo } = choice;
    const [values, setValues] = useState<Record<string, string>>({});
    const [manages, setManages] = useState(true);
    const [error, setError] = useState<string | null>(null);
    const [isBusy, setBusy] = useState(false);
    const permission = usePermission()(CREATE);
    const change = (name: string, value: string): void => setValues({ ...values, [name]: value });
    const mac = values["mac"]?.trim() ?? "";
    const isWrong = mac !== "" && !MAC.test(mac);
    const body = {
        driver,
        ...Object.fromEntries(["name", "resource_class", "conductor_group"].filter((name) => values[name]).map((name) => [name, values[name]])),
        driver_info: driverInfo,
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
    return (
        <Dialog title="Enroll a machine" onClose={close}>
            <form class="stack" onSubmit={(event) => void submit(event)}>
                {error && <Problem text={error} />}
                <div class="columns-2">
                    <TextField name="name" title="Name" value={values["name"]} change={change} />
                    <DriverSelect of={choice} />
                    <TextField name="resource_class" title="Resource class" value={values["resource_class"]} change={change} />
                    <TextField name="conductor_group" title="Conductor group" value={values["conductor_group"]} change={change} />
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
                <DriverProperties of={choice} />
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

/** Return the requests as commands; what is secret in them is left out. */
function commandOf(body: { driver: string; driver_info: Properties } & Record<string, unknown>, mac: string): Command {
    const hidden = hideSecrets(body.driver_info);
    const { driver, driver_info: _info, ...rest } = body;
    const options = Object.entries(rest).flatMap(([name, value]) => [`--${name.replaceAll("_", "-")}`, String(value)]);
    const info = Object.entries(hidden).flatMap(([name, value]) => ["--driver-info", `${name}=${value}`]);
    const cli = [["baremetal", "node", "create", "--driver", driver, ...options, ...info]];
    if (mac) cli.push(["baremetal", "port", "create", mac, "--node", String(body["name"] ?? "UUID")]);
    return { cli, requests: [{ method: "POST", path: "/v1/nodes", body: { ...body, driver_info: hidden } }] };
}
