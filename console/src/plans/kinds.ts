/** Deploy templates and runbooks: steps under a name, as the API has them. */

import type { Args, ArgsInfo } from "./values";

export type Kind = "template" | "runbook";

export type Flow = "deploy" | "clean" | "service";

export interface Step {
    interface: string;
    step: string;
    args?: Args;
    priority?: number;
    order?: number;
}

export interface Saved {
    uuid: string;
    name: string;
    steps: Step[];
    created_at: string | null;
    updated_at: string | null;
    extra?: Record<string, unknown>;
    /** Of runbooks only, as all that follows. */
    description?: string | null;
    disable_ramdisk?: boolean;
    public?: boolean;
    owner?: string | null;
    traits?: string[];
}

/** Return a negative number if one answer is of an earlier state than another, a positive one if of a later one. */
export function compareAge(one: Saved, other: Saved): number {
    const [a, b] = [one, other].map((saved) => saved.updated_at ?? saved.created_at ?? "") as [string, string];
    return a < b ? -1 : a > b ? 1 : 0;
}

/** A step that a machine's driver or agent offers; without an interface it can be named on any. */
export interface Offer {
    interface: string | null;
    step: string;
    runner: string;
    priority: number;
    offered_at: string | null;
    /** null: the agent has not described them. */
    argsinfo: ArgsInfo | null;
    abortable: boolean;
    requires_ramdisk: boolean;
}

interface KindInfo {
    one: string;
    many: string;
    about: string;
    path: string;
    /** Of the list in answers. */
    key: string;
    /** Before the action in names of rules. */
    rule: string;
    cli: string[];
    flows: [Flow, ...Flow[]];
}

export const KINDS: Record<Kind, KindInfo> = {
    template: {
        one: "deploy template",
        many: "Deploy templates",
        about: "A deployment that asks for a trait gets the steps of the template of that name.",
        path: "/v1/deploy_templates",
        key: "deploy_templates",
        rule: "baremetal:deploy_template",
        cli: ["baremetal", "deploy", "template"],
        flows: ["deploy"],
    },
    runbook: {
        one: "runbook",
        many: "Runbooks",
        about: "Steps for cleaning and servicing the nodes that have one of its traits.",
        path: "/v1/runbooks",
        key: "runbooks",
        rule: "baremetal:runbook",
        cli: ["baremetal", "runbook"],
        flows: ["clean", "service"],
    },
};

export const FLOW_NAMES: Record<Flow, string> = { deploy: "deploying", clean: "cleaning", service: "servicing" };

/** Interfaces that steps can be named on. */
export const INTERFACES = ["bios", "deploy", "firmware", "management", "power", "raid", "vendor"];

/** Return the offer of a step; undefined: there is none. */
export function findOffer(offers: Offer[], step: Pick<Step, "interface" | "step">): Offer | undefined {
    const named = offers.filter((one) => one.step === step.step);
    return named.find((one) => one.interface === step.interface) ?? named.find((one) => one.interface === null);
}

/** Return the plan that an address names; what was held there before stays when others rename or delete it. */
export function findChosen(known: Saved[], ident: string, held: Saved | null): { saved: Saved; isGone: boolean } | null {
    if (held && (held.name === ident || held.uuid === ident)) {
        const now = known.find((one) => one.uuid === held.uuid);
        return { saved: now ?? held, isGone: now === undefined };
    }
    const found = known.find((one) => one.name === ident || one.uuid === ident);
    return found ? { saved: found, isGone: false } : null;
}
