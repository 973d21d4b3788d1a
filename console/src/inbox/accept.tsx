/** Accepting a machine of the inbox as a node: with what only an operator knows, its BMC and its password. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { explain, post, put } from "../api/client";
import { useReason } from "../components/action";
import { CommandPanel } from "../components/command";
import { Dialog } from "../components/dialog";
import { Problem } from "../components/loading";
import { toast, toastError } from "../components/toasts";
import { DriverProperties, DriverSelect, hideSecrets, TextField, useDriver } from "../enroll/fields";
import { part } from "../paths";
import { navigate } from "../router";
import { nameOf, type Entry } from "./entry";

interface AcceptProps {
    entry: Entry;
    close: () => void;
    done: () => void;
}

const TEXTS: [string, string][] = [
    ["name", "Name"],
    ["resource_class", "Resource class"],
    ["conductor_group", "Conductor group"],
];

/** Shows the dialog. */
export function AcceptDialog({ entry, close, done }: AcceptProps): JSX.Element {
    const choice = useDriver();
    const [values, setValues] = useState<Record<string, string>>({});
    const [manages, setManages] = useState(true);
    const [error, setError] = useState<string | null>(null);
    const [isBusy, setBusy] = useState(false);
    const reasonFor = useReason();
    const reason = reasonFor("ingot:inbox:accept") ?? reasonFor("baremetal:node:create");
    const given = Object.fromEntries(TEXTS.map(([name]) => [name, values[name]?.trim()]).filter(([, value]) => value));
    const path = `/ingot/v1/inbox/${part(entry.uuid)}/accept`;
    const body = { driver: choice.driver, ...given, driver_info: choice.driverInfo };
    const shown = { ...body, driver_info: hideSecrets(choice.driverInfo) };

    const submit = async (event: Event): Promise<void> => {
        event.preventDefault();
        setBusy(true);
        setError(null);
        try {
            const node = await post<{ uuid: string; name: string | null }>(path, body);
            toast(`${node.name ?? node.uuid} is enrolled.`);
            done();
            close();
            if (manages) await put(`/v1/nodes/${node.uuid}/states/provision`, { target: "manage" }).catch(toastError);
            navigate(`/nodes/${part(node.name ?? node.uuid)}`);
        } catch (problem) {
            setError(explain(problem));
            setBusy(false);
        }
    };
    return (
        <Dialog title={`Accept ${nameOf(entry)}`} onClose={close}>
            <form class="stack" onSubmit={(event) => void submit(event)}>
                {error && <Problem text={error} />}
                <p class="muted">{whatIsMade(entry)}</p>
                <div class="columns-2">
                    {TEXTS.map(([name, title]) => (
                        <TextField
                            key={name}
                            name={name}
                            title={title}
                            value={values[name]}
                            change={(_name, value) => setValues({ ...values, [name]: value })}
                        />
                    ))}
                    <DriverSelect of={choice} />
                </div>
                <DriverProperties of={choice} />
                {entry.bmc_address && (
                    <p class="muted">
                        The machine says that its BMC is at <code>{entry.bmc_address}</code>. That may be another machine’s: type the
                        address that you know.
                    </p>
                )}
                <label class="check">
                    <input type="checkbox" checked={manages} onChange={(event) => setManages(event.currentTarget.checked)} />
                    Check the BMC at once (manage)
                </label>
                <details class="fold">
                    <summary>As a command</summary>
                    <CommandPanel command={{ requests: [{ method: "POST", path, body: shown }] }} />
                </details>
                {reason && <p class="field-wrong">{reason}</p>}
                <div class="dialog-end">
                    <button type="button" class="button" onClick={close}>
                        Cancel
                    </button>
                    <button class="button button-primary" disabled={isBusy || !choice.driver || reason !== null}>
                        Accept
                    </button>
                </div>
            </form>
        </Dialog>
    );
}

function whatIsMade(entry: Entry): string {
    const count = entry.addresses?.length ?? 0;
    const ports = entry.boot_address
        ? `a port for ${entry.boot_address}, from which it has booted`
        : count === 1
          ? "a port for its card"
          : `ports for its ${count} cards`;
    return `It becomes a node with the UUID ${entry.uuid}, ${ports}, and the inventory that it has sent.`;
}
