/** What is around each page: where one can go, whether the console is connected, and who uses it. */

import type { ComponentChildren, JSX } from "preact";

import { logOut, session } from "./api/session";
import { AboutDialog, showAbout } from "./components/about";
import { Action, useReason } from "./components/action";
import { Icon, type IconName } from "./components/icon";
import { showKeys, useKeys } from "./components/keys";
import { Menu, type MenuItem } from "./components/menu";
import { toast } from "./components/toasts";
import { ConnectionBanner, ConnectionSign } from "./live/connection";
import { address, navigate, path } from "./router";
import { setTheme, theme, THEMES, type Theme } from "./theme";

interface Place {
    to: string;
    text: string;
    key: string;
    /** What the user must be allowed to see there; none: the server shows what it may. */
    rule?: string;
}

const PLACES: Place[] = [
    { to: "/", text: "Home", key: "h" },
    { to: "/fleet", text: "Fleet", key: "f" },
    { to: "/plans", text: "Plans", key: "p" },
    { to: "/conductors", text: "Conductors", key: "c", rule: "ingot:conductors:get" },
    { to: "/inbox", text: "Inbox", key: "i", rule: "ingot:inbox:get" },
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
    const items: MenuItem[] = [
        { text: "Keyboard", run: showKeys, key: "?" },
        { text: "About", run: showAbout },
    ];
    if (session.value?.strategy !== "noauth") items.push({ text: "Log out", run: () => void logOut() });
    return items;
}

function nextTheme(): void {
    setTheme(THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? "auto");
}

/** Shows a way to a page; one that the user may not see says why. */
function PlaceLink({ place, refusal }: { place: Place; refusal: string | null }): JSX.Element {
    if (refusal !== null) {
        return (
            <Action class="nav-refused" reason={refusal} run={() => undefined}>
                {place.text}
            </Action>
        );
    }
    return (
        <a href={address(place.to)} aria-current={isHere(place.to) ? "page" : undefined}>
            {place.text}
        </a>
    );
}

/** Shows a page with its surroundings. */
export function Layout({ children }: { children: ComponentChildren }): JSX.Element {
    const reasonFor = useReason();
    const refusalOf = ({ rule }: Place): string | null => (rule ? reasonFor(rule) : null);
    const go = (place: Place): void => {
        const refusal = refusalOf(place);
        if (refusal === null) navigate(place.to);
        else toast(refusal, "bad");
    };
    useKeys("Everywhere", [
        { key: "/", text: "Search", run: focusSearch },
        { key: "?", text: "This list", run: showKeys },
        ...PLACES.map((place) => ({ key: `g ${place.key}`, text: `Go to ${place.text}`, run: () => go(place) })),
    ]);
    const user = session.value?.user ?? (session.value?.strategy === "noauth" ? "no login" : "");
    const project = session.value?.project;
    const name = project ? `${user} · ${project}` : user;
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
                    {PLACES.map((place) => (
                        <PlaceLink key={place.to} place={place} refusal={refusalOf(place)} />
                    ))}
                </nav>
                <div class="top-end">
                    <ConnectionSign />
                    <button type="button" class="button-plain" aria-label={`Theme: ${theme.value}`} onClick={nextTheme}>
                        <Icon name={THEME_ICONS[theme.value]} />
                    </button>
                    <Menu
                        class="button-plain"
                        title={`User ${name}`}
                        label={
                            <>
                                <Icon name="user" />
                                <span class="user-name">{name}</span>
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
            <AboutDialog />
        </>
    );
}
