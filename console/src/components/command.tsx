/** "As a command": what a screen shows or a button does, for a shell. */

import type { JSX } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";

import { currentVersion, type Method } from "../api/client";
import { session } from "../api/session";
import { endpoint } from "../paths";
import { CopyButton } from "./copy";
import { Icon } from "./icon";
import { keepInView } from "./inview";
import { quote } from "./quote";

export interface Command {
    /** Arguments of `openstack`; none: it has no such command, and only curl is shown. */
    cli?: string[][];
    /** Requests of the API. */
    requests: { method: Method; path: string; body?: unknown }[];
    /** A command of Ingot itself (`ingot explain node-1`). */
    own?: string[][];
}

function line(program: string, ...parts: string[]): string {
    return [program, ...parts.map(quote)].join(" ");
}

function curl({ method, path, body }: { method: Method; path: string; body?: unknown }): string {
    const strategy = session.value?.strategy;
    const parts = ["-s"];
    if (strategy === "http_basic") parts.push("-u", session.value?.user ?? "USER");
    if (method !== "GET") parts.push("-X", method);
    if (path.startsWith("/v1")) parts.push("-H", `X-OpenStack-Ironic-API-Version: ${currentVersion()}`);
    if (body !== undefined) parts.push("-H", "Content-Type: application/json", "-d", JSON.stringify(body));
    const program = strategy === "keystone" ? 'curl -H "X-Auth-Token: $OS_TOKEN"' : "curl";
    return line(program, ...parts, endpoint() + path);
}

function tabsOf(command: Command): [string, string][] {
    const tabs: [string, string][] = [];
    if (command.cli?.length) tabs.push(["openstack", command.cli.map((one) => line("openstack", ...one)).join("\n")]);
    if (command.own?.length) tabs.push(["ingot", command.own.map((one) => line("ingot", ...one)).join("\n")]);
    tabs.push(["curl", command.requests.map(curl).join("\n")]);
    return tabs;
}

/** Shows a command in each of its forms, to be copied. */
export function CommandPanel({ command }: { command: Command }): JSX.Element {
    const tabs = tabsOf(command);
    const [chosen, setChosen] = useState(0);
    const id = useId();
    const at = Math.min(chosen, tabs.length - 1);
    const text = tabs[at]?.[1] ?? "";
    const turn = (event: KeyboardEvent): void => {
        const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
        if (!by) return;
        const next = (at + by + tabs.length) % tabs.length;
        setChosen(next);
        document.getElementById(`${id}-${next}`)?.focus();
        event.preventDefault();
    };
    return (
        <div class="command">
            <div class="command-head">
                <div role="tablist" aria-label="Form of the command" class="tabs" onKeyDown={turn}>
                    {tabs.map(([name], index) => (
                        <button
                            type="button"
                            key={name}
                            role="tab"
                            id={`${id}-${index}`}
                            aria-selected={index === at}
                            aria-controls={`${id}-panel`}
                            tabIndex={index === at ? 0 : -1}
                            onClick={() => setChosen(index)}
                        >
                            {name}
                        </button>
                    ))}
                </div>
                <CopyButton text={text} />
            </div>
            <pre role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${at}`} tabIndex={0}>
                <code>{text}</code>
            </pre>
        </div>
    );
}

/** Shows what unfolds to a command, which is made only then. */
export function CommandFold({ command }: { command: () => Command | null }): JSX.Element {
    const [isOpen, setOpen] = useState(false);
    const made = isOpen ? command() : null;
    return (
        <details class="fold" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
            <summary>As a command</summary>
            {isOpen && (made ? <CommandPanel command={made} /> : <p class="muted">Which nodes are meant is not read yet.</p>)}
        </details>
    );
}

/** Shows a button that opens the command of a screen. */
export function CommandButton({ command }: { command: Command }): JSX.Element {
    const [open, setOpen] = useState(false);
    const box = useRef<HTMLDetailsElement>(null);
    useLayoutEffect(() => {
        if (!open) return undefined;
        const end = keepInView(box.current?.querySelector<HTMLElement>(".command"));
        const close = (event: Event): void => {
            if (event.target instanceof Node && !box.current?.contains(event.target)) setOpen(false);
        };
        document.addEventListener("pointerdown", close);
        return () => {
            end();
            document.removeEventListener("pointerdown", close);
        };
    }, [open]); // it lies above the page, which is not to stay hidden
    const shut = (event: KeyboardEvent): void => {
        if (event.key !== "Escape" || !open) return;
        setOpen(false);
        box.current?.querySelector("summary")?.focus();
        event.preventDefault();
    };
    return (
        <details
            ref={box}
            class="command-button"
            open={open}
            onFocusOut={(event) => {
                if (event.relatedTarget instanceof Node && !box.current?.contains(event.relatedTarget)) setOpen(false);
            }}
            onToggle={(event) => setOpen(event.currentTarget.open)}
            onKeyDown={shut}
        >
            <summary class="button">
                <Icon name="terminal" /> As a command
            </summary>
            {open && <CommandPanel command={command} />}
        </details>
    );
}
