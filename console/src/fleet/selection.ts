/** Which rows of the fleet are selected: some, or all that match but some. */

import { signal } from "@preact/signals";

import type { FleetNode } from "../api/types";
import type { Selection } from "../components/table";
import type { VerbNode, VerbRequest } from "../verbs/request";
import type { FleetRows } from "./rows";

/** A selection that knows also rows that are not loaded. */
export class FleetSelection {
    /** Changes with the selection: components that read it render again. */
    readonly version = signal(0);
    private all = false;
    private last = -1;
    /** Nodes that are selected, or with `all` those that are not, by UUID. */
    private nodes = new Map<string, FleetNode>();

    constructor(private readonly rows: FleetRows) {}

    get count(): number {
        return this.all ? Math.max(0, this.rows.matching.value - this.nodes.size) : this.nodes.size;
    }

    clear = (): void => {
        this.set(false, new Map());
    };

    /** Return what a table needs to know. */
    asSelection(): Selection {
        return {
            all: this.all && this.nodes.size === 0,
            has: (uuid) => this.nodes.has(uuid) !== this.all,
            toggle: this.toggle,
            toggleAll: () => this.set(!(this.all && this.nodes.size === 0), new Map()),
        };
    }

    /** Return what a verb is for: the selected nodes, or those that match. */
    targets(filter: string): Omit<VerbRequest, "verb"> {
        if (this.all) return { matching: { filter, count: this.rows.matching.value, except: [...this.nodes.keys()] } };
        return { nodes: [...this.nodes.values()].map((node) => this.current(node)) };
    }

    /** Return a node as it is now, as far as its row is loaded. */
    private current(node: FleetNode): VerbNode {
        const { uuid, name, provision_state } = this.rows.find(node.uuid) ?? node;
        return { uuid, name, provision_state };
    }

    private readonly toggle = (uuid: string, from: number, event: { shiftKey: boolean }): void => {
        const [next, isIn] = [new Map(this.nodes), this.nodes.has(uuid)];
        const range = event.shiftKey && this.last >= 0 ? this.rows.between(this.last, from) : this.rows.between(from, from);
        for (const node of range) {
            if (isIn) next.delete(node.uuid);
            else next.set(node.uuid, node);
        }
        this.last = from;
        this.set(this.all, next);
    };

    private set(all: boolean, nodes: Map<string, FleetNode>): void {
        this.all = all;
        this.nodes = nodes;
        this.version.value += 1;
    }
}
