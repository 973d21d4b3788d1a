/** What the API's words mean, where several tabs of a node say it. */

import type { AuditEvent } from "./types";

const FLOWS: Record<string, string> = {
    verify: "Verification",
    inspect: "Inspection",
    adopt: "Adoption",
    deploy: "Deployment",
    delete: "Tear down",
    automated_clean: "Automated cleaning",
    manual_clean: "Manual cleaning",
    service: "Servicing",
    leave_service: "Leaving the service",
    rescue: "Rescue",
    unrescue: "Unrescue",
};

/** Return what a flow is called. */
export function spellFlow(flow: string | null): string {
    return flow === null ? "None" : (FLOWS[flow] ?? flow);
}

const ORIGINS: Record<string, string> = {
    flow: "what every such flow does around its steps",
    driver: "on by default: the driver of the node offers it",
    agent: "on by default: the agent on the machine offers it",
    request: "the request names it",
    template: "a deploy template that a trait of the node asks for",
    runbook: "the runbook that was requested",
};

/** Return where a step comes from in words. */
export function spellOrigin(origin: string): string {
    return ORIGINS[origin.split(" ")[0] ?? ""] ?? origin;
}

const FEW = 3;

/** Return what was requested: the rule of policy in words, and its verb or the fields that were sent. */
export function spellAction({ action, request }: Pick<AuditEvent, "action" | "request">): string {
    const rule = action.split(":").slice(2).join(" ").replaceAll("_", " ") || action;
    if (request.target) return `${rule}: ${request.target}`;
    const fields = request.fields ?? [];
    const more = fields.length > FEW ? `, ${fields.length - FEW} more` : "";
    return fields.length ? `${rule}: ${fields.slice(0, FEW).join(", ")}${more}` : rule;
}
