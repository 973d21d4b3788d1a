/** The verbs as commands. */

import type { Command } from "../components/command";
import { part } from "../paths";
import type { VerbNode, VerbRequest } from "./request";
import { bodyOf, verbIn, type Body } from "./targets";
import type { Verb } from "./verbs";

const MOST_LINES = 20; // more nodes are one bulk request

const OPTIONS: Record<string, string> = {
    configdrive: "--config-drive",
    clean_steps: "--clean-steps",
    deploy_steps: "--deploy-steps",
    service_steps: "--service-steps",
    runbook: "--runbook",
    rescue_password: "--rescue-password",
    reason: "--reason",
    timeout: "--power-timeout",
};

function cliOf(verb: Verb, given: Body, node: VerbNode): string[] {
    const options = Object.entries(given).flatMap(([name, value]) => {
        if (name === "disable_ramdisk") return value ? ["--disable-ramdisk"] : [];
        const option = OPTIONS[name];
        return option ? [option, typeof value === "string" ? value : JSON.stringify(value)] : [];
    });
    return ["baremetal", "node", ...verb.cli, ...options, node.name ?? node.uuid];
}

function requestOf(verb: Verb, given: Body, node: VerbNode): Command["requests"][number] {
    const path = `/v1/nodes/${part(node.name ?? node.uuid)}`;
    const body = bodyOf(verb, given);
    if (verb.action === "clear_maintenance") return { method: "DELETE", path: `${path}/maintenance` };
    const where = verb.action === "set_maintenance" ? "maintenance" : `states/${verb.action}`;
    return { method: "PUT", path: `${path}/${where}`, body };
}

/** Return a request for a verb as commands; what is secret in it is left out. */
export function commandOf(request: VerbRequest, given: Body): Command {
    const verb = verbIn(request);
    const shown = "rescue_password" in given ? { ...given, rescue_password: "PASSWORD" } : given;
    const nodes = request.nodes ?? [];
    if (!request.matching && nodes.length <= MOST_LINES) {
        const requests =
            nodes.length === 1 && nodes[0] ? [requestOf(verb, shown, nodes[0])] : [bulkOf(verb, shown, request)];
        return { cli: nodes.map((node) => cliOf(verb, shown, node)), requests };
    }
    return { requests: [bulkOf(verb, shown, request)] };
}

function bulkOf(verb: Verb, given: Body, { matching, nodes = [] }: VerbRequest): Command["requests"][number] {
    const body = bodyOf(verb, given);
    const which = matching ? { matching: matching.filter } : { nodes: nodes.map((node) => node.name ?? node.uuid) };
    const sent = { action: verb.action, ...(body === null ? {} : { body }), ...which };
    return { method: "POST", path: "/ingot/v1/bulk", body: sent };
}
