/** The verbs of nodes: how the API calls them, which rule of policy allows them, and what they are called here. */

export type Action = "provision" | "power" | "set_maintenance" | "clear_maintenance";

/** Arguments that a verb takes, by their names in the request. */
export type Argument =
    | "clean_steps"
    | "configdrive"
    | "deploy_steps"
    | "disable_ramdisk"
    | "reason"
    | "rescue_password"
    | "runbook"
    | "service_steps"
    | "timeout";

export interface Verb {
    text: string;
    action: Action;
    /** What provision and power requests ask for. */
    target?: string;
    /** The subcommand of `openstack baremetal node`. */
    cli: string[];
    rule: string;
    /** What it does, in one sentence. */
    about: string;
    /** What stands before the nodes on its button, where the text alone does not. */
    joint?: string;
    /** Letter that opens it where nodes are selected. */
    key?: string;
    /** Whether it destroys data or interrupts the user of a machine. */
    danger?: boolean;
    /** Provision states in which it can be asked for; none: any. */
    states?: string[];
    /** The flow whose plan shows what it will do. */
    plan?: "adopt" | "clean" | "deploy" | "inspect" | "rescue" | "service" | "unrescue";
    arguments?: Argument[];
    /** Arguments of which one is needed. */
    needs?: Argument[];
}

function provision(text: string, target: string, about: string, more: Partial<Verb>): Verb {
    const rule = "baremetal:node:set_provision_state";
    return { text, target, about, action: "provision", cli: [text.toLowerCase()], rule, ...more };
}

function power(text: string, target: string, about: string, more: Pick<Verb, "cli"> & Partial<Verb>): Verb {
    return {
        text,
        target,
        about,
        action: "power",
        rule: "baremetal:node:set_power_state",
        arguments: ["timeout"],
        ...more,
    };
}

const IN_USE = ["active", "deploy failed", "error", "rescue", "rescue failed", "unrescue failed", "service failed"];
const HELD = ["deploy hold", "clean hold", "service hold"];
const WAITING = ["wait call-back", "clean wait", "inspect wait", "rescue wait", "service wait"];

export const VERBS = {
    manage: provision("Manage", "manage", "Checks that the BMC answers, and takes the machine under management.", {
        states: ["enroll", "available", "clean failed", "inspect failed", "adopt failed"],
        key: "m",
    }),
    inspect: provision("Inspect", "inspect", "Reads what hardware the machine has.", {
        states: ["manageable", "inspect failed"],
        key: "i",
        plan: "inspect",
    }),
    provide: provision("Provide", "provide", "Cleans the machine as configured, and makes it available.", {
        states: ["manageable", "clean failed"],
        key: "v",
        plan: "clean",
    }),
    deploy: provision("Deploy", "active", "Installs the image of the instance.", {
        states: ["available", "deploy failed"],
        key: "d",
        plan: "deploy",
        arguments: ["configdrive", "deploy_steps"],
    }),
    clean: provision("Clean", "clean", "Runs steps of cleaning that you choose.", {
        states: ["manageable", "clean failed"],
        key: "c",
        danger: true,
        plan: "clean",
        arguments: ["runbook", "clean_steps", "disable_ramdisk"],
        needs: ["runbook", "clean_steps"],
    }),
    service: provision("Service", "service", "Runs steps that you choose on a machine in use.", {
        states: ["active", "service failed", "service hold"],
        key: "s",
        danger: true,
        plan: "service",
        arguments: ["runbook", "service_steps", "disable_ramdisk"],
        needs: ["runbook", "service_steps"],
    }),
    rebuild: provision("Rebuild", "rebuild", "Installs the image again: what is on the disk is lost.", {
        states: ["active", "deploy failed", "error"],
        danger: true,
        plan: "deploy",
        arguments: ["configdrive", "deploy_steps"],
    }),
    rescue: provision("Rescue", "rescue", "Boots a ramdisk in which the user can log in.", {
        states: ["active", "rescue", "rescue failed", "unrescue failed", "service failed"],
        danger: true,
        plan: "rescue",
        arguments: ["rescue_password"],
        needs: ["rescue_password"],
    }),
    unrescue: provision("Unrescue", "unrescue", "Boots the system of the disk again.", {
        states: ["rescue", "rescue failed", "unrescue failed"],
        plan: "unrescue",
    }),
    undeploy: provision("Undeploy", "deleted", "Ends the instance, cleans the machine and makes it available.", {
        states: [...IN_USE, "wait call-back", "rescue wait", "service wait"],
        key: "u",
        danger: true,
        plan: "clean",
    }),
    adopt: provision("Adopt", "adopt", "Takes over a machine that is in use already, without touching it.", {
        states: ["manageable", "adopt failed"],
        plan: "adopt",
    }),
    abort: provision("Abort", "abort", "Ends what the machine does at the next safe point.", {
        states: [...WAITING, ...HELD, "service failed"],
        key: "a",
        danger: true,
    }),
    unhold: provision("Unhold", "unhold", "Goes on with the next step.", { states: HELD, key: "h" }),
    "power on": power("Power on", "power on", "Switches the machine on.", { cli: ["power", "on"], key: "p" }),
    "power off": power("Power off", "power off", "Switches the machine off at once.", {
        cli: ["power", "off"],
        danger: true,
        key: "o",
    }),
    "soft power off": power("Shut down", "soft power off", "Asks the system to shut down.", {
        cli: ["power", "off", "--soft"],
        danger: true,
    }),
    rebooting: power("Reboot", "rebooting", "Switches the machine off and on.", {
        cli: ["reboot"],
        danger: true,
        key: "b",
    }),
    "soft rebooting": power("Restart", "soft rebooting", "Asks the system to restart.", {
        cli: ["reboot", "--soft"],
        danger: true,
    }),
    set_maintenance: {
        text: "Set maintenance",
        joint: "of",
        action: "set_maintenance",
        cli: ["maintenance", "set"],
        rule: "baremetal:node:set_maintenance",
        key: "x",
        about: "Keeps Ingot from doing anything with the machine, for a reason that everyone can read.",
        arguments: ["reason"],
    },
    clear_maintenance: {
        text: "Clear maintenance",
        joint: "of",
        action: "clear_maintenance",
        cli: ["maintenance", "unset"],
        rule: "baremetal:node:clear_maintenance",
        about: "Ends the maintenance.",
    },
} satisfies Record<string, Verb>;

export type VerbName = keyof typeof VERBS;

export const VERB_NAMES = Object.keys(VERBS) as VerbName[];

/** Return a verb by its name. */
export function verbOf(name: VerbName): Verb {
    return VERBS[name];
}

const OTHER_TARGETS: Record<string, string> = { deploy: "active", undeploy: "deleted" };

/** Return the verb that an action of the API is, as answers of the overview name it. */
export function findVerb(kind: string, target?: string | null): VerbName | null {
    const requested = OTHER_TARGETS[target ?? ""] ?? target ?? "";
    return VERB_NAMES.find((name) => verbOf(name).action === kind && (verbOf(name).target ?? "") === requested) ?? null;
}

/** Return why a verb cannot be asked for in a provision state; null: it can. */
export function refusalIn(name: VerbName, state: string | null): string | null {
    const { states, text } = verbOf(name);
    if (!states || state === null || states.includes(state)) return null;
    return `${text} is for nodes that are ${states.join(", ")}; this one is ${state}.`;
}
