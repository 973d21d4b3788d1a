import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";

import { guardLeave, match, navigate, path, query, setQuery, startRouter } from "../src/router";

const HOST = "http://ingot.example.com";

/** The history of a tab, as far as the router uses it. */
class History extends EventTarget {
    entries = [{ state: null as unknown, url: `${HOST}/console/` }];
    at = 0;

    get state(): unknown {
        return this.entries[this.at]?.state;
    }

    private show(): void {
        (globalThis as unknown as { location: URL }).location = new URL(this.entries[this.at]?.url ?? HOST);
    }

    pushState(state: unknown, _title: string, url: string): void {
        this.entries = [...this.entries.slice(0, this.at + 1), { state, url: new URL(url, HOST).href }];
        this.at += 1;
        this.show();
    }

    replaceState(state: unknown, _title: string, url = this.entries[this.at]?.url ?? HOST): void {
        this.entries[this.at] = { state, url: new URL(url, HOST).href };
        this.show();
    }

    go(by: number): void {
        this.at += by;
        this.show();
        const event = Object.assign(new Event("popstate"), { state: this.state });
        globalThis.dispatchEvent(event);
    }
}

const tab = new History();
const target = new EventTarget();
Object.assign(globalThis, {
    history: tab,
    document: new EventTarget(),
    scrollTo: () => undefined,
    addEventListener: target.addEventListener.bind(target),
    dispatchEvent: target.dispatchEvent.bind(target),
});
startRouter();

test("a page is left only if the user agrees, and the address stays with the page", () => {
    navigate("/plans");
    navigate("/plans?plan=A");
    let asked = 0;
    let agrees = false;
    const end = guardLeave(() => {
        asked += 1;
        return agrees;
    });
    navigate("/fleet");
    tab.go(-1);
    tab.go(-2);
    deepEqual([path.value, query.value.get("plan"), location.href, asked], ["/plans", "A", `${HOST}/console/plans?plan=A`, 3]);
    setQuery({ flow: "deploy" }); // the page's own, which leaves nothing
    deepEqual([query.value.get("flow"), asked], ["deploy", 3]);
    agrees = true;
    tab.go(-2);
    deepEqual([path.value, asked], ["/", 4]);
    end();
    tab.go(1);
    deepEqual([path.value, asked], ["/plans", 4]);
});

test("parts of a path are read as they were written, or as they were typed", () => {
    deepEqual(match("/nodes/:node", "/nodes/a%20b"), { node: "a b" });
    deepEqual(match("/nodes/:node", "/nodes/100%"), { node: "100%" });
    equal(match("/nodes/:node", "/nodes"), null);
});
