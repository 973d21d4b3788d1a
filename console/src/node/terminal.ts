/** The terminal: xterm.js, under a policy of content that allows neither style elements nor style attributes.
 *
 * This module is loaded with the first console, as it is larger than all others together.
 */

import { FitAddon } from "@xterm/addon-fit";
import { Terminal, type ITheme } from "@xterm/xterm";

import type { Screen } from "./line";
import { Exit } from "./serial";

const LEAST_COLUMNS = 80; // what firmware and systems take a serial terminal for
const LEAST_ROWS = 24;
const KEPT_LINES = 10_000;
const LEAST_CONTRAST = 4.5;
const CLEAR = "\x1bc"; // in the order of what is written, as a call would not be

interface Uses {
    /** What a screen reader says of it, and the id of what describes it. */
    label: string;
    describedBy: string;
    type: (typed: Uint8Array) => void;
    /** Called when a key asks to leave the terminal. */
    leave: () => void;
}

/** Shows what a machine says on its serial line, and takes what is typed. */
export class SerialScreen implements Screen {
    private readonly xterm: Terminal;
    private readonly fit = new FitAddon();
    private readonly observer = new ResizeObserver(() => this.resize());
    private readonly exit = new Exit();
    private pasts = 0;

    constructor(
        host: HTMLElement,
        private readonly uses: Uses,
    ) {
        const style = getComputedStyle(host);
        this.xterm = new Terminal({
            cols: LEAST_COLUMNS,
            rows: LEAST_ROWS,
            disableStdin: true,
            fontFamily: style.fontFamily,
            fontSize: Number.parseFloat(style.fontSize),
            linkHandler: { activate: () => undefined }, // no machine opens pages
            minimumContrastRatio: LEAST_CONTRAST,
            scrollback: KEPT_LINES,
            theme: readTheme(style),
        });
        this.xterm.loadAddon(this.fit);
        openWithSheets(this.xterm, host);
        this.xterm.textarea?.setAttribute("aria-label", uses.label);
        this.xterm.textarea?.setAttribute("aria-describedby", uses.describedBy);
        this.xterm.attachCustomKeyEventHandler((event) => this.takeKey(event));
        this.xterm.onData((text) => this.type(new TextEncoder().encode(text)));
        this.xterm.onBinary((text) => this.type(Uint8Array.from(text, (char) => char.charCodeAt(0))));
        this.observer.observe(host);
    }

    clear(): void {
        this.xterm.write(CLEAR);
    }

    show(said: Uint8Array, isPast: boolean): void {
        if (!isPast) {
            this.xterm.write(said);
            return;
        }
        // The terminal answers questions in what it shows; those of the past were answered then.
        this.pasts += 1;
        this.xterm.write(said, () => {
            this.pasts -= 1;
        });
    }

    /** Take what is typed from now on, or take it no more. */
    setTyping(types: boolean): void {
        this.xterm.options.disableStdin = !types;
        this.xterm.options.cursorBlink = types;
        if (types) this.xterm.focus();
    }

    /** Have screen readers read what the machine says. */
    setSpoken(isSpoken: boolean): void {
        this.xterm.options.screenReaderMode = isSpoken;
    }

    dispose(): void {
        this.observer.disconnect();
        this.xterm.dispose();
    }

    private type(typed: Uint8Array): void {
        if (this.pasts === 0 && !this.xterm.options.disableStdin) this.uses.type(typed);
    }

    private takeKey(event: KeyboardEvent): boolean {
        const found = this.exit.read(event, !this.xterm.options.disableStdin);
        if (found === "leaves") {
            event.preventDefault();
            if (event.type === "keydown") this.uses.leave();
        }
        return found === "typed";
    }

    private resize(): void {
        const fits = this.fit.proposeDimensions();
        if (!fits || Number.isNaN(fits.cols) || Number.isNaN(fits.rows)) return;
        this.xterm.resize(Math.max(fits.cols, LEAST_COLUMNS), Math.max(fits.rows, LEAST_ROWS));
    }
}

const COLORS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;

/** Return the colors that the styles give. */
function readTheme(style: CSSStyleDeclaration): ITheme {
    const read = (name: string): string => style.getPropertyValue(`--serial-${name}`).trim();
    const names = COLORS.flatMap((color) => [color, `bright${color[0]?.toUpperCase()}${color.slice(1)}`]);
    return {
        ...Object.fromEntries(names.map((name) => [name, read(name.toLowerCase())])),
        background: read("ground"),
        foreground: read("text"),
        cursor: read("text"),
        cursorAccent: read("ground"),
        selectionBackground: read("selection"),
    };
}

/** Open a terminal with sheets in place of the style elements that it makes: the policy has nothing against those. */
function openWithSheets(terminal: Terminal, host: HTMLElement): void {
    allowSpanStyles();
    const create = Document.prototype.createElement.bind(document) as (name: string) => HTMLElement;
    const replace = (name: string): HTMLElement => (name === "style" ? makeSheet(create("template")) : create(name));
    document.createElement = replace as typeof document.createElement;
    try {
        terminal.open(host);
    } finally {
        // It was the document's own for the time of this call; below is that of all documents.
        delete (document as { createElement?: unknown }).createElement;
    }
}

/** Have an element take the place of a style element: its text becomes a sheet of the page, until it is removed. */
function makeSheet(element: HTMLElement): HTMLElement {
    const sheet = new CSSStyleSheet();
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    Object.defineProperty(element, "textContent", { set: (text: string) => sheet.replaceSync(text) });
    element.remove = () => {
        document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
        Element.prototype.remove.call(element);
    };
    return element;
}

/** Set styles of spans through the CSSOM where the terminal sets the attribute: colors beyond the palette. */
function allowSpanStyles(): void {
    HTMLSpanElement.prototype.setAttribute = function (this: HTMLSpanElement, name: string, value: string): void {
        if (name === "style") this.style.cssText = value;
        else Element.prototype.setAttribute.call(this, name, value);
    };
}
