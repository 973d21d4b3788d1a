/** The plan of a verb for one node: what would be done, in which order, and why. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import { explain, request } from "../api/client";
import type { Plan } from "../api/types";
import { Problem } from "../components/loading";
import { part } from "../paths";
import type { Body } from "./targets";

const TYPED_MS = 250; // after the last letter of an argument

interface Found {
    /** What was asked. */
    of: string;
    plan: Plan | null;
    error: string | null;
}

/**
 * Return the plan of a flow for a node, read again when the arguments change: the plan of other arguments is none.
 *
 * @param turn another number has it read again: what it is made of has changed on the server.
 */
export function usePlan(node: string | null, flow: string | undefined, body: Body, turn = 0): Pick<Found, "plan" | "error"> {
    const [found, setFound] = useState<Found | null>(null);
    const sent = JSON.stringify(body);
    const asked = [node, flow, sent, turn].join(" ");
    useEffect(() => {
        if (node === null || flow === undefined) return undefined;
        const controller = new AbortController();
        const path = `/ingot/v1/nodes/${part(node)}/plan?flow=${flow}`;
        const options = { signal: controller.signal, ...(sent === "{}" ? {} : { body: JSON.parse(sent) as Body }) };
        const timer = setTimeout(
            () => {
                request<Plan>(sent === "{}" ? "GET" : "POST", path, options)
                    .then((plan) => setFound({ of: asked, plan, error: null }))
                    .catch((error: unknown) => {
                        if (!controller.signal.aborted) setFound({ of: asked, plan: null, error: explain(error) });
                    });
            },
            found ? TYPED_MS : 0,
        );
        return () => {
            clearTimeout(timer);
            controller.abort();
        };
    }, [asked]);
    return found?.of === asked ? found : { plan: null, error: null };
}

/** Shows a plan. */
export function PlanView({ plan }: { plan: Plan }): JSX.Element {
    return (
        <div class="plan">
            {plan.errors.map((text) => (
                <Problem key={text} text={text} />
            ))}
            {plan.steps.length === 0 ? (
                <p class="muted">No steps.</p>
            ) : (
                <ol class="plan-steps">
                    {plan.steps.map((step, at) => (
                        <li key={`${step.interface}.${step.step}.${at}`}>
                            <span class="plan-number">{at + 1}</span>
                            <span class="plan-name mono">
                                {step.interface}.{step.step}
                            </span>
                            <span class="plan-origin muted">
                                {step.origin}
                                {step.priority > 0 && `, priority ${step.priority}`}
                                {step.presumed && ", presumed"}
                                {step.reboot_requested && ", reboots"}
                                {step.requires_ramdisk ? "" : ", without ramdisk"}
                            </span>
                            {Object.keys(step.args).length > 0 && (
                                <code class="plan-args">{JSON.stringify(step.args)}</code>
                            )}
                        </li>
                    ))}
                </ol>
            )}
            {!plan.in_band_steps_known && (
                <p class="muted">Steps of the agent are presumed: this machine has not shown yet which it offers.</p>
            )}
        </div>
    );
}
