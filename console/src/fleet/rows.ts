/** The rows of the fleet: pages of the list that are in view, kept current by events. */

import { signal } from "@preact/signals";

import { ApiError, get } from "../api/client";
import type { Fleet, FleetNode } from "../api/types";
import { subscribe, whenConnected, type IngotEvent } from "../live/feed";

const PAGE = 100;
const MOST = 1000; // rows of one request
const KEPT = 12; // pages that stay in memory
const GAP_MS = 1000; // between two refreshes, however many events come
const SHORT_LOCK_MS = 2000; // a lock that lasts for less than a second ends without an event

const OF_EVENTS = [
    "provision_state",
    "target_provision_state",
    "last_error",
    "power_state",
    "target_power_state",
    "maintenance",
    "maintenance_reason",
    "fault",
] as const;

/** Kinds of events that change nothing of a row but its lock, which may be given back with them. */
const QUIET = new Set<string>(["step", "boot", "lock"]);

/** Return what stands for the locks of some rows. */
export function locksOf(rows: Pick<FleetNode, "uuid" | "reservation" | "locked_at">[]): Set<string> {
    const locked = rows.filter((row) => row.reservation !== null);
    return new Set(locked.map((row) => `${row.uuid} ${row.reservation} ${row.locked_at ?? ""}`));
}

/** What the list is made of. */
export interface Question {
    filter: string;
    sort: string;
}

/** Return a part of the list, in as many requests as the server's limit asks for. */
async function readRows(question: Question, offset: number, count: number, signal?: AbortSignal): Promise<Fleet> {
    const nodes: FleetNode[] = [];
    for (;;) {
        const place = { offset: `${offset + nodes.length}`, limit: `${Math.min(MOST, count - nodes.length)}` };
        const sent = new URLSearchParams({ ...question, ...place });
        if (!question.filter) sent.delete("filter");
        const found = await get<Fleet>(`/ingot/v1/fleet?${sent}`, signal);
        nodes.push(...found.nodes);
        if (found.nodes.length === 0 || nodes.length >= Math.min(count, found.matching - offset)) return { ...found, nodes };
    }
}

/** Rows by index; those in view are read from the server. A new question keeps the old rows until it is answered. */
export class FleetRows {
    /** Changes with every answer: components that read it render again. */
    readonly version = signal(0);
    readonly total = signal(0);
    readonly matching = signal(0);
    readonly error = signal<ApiError | null>(null);
    readonly loading = signal(true);
    private pages = new Map<number, FleetNode[]>();
    private question: Question | null = null;
    private view: [number, number] = [0, PAGE];
    private controllers = new Map<number, AbortController>();
    private timer: ReturnType<typeof setTimeout> | undefined;
    private lockTimer: ReturnType<typeof setTimeout> | undefined;
    private locks = new Set<string>(); // those that were shown before
    private refreshedAt = 0;
    private again = false; // what is being read may be older than what has happened since
    private ends: (() => void)[] = [];

    start(): void {
        this.ends = [subscribe(this.take), whenConnected((isAgain) => this.follow(isAgain))];
    }

    /** Read again when the connection stands; what was asked before it was lost may never be answered. */
    private follow(isAgain: boolean): void {
        if (isAgain) this.abort();
        this.refresh();
    }

    stop(): void {
        for (const end of this.ends.splice(0)) end();
        clearTimeout(this.timer);
        clearTimeout(this.lockTimer);
        this.timer = this.lockTimer = undefined;
        this.abort();
    }

    /** Ask for another list. */
    ask(question: Question): void {
        if (question.filter === this.question?.filter && question.sort === this.question.sort) return;
        this.question = question;
        this.abort();
        this.view = [0, Math.min(PAGE, this.view[1] - this.view[0]) || PAGE];
        this.loading.value = true;
        this.readView(true);
    }

    at = (index: number): FleetNode | undefined => this.pages.get(Math.floor(index / PAGE))?.[index % PAGE];

    /** Return the rows that are loaded, by UUID. */
    loaded(): Map<string, FleetNode> {
        return new Map([...this.pages.values()].flat().map((row) => [row.uuid, row]));
    }

    /** Return the row of a node if it is loaded. */
    find(uuid: string): FleetNode | undefined {
        for (const rows of this.pages.values()) {
            const found = rows.find((row) => row.uuid === uuid);
            if (found) return found;
        }
        return undefined;
    }

    /** Read what comes into view. */
    show = (first: number, last: number): void => {
        this.view = [first, last];
        this.readView(false);
    };

    /** Return the rows between two indexes; those that are not loaded are read for this. */
    async between(first: number, last: number): Promise<FleetNode[]> {
        const count = last - first + 1;
        const loaded = Array.from({ length: count }, (_row, at) => this.at(first + at));
        if (this.question === null || loaded.every((row) => row !== undefined)) return loaded.filter((row) => row !== undefined);
        return (await readRows(this.question, first, count)).nodes;
    }

    /** Read what is in view again soon; several calls become one. */
    refresh = (): void => {
        if (this.timer !== undefined || this.question === null) return;
        const wait = Math.max(0, this.refreshedAt + GAP_MS - Date.now());
        this.timer = setTimeout(() => {
            this.timer = undefined;
            this.refreshedAt = Date.now();
            this.readView(true);
        }, wait);
    };

    private readView(anew: boolean): void {
        if (this.question === null) return;
        const [first, last] = this.view;
        const pages = [];
        for (let page = Math.floor(first / PAGE); page <= Math.floor(Math.max(first, last - 1) / PAGE); page += 1) {
            if (anew || !this.pages.has(page)) pages.push(page);
        }
        for (const page of pages) {
            if (!this.controllers.has(page)) void this.read(page, anew);
            else if (anew) this.again = true;
        }
    }

    private async read(page: number, anew: boolean): Promise<void> {
        const question = this.question;
        if (question === null) return;
        const controller = new AbortController();
        this.controllers.set(page, controller);
        try {
            const found = await readRows(question, page * PAGE, PAGE, controller.signal);
            if (anew) this.forget(page);
            this.pages.set(page, found.nodes);
            this.total.value = found.total;
            this.matching.value = found.matching;
            this.error.value = null;
        } catch (error) {
            if (controller.signal.aborted) return;
            this.error.value = error instanceof ApiError ? error : new ApiError(String(error), 0);
        } finally {
            if (this.controllers.get(page) === controller) this.controllers.delete(page);
        }
        this.loading.value = false;
        this.version.value += 1;
        this.followLocks();
        if (this.again) {
            this.again = false;
            this.refresh();
        }
    }

    /** Read again, once, what shows a new lock: the end of one that lasts is an event, that of a short one is not. */
    private followLocks(): void {
        const locks = locksOf([...this.pages.values()].flat());
        const isNew = [...locks].some((lock) => !this.locks.has(lock));
        this.locks = locks;
        if (!isNew || this.lockTimer !== undefined) return;
        this.lockTimer = setTimeout(() => {
            this.lockTimer = undefined;
            this.refresh();
        }, SHORT_LOCK_MS);
    }

    /** Forget pages that are not in view: an answer that is newer makes them old. */
    private forget(current: number): void {
        const [first, last] = this.view;
        const inView = (page: number): boolean => page * PAGE < last && (page + 1) * PAGE > first;
        for (const page of [...this.pages.keys()]) {
            if (page !== current && (!inView(page) || this.pages.size > KEPT)) this.pages.delete(page);
        }
    }

    private abort(): void {
        for (const controller of this.controllers.values()) controller.abort();
        this.controllers.clear();
    }

    /** Show what an event says at once; who matches now, and in which order, the server says soon after. */
    private readonly take = (event: IngotEvent): void => {
        if (event.node_uuid === null && event.kind !== "conductor" && event.kind !== "missed") return;
        if (QUIET.has(event.kind) && !this.find(event.node_uuid ?? "")?.reservation) return;
        for (const [page, rows] of this.pages) {
            const at = rows.findIndex((row) => row.uuid === event.node_uuid);
            const before = rows[at];
            if (!before) continue;
            const changed = Object.fromEntries(OF_EVENTS.filter((name) => name in event).map((name) => [name, event[name]]));
            const since = event.kind === "provision" ? { provision_updated_at: event.at } : {};
            const after = { ...before, ...changed, ...since, provision_state: String(changed["provision_state"] ?? before.provision_state) };
            this.pages.set(page, rows.with(at, after as FleetNode));
            this.version.value += 1;
            break;
        }
        this.refresh();
    };
}
