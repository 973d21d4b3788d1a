/** Enrolling a machine: its driver, how the BMC is reached, and the port it boots from. */

import type { JSX } from "preact";

import { post } from "../api/client";
import { useReason } from "../components/action";
import type { Command } from "../components/command";
import { hideSecrets } from "./fields";
import { MachineDialog, useMachine, type Enrolled, type NodeBody } from "./form";

/** The rule of policy that enrolling needs. */
export const CREATE = "baremetal:node:create";

const MAC = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/i;

/** Shows the dialog. */
export function EnrollDialog({ close, done }: { close: () => void; done: () => void }): JSX.Element {
    const machine = useMachine();
    const { body, values, change } = machine;
    const mac = values["mac"]?.trim() ?? "";
    const isWrong = mac !== "" && !MAC.test(mac);
    return (
        <MachineDialog
            title="Enroll a machine"
            verb="Enroll"
            machine={machine}
            reason={useReason()(CREATE)}
            isWrong={isWrong}
            command={() => commandOf(body, mac)}
            send={() => post<Enrolled>("/v1/nodes", body)}
            follow={async ({ uuid }) => mac && post("/v1/ports", { node_uuid: uuid, address: mac })}
            close={close}
            done={done}
            among={<MacField value={values["mac"] ?? ""} isWrong={isWrong} change={(value) => change("mac", value)} />}
        />
    );
}

function MacField({ value, isWrong, change }: { value: string; isWrong: boolean; change: (value: string) => void }): JSX.Element {
    return (
        <label class="field">
            <span>MAC address</span>
            <input
                type="text"
                name="mac"
                class="mono"
                value={value}
                placeholder="52:54:00:12:34:56"
                aria-invalid={isWrong}
                onInput={(event) => change(event.currentTarget.value)}
            />
            <span class={isWrong ? "field-wrong" : "field-note"}>
                {isWrong ? "Six pairs of hexadecimal digits, with colons between" : "Of the port it boots from"}
            </span>
        </label>
    );
}

/** Return the requests as commands; what is secret in them is left out. */
function commandOf(body: NodeBody, mac: string): Command {
    const hidden = hideSecrets(body.driver_info);
    const { driver, driver_info: _info, ...rest } = body;
    const options = Object.entries(rest).flatMap(([name, value]) => [`--${name.replaceAll("_", "-")}`, String(value)]);
    const info = Object.entries(hidden).flatMap(([name, value]) => ["--driver-info", `${name}=${value}`]);
    const cli = [["baremetal", "node", "create", "--driver", driver, ...options, ...info]];
    if (mac) cli.push(["baremetal", "port", "create", mac, "--node", String(body["name"] ?? "UUID")]);
    return { cli, requests: [{ method: "POST", path: "/v1/nodes", body: { ...body, driver_info: hidden } }] };
}
