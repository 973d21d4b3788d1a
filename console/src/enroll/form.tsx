/** The form of a new node, of a machine that is enrolled or accepted from the inbox. */

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";

import { explain, put } from "../api/client";
import { CommandFold, type Command } from "../components/command";
import { Dialog } from "../components/dialog";
import { Problem } from "../components/loading";
import { toast, toastError } from "../components/toasts";
import { part } from "../paths";
import { navigate } from "../router";
import { DriverProperties, DriverSelect, TextField, useDriver, type Properties } from "./fields";

export interface Enrolled {
    uuid: string;
    name: string | null;
}

/** What is sent of a new node. */
export interface NodeBody extends Record<string, unknown> {
    driver: string;
    driver_info: Properties;
}

const TEXTS: [string, string][] = [
    ["name", "Name"],
    ["resource_class", "Resource class"],
    ["conductor_group", "Conductor group"],
];

/** Return what was typed of a new node; empty texts are left to the server. */
export function useMachine() {
    const choice = useDriver();
    const [values, setValues] = useState<Record<string, string>>({});
    const change = (name: string, value: string): void => setValues((before) => ({ ...before, [name]: value }));
    const given = TEXTS.map(([name]) => [name, values[name]?.trim()]).filter(([, value]) => value);
    const body: NodeBody = { driver: choice.driver, ...Object.fromEntries(given), driver_info: choice.driverInfo };
    return { choice, values, change, body };
}

interface FormProps {
    title: string;
    /** What its button does. */
    verb: string;
    machine: ReturnType<typeof useMachine>;
    /** Why the user may not do it; null: it is allowed. */
    reason: string | null;
    isWrong?: boolean;
    command: () => Command;
    send: () => Promise<Enrolled>;
    /** What comes after the node is there; what goes wrong then is shown beside it. */
    follow?: (node: Enrolled) => Promise<unknown>;
    close: () => void;
    done: () => void;
    /** What is above, among and below the fields of every new node. */
    above?: ComponentChildren;
    among?: ComponentChildren;
    below?: ComponentChildren;
}

/** Shows the form in a dialog. */
export function MachineDialog(props: FormProps): JSX.Element {
    const { title, verb, machine, reason, isWrong = false, command, close, above, among, below } = props;
    const { choice, values, change } = machine;
    const { error, isBusy, manages, setManages, submit } = useSubmit(props);
    return (
        <Dialog title={title} onClose={close}>
            <form
                class="stack"
                onSubmit={(event) => {
                    event.preventDefault();
                    void submit();
                }}
            >
                {error && <Problem text={error} />}
                {above}
                <div class="columns-2">
                    {TEXTS.map(([name, text]) => (
                        <TextField key={name} name={name} title={text} value={values[name]} change={change} />
                    ))}
                    <DriverSelect of={choice} />
                    {among}
                </div>
                <DriverProperties of={choice} />
                {below}
                <label class="check">
                    <input type="checkbox" checked={manages} onChange={(event) => setManages(event.currentTarget.checked)} />
                    Check the BMC at once (manage)
                </label>
                <CommandFold command={command} />
                {reason && <p class="field-wrong">{reason}</p>}
                <div class="dialog-end">
                    <button type="button" class="button" onClick={close}>
                        Cancel
                    </button>
                    <button class="button button-primary" disabled={isBusy || !choice.driver || isWrong || reason !== null}>
                        {verb}
                    </button>
                </div>
            </form>
        </Dialog>
    );
}

function useSubmit({ send, follow, close, done }: FormProps) {
    const [manages, setManages] = useState(true);
    const [error, setError] = useState<string | null>(null);
    const [isBusy, setBusy] = useState(false);
    const goOn = async (node: Enrolled): Promise<void> => {
        try {
            await follow?.(node);
            if (manages) await put(`/v1/nodes/${node.uuid}/states/provision`, { target: "manage" });
        } catch (problem) {
            toastError(problem);
        }
    };
    const submit = async (): Promise<void> => {
        if (isBusy) return;
        setBusy(true);
        setError(null);
        try {
            const node = await send();
            await goOn(node);
            toast(`${node.name ?? node.uuid} is enrolled.`);
            done();
            close();
            navigate(`/nodes/${part(node.name ?? node.uuid)}`);
        } catch (problem) {
            setError(explain(problem));
            setBusy(false);
        }
    };
    return { error, isBusy, manages, setManages, submit };
}
