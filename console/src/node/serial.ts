/** The serial console in words: what the server says of it, why it ended, which keys leave it, and what runs beside it. */

export type Mode = "read" | "write";

/** What the server says of a console. */
export interface Status {
    type: "status";
    state: "connecting" | "open" | "lost" | "taken" | "closed";
    reason: string | null;
    mode: Mode;
    writer: string | null;
    readers: number;
}

/** Why a console ended, in words. */
export interface Ending {
    code: number;
    text: string;
    /** Seconds after which the page comes back on its own; null: the user decides. */
    pause: number | null;
}

export const MOVED = 1012;
export const EXPIRED = 4401;
export const TAKEN = 4409;

const LONGEST_PAUSE = 60;

/** By close code of the websocket: what it means, and the pause. A reason of the server comes after the words. */
const ENDINGS: Record<number, [string, number | null]> = {
    1000: ["The console has ended.", null],
    1003: ["The server does not understand what this page has sent.", null],
    1009: ["What was sent at once is too long: a message has at most 64 KiB.", 1],
    [MOVED]: ["The API or the conductor serves this console no more.", 0.5],
    [EXPIRED]: ["Reconnecting: the server checks your login every hour.", 0.5],
    4408: ["This browser takes too slowly what the machine says.", 2],
    [TAKEN]: ["The console is taken.", null],
    4410: ["The console was switched off, or the instance was deleted.", null],
    4500: ["The BMC refuses the console, or does not answer.", 30],
};

/** Return what the end of a websocket means. */
export function readEnding(code: number, reason: string): Ending {
    const [words, pause] = ENDINGS[code] ?? ["The connection to the server is lost.", 1];
    return { code, text: reason ? `${words} The server says: ${reason}.`.replace(/\.+$/, ".") : words, pause };
}

/** Return the seconds before the next attempt; each one in a row that fails makes it longer. */
export function pauseAfter(ending: Ending, failures: number): number | null {
    return ending.pause === null ? null : Math.min(LONGEST_PAUSE, ending.pause * 2 ** Math.min(failures, 10));
}

const STATES: Partial<Record<string, [string, "good" | "waiting" | "bad"]>> = {
    connecting: ["The conductor logs in to the BMC", "waiting"],
    open: ["Connected", "good"],
    lost: ["The BMC does not answer; the conductor tries again", "bad"],
    taken: ["Another client of the BMC has the console", "bad"],
    closed: ["The console is given back to the BMC", "waiting"],
};

/** Return how a console is, in words, and how that is to be taken. */
export function describeStatus(status: Status): { text: string; tone: "good" | "waiting" | "bad" } {
    const [words, tone] = STATES[status.state] ?? ([status.state, "waiting"] as const); // of a newer server
    return { text: status.reason ? `${words}: ${status.reason}` : words, tone };
}

/** Return who types, and how many read. */
export function describeUsers(status: Status): string {
    const who = status.mode === "write" ? "You type" : status.writer === null ? "Read only" : `${status.writer} types`;
    return `${who}, ${status.readers === 1 ? "1 reader" : `${status.readers} readers`}`;
}

/** Return what is typed in parts that the server takes. */
export function split(typed: Uint8Array, most: number): Uint8Array[] {
    const parts: Uint8Array[] = [];
    for (let at = 0; at < typed.length; at += most) parts.push(typed.subarray(at, at + most));
    return parts;
}

export interface KeyPress {
    type: string;
    key: string;
    ctrlKey: boolean;
    shiftKey: boolean;
    altKey: boolean;
    metaKey: boolean;
}

/** Tells the keys that leave the terminal from those that the machine gets: Escape and then Tab, or Ctrl+Shift+E. */
export class Exit {
    private isEscaped = false;

    /**
     * Return what a key does: the machine gets it, the focus moves as anywhere else, or the terminal is left.
     *
     * @param types whether keys are typed at all; if not, Tab alone moves on.
     */
    read(press: KeyPress, types: boolean): "typed" | "moves" | "leaves" {
        const { key } = press;
        if (press.ctrlKey && press.shiftKey && !press.altKey && !press.metaKey && key.toLowerCase() === "e") {
            return "leaves";
        }
        if (press.type !== "keydown" || key === "Shift") return "typed";
        const moves = key === "Tab" && !press.ctrlKey && !press.altKey && !press.metaKey && (this.isEscaped || !types);
        this.isEscaped = key === "Escape";
        return moves ? "moves" : "typed";
    }
}

/** Return the step that runs now, and the one after it; null: none runs. */
export function findRunning<Step extends { started_at: string | null; finished_at: string | null }>(
    steps: Step[],
): { step: Step; next: Step | null } | null {
    const at = steps.findIndex((step) => step.started_at !== null && step.finished_at === null);
    const step = steps[at];
    return step ? { step, next: steps[at + 1] ?? null } : null;
}
