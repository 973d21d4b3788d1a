/** Light and dark: as the system has it, until the user chooses. */

import { effect, signal } from "@preact/signals";

import { load, save } from "./storage";

export type Theme = "auto" | "light" | "dark";

export const THEMES: Theme[] = ["auto", "light", "dark"];

export const theme = signal<Theme>(load("theme", "auto", (value): value is Theme => THEMES.some((one) => one === value)));

effect(() => {
    document.documentElement.dataset["theme"] = theme.value;
});

export function setTheme(chosen: Theme): void {
    theme.value = chosen;
    save("theme", chosen);
}
