/** The login: user and password of the API's own users, or of Keystone with a project. */

import type { JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";

import { explain } from "../api/client";
import { logIn, session, wasExpired, type Credentials } from "../api/session";
import { Problem } from "../components/loading";

const FIELDS: { name: keyof Credentials; title: string; keystone: boolean; value?: string }[] = [
    { name: "user", title: "User", keystone: false },
    { name: "password", title: "Password", keystone: false },
    { name: "user_domain", title: "Domain of the user", keystone: true, value: "Default" },
    { name: "project", title: "Project", keystone: true },
    { name: "project_domain", title: "Domain of the project", keystone: true, value: "Default" },
];

/** Return what stands in a field first: who comes back is still known. */
function valueOf({ name, value = "" }: (typeof FIELDS)[number]): string {
    if (!wasExpired.value) return value;
    if (name === "user") return session.value?.user ?? value;
    return name === "project" ? (session.value?.project ?? value) : value;
}

/** Shows the login as a page of its own. */
export function LoginPage(): JSX.Element {
    return (
        <main class="login">
            <LoginForm />
        </main>
    );
}

/** Shows the login above a page whose session has ended: what the user has written there is kept. */
export function LoginDialog(): JSX.Element {
    const element = useRef<HTMLDialogElement>(null);
    const title = useId();
    useEffect(() => {
        const [dialog, before] = [element.current, document.activeElement];
        dialog?.showModal();
        return () => {
            dialog?.close();
            if (before instanceof HTMLElement && before.isConnected) before.focus();
        };
    }, []);
    return (
        <dialog
            ref={element}
            class="login login-again"
            aria-labelledby={title}
            onCancel={(event) => event.preventDefault()}
            onClose={(event) => event.currentTarget.isConnected && event.currentTarget.showModal()} // a second Escape
        >
            <LoginForm title={title} />
        </dialog>
    );
}

/** Shows the fields, and why a login was refused. */
function LoginForm({ title }: { title?: string }): JSX.Element {
    const [error, setError] = useState<string | null>(null);
    const [busy, setBusy] = useState(false);
    const isKeystone = session.value?.strategy === "keystone";
    const fields = FIELDS.filter((one) => isKeystone || !one.keystone);

    const submit = async (event: SubmitEvent): Promise<void> => {
        event.preventDefault();
        const form = event.currentTarget as HTMLFormElement;
        const given = new FormData(form);
        const filled = fields.map((one) => [one.name, String(given.get(one.name) ?? "")]).filter(([, value]) => value);
        setBusy(true);
        setError(null);
        try {
            await logIn(Object.fromEntries(filled) as Credentials);
        } catch (refusal) {
            setError(explain(refusal));
            const password = form.elements.namedItem("password");
            if (password instanceof HTMLInputElement) {
                password.focus();
                password.select();
            }
        } finally {
            setBusy(false);
        }
    };

    return (
        <form class="login-box" onSubmit={(event) => void submit(event)}>
            <h1 id={title}>Ingot</h1>
            {wasExpired.value && <p class="muted">Your session has ended. Log in to continue.</p>}
            {error && <Problem text={error} />}
            {fields.map((one, at) => (
                <label class="field" key={one.name}>
                    <span>{one.title}</span>
                    {one.name === "password" ? (
                        <input name="password" type="password" autocomplete="current-password" required />
                    ) : (
                        <input
                            name={one.name}
                            type="text"
                            autocomplete={one.name === "user" ? "username" : "on"}
                            defaultValue={valueOf(one)}
                            required={!one.keystone}
                            autofocus={at === 0}
                            spellcheck={false}
                            autocapitalize="none"
                        />
                    )}
                </label>
            ))}
            <button class="button button-primary" disabled={busy}>
                {busy ? "Logging in…" : "Log in"}
            </button>
        </form>
    );
}
