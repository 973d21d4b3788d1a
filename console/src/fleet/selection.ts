/** Which rows of the fleet are selected: some, or all that match but some. */

import { effect, signal } from "@preact/signals";

import { isAuthenticated } from "../api/session";
import type { FleetNode } from "../api/types";
import type { Selection } from "../components/table";
import { toast, toastError } from "../components/toasts";
import type { VerbNode, VerbRequest } from "../verbs/request";
import type { FleetRows } from "./rows";

const AROUND = 100; // rows by which the beginning of a range may have moved meanwhile

/** The beginning of a range: a node, and where it was. */
interface Anchor {
    uuid: string;
    index: number;
}

interface Kept {
    filter: string;
    all: boolean;
    nodes: Map<string, FleetNode>;
}

/** What was selected when the page was left: the user finds it under the same filter. */
let kept: Kept | null = null;

effect(() => {
    if (!isAuthenticated.value) kept = null; // another user may come
});

/** Return the part of some rows that two nodes enclose, whichever comes first; null: one of them is not there. */
export function enclose<Row extends { uuid: string }>(rows: Row[], one: string, other: string): Row[] | null {
    const [a, b] = [one, other].map((uuid) => rows.findIndex((row) => row.uuid === uuid)) as [number, number];
    return a < 0 || b < 0 ? null : rows.slice(Math.min(a, b), Math.max(a, b) + 1);
}

/** A selection that knows also rows that are not loaded. */
export class FleetSelection {
    /** Changes with the selection: components that read it render again. */
    readonly version = signal(0);
    /** Whether rows of a range are being read. */
    readonly reading = signal(false);
    private all = false;
    private anchor: Anchor | null = null;
    /** Nodes that are selected, or with `all` those that are not, by UUID. */
    private nodes = new Map<string, FleetNode>();

    constructor(
        private readonly rows: FleetRows,
        private filter: string,
    ) {
        if (kept?.filter === filter) this.set(kept.all, kept.nodes);
    }

    get count(): number {
        return this.all ? Math.max(0, this.rows.matching.value - this.nodes.size) : this.nodes.size;
    }

    clear = (): void => {
        this.anchor = null;
        this.set(false, new Map());
    };

    /** Select nothing if the filter is another one. */
    follow(filter: string): void {
        if (filter === this.filter) return;
        this.filter = filter;
        this.clear();
    }

    /** Forget where a range would begin: the order has changed. */
    reorder = (): void => {
        this.anchor = null;
    };

    /** Return what a table needs to know. */
    asSelection(): Selection {
        return {
            all: this.all && this.nodes.size === 0,
            has: (uuid) => this.nodes.has(uuid) !== this.all,
            toggle: (uuid, from, event) => void this.toggle(uuid, from, event.shiftKey),
            toggleAll: () => {
                this.anchor = null;
                this.set(!(this.all && this.nodes.size === 0), new Map());
            },
        };
    }

    /** Return what a verb is for: the selected nodes, or those that match. */
    targets(filter: string): Omit<VerbRequest, "verb"> {
        if (this.all) return { matching: { filter, count: this.rows.matching.value, except: [...this.nodes.keys()] } };
        const loaded = this.rows.loaded(); // as the nodes are now
        const nodes = [...this.nodes.values()].map((node): VerbNode => {
            const { uuid, name, provision_state } = loaded.get(node.uuid) ?? node;
            return { uuid, name, provision_state };
        });
        return { nodes };
    }

    /** Select or deselect a row, or all from the one before it on. */
    async toggle(uuid: string, index: number, isRange: boolean): Promise<void> {
        const isIn = this.nodes.has(uuid);
        const version = this.version.peek();
        const begin = isRange ? this.anchor : null;
        const row = this.rows.at(index);
        const range = begin === null ? (row ? [row] : []) : await this.readRange(begin, { uuid, index });
        if (range === null || this.version.peek() !== version) return; // what is selected has changed while it was read
        const next = new Map(this.nodes);
        for (const node of range) {
            if (isIn) next.delete(node.uuid);
            else next.set(node.uuid, node);
        }
        this.anchor = { uuid, index };
        this.set(this.all, next);
    }

    /** Return the rows from one node to another; null: they are not known, and a message has said why. */
    private async readRange(begin: Anchor, end: Anchor): Promise<FleetNode[] | null> {
        const [first, last] = [Math.min(begin.index, end.index), Math.max(begin.index, end.index)];
        this.reading.value = true;
        try {
            const found =
                enclose(await this.rows.between(first, last), begin.uuid, end.uuid) ??
                enclose(await this.rows.between(Math.max(0, first - AROUND), last + AROUND), begin.uuid, end.uuid);
            if (!found) toast("The row from which the range begins is not where it was: select both ends again.", "bad");
            return found;
        } catch (error) {
            toastError(error);
            return null;
        } finally {
            this.reading.value = false;
        }
    }

    private set(all: boolean, nodes: Map<string, FleetNode>): void {
        this.all = all;
        this.nodes = nodes;
        kept = { filter: this.filter, all, nodes };
        this.version.value += 1;
    }
}
