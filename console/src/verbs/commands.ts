/** The verbs as commands. */

import type { Command } from "../components/command";
import { part } from "../paths";
import type { VerbNode, VerbRequest } from "./request";
import { bodyOf, bulkOf, PART, splitNodes, verbIn, type Body } from "./targets";
import type { Verb } from "./verbs";

const MOST_LINES = 20; // more nodes have bulk requests only
const EVERY = "uuid:*"; // the filter of all nodes: a bulk request refuses an empty one

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

/**
 * Return a request for a verb as commands; what is secret in it is left out. null: it is not known yet for which nodes.
 *
 * @param nodes those that the request is for; null: those that match are not read yet.
 */
export function commandOf(request: VerbRequest, given: Body, nodes: VerbNode[] | null): Command | null {
    const verb = verbIn(request);
    const shown = "rescue_password" in given ? { ...given, rescue_password: "PASSWORD" } : given;
    const { matching } = request;
    const bulk = (which: Parameters<typeof bulkOf>[2]): Command["requests"][number] => {
        return { method: "POST", path: "/ingot/v1/bulk", body: bulkOf(verb, shown, which) };
    };
    // A filter cannot say which nodes are left out, and one request does not ask any number of nodes.
    if (matching && !matching.except?.length && (nodes?.length ?? matching.count) <= PART) {
        return { requests: [bulk({ matching: matching.filter || EVERY })] };
    }
    const meant = nodes ?? request.nodes;
    if (!meant) return null;
    const [one] = meant;
    const requests =
        meant.length === 1 && one
            ? [requestOf(verb, shown, one)]
            : splitNodes(meant.map((node) => node.uuid)).map((part) => bulk({ nodes: part }));
    return { requests, ...(meant.length <= MOST_LINES ? { cli: meant.map((node) => cliOf(verb, shown, node)) } : {}) };
}
