/** What is around each page: where one can go, whether the console is connected, and who uses it. */

import type { ComponentChildren, JSX } from "preact";

import { logOut, session } from "./api/session";
import { Icon, type IconName } from "./components/icon";
import { showKeys, useKeys } from "./components/keys";
import { Menu, type MenuItem } from "./components/menu";
import { ConnectionBanner, ConnectionSign } from "./live/connection";
import { address, navigate, path } from "./router";
import { setTheme, theme, THEMES, type Theme } from "./theme";

const PLACES: [string, string, string][] = [
    ["/", "Home", "h"],
    ["/fleet", "Fleet", "f"],
    ["/plans", "Plans", "p"],
    ["/conductors", "Conductors", "c"],
    ["/inbox", "Inbox", "i"],
];

const THEME_ICONS: Record<Theme, IconName> = { auto: "auto", light: "sun", dark: "moon" };

/** Focus the search of a page; pages without one have that of the fleet. */
export function focusSearch(): void {
    const field = document.querySelector<HTMLInputElement>("[data-search]");
    if (field) {
        field.focus();
        field.select();
    } else {
        navigate("/fleet?search=1");
    }
}

function isHere(place: string): boolean {
    if (place === "/") return path.value === "/";
    return path.value.startsWith(place) || (place === "/fleet" && path.value.startsWith("/nodes"));
}

function userItems(): MenuItem[] {
    const items: MenuItem[] = [{ text: "Keyboard", run: showKeys, key: "?" }];
    if (session.value?.strategy !== "noauth") items.push({ text: "Log out", run: () => void logOut() });
    return items;
}

function nextTheme(): void {
    setTheme(THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? "auto");
}

/** Shows a page with its surroundings. */
export function Layout({ children }: { children: ComponentChildren }): JSX.Element {
    useKeys("Everywhere", [
        { key: "/", text: "Search", run: focusSearch },
        { key: "?", text: "This list", run: showKeys },
        ...PLACES.map(([to, text, key]) => ({ key: `g ${key}`, text: `Go to ${text}`, run: () => navigate(to) })),
    ]);
    const user = session.value?.user ?? (session.value?.strategy === "noauth" ? "no login" : "");
    const project = session.value?.project;
    return (
        <>
            <a class="skip" href="#main">
                Skip to the page
            </a>
            <header class="top">
                <a class="brand" href={address("/")}>
                    <svg viewBox="0 0 16 16" aria-hidden="true">
                        <path class="brand-body" d="M4 4h8l3 8H1z" />
                        <path class="brand-top" d="M4 4h8l1 2.6H3z" />
                    </svg>
                    Ingot
                </a>
                <nav class="nav" aria-label="Main">
                    {PLACES.map(([to, text]) => (
                        <a key={to} href={address(to)} aria-current={isHere(to) ? "page" : undefined}>
                            {text}
                        </a>
                    ))}
                </nav>
                <div class="top-end">
                    <ConnectionSign />
                    <button type="button" class="button-plain" aria-label={`Theme: ${theme.value}`} onClick={nextTheme}>
                        <Icon name={THEME_ICONS[theme.value]} />
                    </button>
                    <Menu
                        class="button-plain"
                        title={`User ${user}`}
                        label={
                            <>
                                <Icon name="user" />
                                <span class="user-name">{project ? `${user} · ${project}` : user}</span>
                            </>
                        }
                        items={userItems()}
                    />
                </div>
            </header>
            <ConnectionBanner />
            <main id="main" class="page" tabIndex={-1}>
                {children}
            </main>
        </>
    );
}
