/** Views: a filter, an order and columns under a name, kept in this browser. */

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { Dialog } from "../components/dialog";
import { Menu, type MenuItem } from "../components/menu";
import { load, save } from "../storage";

export interface View {
    name: string;
    filter: string;
    sort: string;
    columns?: string[];
}

const GIVEN: View[] = [
    { name: "All", filter: "", sort: "" },
    { name: "Failed", filter: "state:failed", sort: "-provision_updated_at" },
    { name: "Available", filter: "state:available maintenance:no", sort: "" },
    { name: "In use", filter: "state:active", sort: "" },
    { name: "In maintenance", filter: "maintenance:yes", sort: "" },
];

const own = signal(load<View[]>("views", []));

function keep(views: View[]): void {
    own.value = views;
    save("views", views);
}

interface ViewsProps {
    current: Omit<View, "name">;
    choose: (view: View) => void;
}

/** Shows a menu of views. */
export function ViewsMenu({ current, choose }: ViewsProps): JSX.Element {
    const [isSaving, setSaving] = useState(false);
    const same = own.value.find((view) => view.filter === current.filter && view.sort === current.sort);
    const items: MenuItem[] = [
        ...[...GIVEN, ...own.value].map((view) => ({ text: view.name, run: () => choose(view) })),
        { text: "Save this view…", run: () => setSaving(true) },
    ];
    if (same) {
        items.push({ text: `Remove “${same.name}”`, danger: true, run: () => keep(own.value.filter((one) => one !== same)) });
    }
    return (
        <>
            <Menu label="Views" items={items} />
            {isSaving && (
                <SaveDialog
                    close={() => setSaving(false)}
                    save={(name) => keep([...own.value.filter((one) => one.name !== name), { ...current, name }])}
                />
            )}
        </>
    );
}

function SaveDialog({ close, save }: { close: () => void; save: (name: string) => void }): JSX.Element {
    const [name, setName] = useState("");
    const submit = (event: Event): void => {
        event.preventDefault();
        if (!name.trim()) return;
        save(name.trim());
        close();
    };
    return (
        <Dialog title="Save this view" onClose={close}>
            <form class="stack" onSubmit={submit}>
                <label class="field">
                    <span>Name</span>
                    <input type="text" value={name} required onInput={(event) => setName(event.currentTarget.value)} />
                    <span class="field-note">Filter, order and columns are kept in this browser.</span>
                </label>
                <button class="button button-primary">Save</button>
            </form>
        </Dialog>
    );
}
