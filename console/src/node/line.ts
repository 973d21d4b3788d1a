/** The connection to a serial console: a websocket that comes back on its own where that helps. */

import { signal } from "@preact/signals";

import { ApiError, get } from "../api/client";
import { readSession } from "../api/session";
import { part } from "../paths";
import {
    EXPIRED,
    MOVED,
    pauseAfter,
    readEnding,
    split,
    TAKEN,
    type Ending,
    type Mode,
    type Status,
} from "./serial";

const SUBPROTOCOL = "ingot.console.v1";
const MOST_TYPED = 16 * 1024; // bytes of a message; the server takes 64 KiB

const BLOCKED =
    "The server refuses the websocket. If it goes on doing so, the WSGI server of the API or a proxy before it passes on none.";

export type Phase = "connecting" | "open" | "lost" | "ended";

/** What shows the bytes of the line. */
export interface Screen {
    clear: () => void;
    /** @param isPast whether the machine said that before this page came. */
    show: (said: Uint8Array, isPast: boolean) => void;
}

/** One user's way to one console. */
export class Line {
    readonly phase = signal<Phase>("connecting");
    /** What the server said last; it may be stale unless the phase is open. */
    readonly status = signal<Status | null>(null);
    /** Why it is lost or has ended. */
    readonly ending = signal<Ending | null>(null);
    readonly retryAt = signal<number | null>(null);
    private socket: WebSocket | null = null;
    private timer: ReturnType<typeof setTimeout> | undefined;
    private mode: Mode = "read";
    private failures = 0;

    /** @param refuse called with why the user cannot type; reading goes on. */
    constructor(
        private readonly node: string,
        private readonly screen: Screen,
        private readonly refuse: (why: string) => void,
    ) {}

    open(mode: Mode, takeOver = false): void {
        this.leave();
        const socket = new WebSocket(addressOf(this.node, mode, takeOver), SUBPROTOCOL);
        let [isOpen, hasPast, hasStatus] = [false, false, false];
        this.socket = socket;
        this.mode = mode;
        this.phase.value = "connecting";
        socket.binaryType = "arraybuffer";
        socket.onopen = () => {
            isOpen = true;
        };
        socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
            if (typeof data === "string") {
                hasStatus = true;
                this.note(JSON.parse(data) as Status);
                return;
            }
            if (!hasStatus && !hasPast) this.screen.clear();
            hasPast = true;
            this.screen.show(new Uint8Array(data), !hasStatus);
        };
        socket.onclose = ({ code, reason }) => void this.end(socket, isOpen ? readEnding(code, reason) : null);
    }

    /** Leave the console. */
    leave(): void {
        clearTimeout(this.timer);
        this.retryAt.value = null;
        if (!this.socket) return;
        this.socket.onclose = this.socket.onmessage = this.socket.onopen = null;
        this.socket.close(1000);
        this.socket = null;
    }

    /** Open it again at once, as it was. */
    readonly retry = (): void => this.open(this.mode);

    /** Send what is typed; while the console is lost it goes nowhere. */
    readonly type = (typed: Uint8Array): void => {
        if (!this.canType()) return;
        for (const one of split(typed, MOST_TYPED)) this.socket?.send(one as Uint8Array<ArrayBuffer>);
    };

    sendBreak(): void {
        if (this.canType()) this.socket?.send(JSON.stringify({ type: "break" }));
    }

    private canType(): boolean {
        return this.phase.peek() === "open" && this.status.peek()?.mode === "write";
    }

    private note(status: Status): void {
        this.status.value = status;
        this.mode = status.mode;
        this.phase.value = "open";
        this.ending.value = null;
        if (status.state === "open") this.failures = 0;
    }

    /** @param known why it ended; null: it was refused, and a browser does not say why. */
    private async end(socket: WebSocket, known: Ending | null): Promise<void> {
        this.phase.value = "lost";
        const requested = this.mode;
        const ending = known ?? (await findRefusal(this.node, requested));
        if (ending.code === EXPIRED) await readSession();
        if (this.socket !== socket) return;
        this.socket = null;
        const keepsMode = ending.code === MOVED || ending.code === EXPIRED;
        this.mode = keepsMode ? requested : "read";
        const isOnlyTyping = requested === "write" && (known === null || ending.code === TAKEN);
        if (isOnlyTyping) this.refuse(ending.text);
        const pause = isOnlyTyping ? 0 : pauseAfter(ending, this.failures);
        this.failures += 1;
        this.ending.value = ending;
        if (pause === null) {
            this.phase.value = "ended";
            return;
        }
        this.retryAt.value = Date.now() + pause * 1000;
        this.timer = setTimeout(this.retry, pause * 1000);
    }
}

function addressOf(node: string, mode: Mode, takeOver: boolean): string {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    return `${scheme}//${location.host}${pathOf(node, mode)}${takeOver ? "&take_over=true" : ""}`;
}

function pathOf(node: string, mode: Mode): string {
    return `/ingot/v1/nodes/${part(node)}/console?mode=${mode}`;
}

/** Return why a websocket was refused, by asking for the same without one: 426 says that only that was missing. */
async function findRefusal(node: string, mode: Mode): Promise<Ending> {
    try {
        await get(pathOf(node, mode));
    } catch (error) {
        if (!(error instanceof ApiError) || error.status === 0) return readEnding(0, "");
        if (error.status !== 426) {
            return { code: error.status, text: error.text, pause: error.status >= 500 ? 5 : null };
        }
    }
    if (mode === "write") {
        return { code: TAKEN, text: "You cannot type now: another user has begun to.", pause: 0 };
    }
    const fault = await findFault(node);
    return fault === null ? { code: 0, text: BLOCKED, pause: 5 } : { code: 400, text: fault, pause: null };
}

/** Return what the node lacks for a console; null: nothing that is known. */
async function findFault(node: string): Promise<string | null> {
    try {
        const found = await get<{ console?: { result: boolean | null; reason?: string } }>(
            `/v1/nodes/${part(node)}/validate`,
        );
        return found.console?.result === true ? null : (found.console?.reason ?? null);
    } catch {
        return null; // who may read a console need not be allowed to validate
    }
}
