/** Fields of a new node, wherever one is made: its driver, and how its BMC is reached. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { Problem } from "../components/loading";
import { useLive } from "../live/resource";
import { part } from "../paths";

interface Drivers {
    drivers: { name: string; hosts: string[] }[];
}

export type Properties = Record<string, string>;

const SECRET = /password|secret|community|key$|token/;

/** Return whether a property is one that machines need, by what the driver says of it. */
function isNeeded(name: string, about: string): boolean {
    return /\brequired\.?$/i.test(about) || /^[a-z]+_(address|username|password)$/.test(name);
}

/** Return properties as commands show them: without secrets. */
export function hideSecrets(info: Properties): Properties {
    return Object.fromEntries(Object.entries(info).map(([name, value]) => [name, SECRET.test(name) ? "PASSWORD" : value]));
}

/** Return the drivers that there are, the one that was chosen, and what was typed for it. */
export function useDriver() {
    const drivers = useLive<Drivers>("/v1/drivers", (event) => event.kind === "conductor");
    const names = (drivers.data.value?.drivers ?? []).map((one) => one.name);
    const [chosen, choose] = useState("");
    const [info, setInfo] = useState<Properties>({});
    const driver = chosen || (names[0] ?? "");
    const properties = useLive<Properties>(driver ? `/v1/drivers/${part(driver)}/properties` : null, () => false);
    const known = properties.data.value ?? {};
    const driverInfo = Object.fromEntries(Object.entries(info).filter(([name, value]) => value !== "" && name in known));
    return { drivers, names, driver, choose, properties, known, info, setInfo, driverInfo };
}

type DriverChoice = ReturnType<typeof useDriver>;

/** Shows the drivers to choose from. */
export function DriverSelect({ of }: { of: DriverChoice }): JSX.Element {
    const { drivers } = of;
    return (
        <div>
            <label class="field">
                <span>Driver</span>
                <select name="driver" value={of.driver} onChange={(event) => of.choose(event.currentTarget.value)}>
                    {of.names.map((name) => (
                        <option key={name}>{name}</option>
                    ))}
                </select>
            </label>
            {drivers.error.value && <Problem text={drivers.error.value.text} retry={drivers.reload} />}
        </div>
    );
}

/** Shows the properties of a driver; those that few need are folded away. */
export function DriverProperties({ of }: { of: DriverChoice }): JSX.Element {
    const { known, info, setInfo, properties } = of;
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
        <fieldset class="fields">
            <legend>BMC and boot ({of.driver})</legend>
            {properties.error.value && <Problem text={properties.error.value.text} retry={properties.reload} />}
            {needed.map(property)}
            {others.length > 0 && (
                <details class="fold">
                    <summary>{others.length === 1 ? "1 more property" : `${others.length} more properties`}</summary>
                    <div class="fold-body">{others.map(property)}</div>
                </details>
            )}
        </fieldset>
    );
}

interface TextProps {
    name: string;
    title: string;
    value: string | undefined;
    change: (name: string, value: string) => void;
}

/** Shows a field for text. */
export function TextField({ name, title, value = "", change }: TextProps): JSX.Element {
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
