/** The steps of a plan: chosen from what a node offers, or named freely. */

import type { JSX } from "preact";
import { useId } from "preact/hooks";

import { Icon, type IconName } from "../components/icon";
import { StepArguments } from "./arguments";
import { moveStep, newStep, type StepDraft } from "./draft";
import { findOffer, INTERFACES, type Kind, type Offer } from "./kinds";
import type { Wrong } from "./values";

interface StepsProps {
    kind: Kind;
    steps: StepDraft[];
    /** null: no node was chosen, or it does not say. */
    offers: Offer[] | null;
    wrong: Wrong;
    change: (steps: StepDraft[]) => void;
}

/** Shows the steps, to be changed, moved, added and removed. */
export function StepsEditor({ kind, steps, offers, wrong, change }: StepsProps): JSX.Element {
    return (
        <fieldset class="fields">
            <legend>Steps</legend>
            <p class="muted">
                {kind === "template"
                    ? "They run among the steps of the deployment, the highest priority first; 0: not at all."
                    : "They run in this order."}
            </p>
            <ol class="steps">
                {steps.map((step, at) => (
                    <StepItem
                        key={step.key}
                        kind={kind}
                        step={step}
                        at={at}
                        count={steps.length}
                        offers={offers}
                        wrong={wrong}
                        change={(next) => change(steps.with(at, next))}
                        move={(by) => change(moveStep(steps, at, by))}
                        remove={() => change(steps.toSpliced(at, 1))}
                    />
                ))}
            </ol>
            {wrong["steps"] && (
                <p class="field-wrong" role="status">
                    {wrong["steps"]}
                </p>
            )}
            <button type="button" class="button" onClick={() => change([...steps, newStep()])}>
                <Icon name="plus" /> Add a step
            </button>
        </fieldset>
    );
}

interface ItemProps {
    kind: Kind;
    step: StepDraft;
    at: number;
    count: number;
    offers: Offer[] | null;
    wrong: Wrong;
    change: (step: StepDraft) => void;
    move: (by: number) => void;
    remove: () => void;
}

function StepItem({ kind, step, at, count, offers, wrong, change, move, remove }: ItemProps): JSX.Element {
    const offer = offers ? findOffer(offers, step) : undefined;
    const name = step.step || `step ${at + 1}`;
    const isStrange = offers !== null && offer === undefined && step.step !== "";
    const button = (text: string, icon: IconName, run: () => void, disabled = false): JSX.Element => (
        <button type="button" class="button-plain" aria-label={`${text} ${name}`} title={text} disabled={disabled} onClick={(event) => press(event, run)}>
            <Icon name={icon} />
        </button>
    );
    return (
        <li class="step">
            <div class="step-head">
                <span class="plan-number">{at + 1}</span>
                <StepName step={step} at={at} offers={offers} offer={offer} change={change} />
                {kind === "template" && (
                    <Priority
                        value={step.priority}
                        wrong={wrong[`steps.${at}.priority`]}
                        change={(priority) => change({ ...step, priority })}
                    />
                )}
                <span class="step-buttons">
                    {kind === "runbook" && button("Move up", "up", () => move(-1), at === 0)}
                    {kind === "runbook" && button("Move down", "down", () => move(1), at === count - 1)}
                    {button("Remove", "cross", remove)}
                </span>
            </div>
            <div class="step-body">
                {wrong[`steps.${at}`] && (
                    <p class="field-wrong" role="status">
                        {wrong[`steps.${at}`]}
                    </p>
                )}
                {isStrange && <p class="note-waiting">The chosen node does not offer it. An agent may, once it has run there.</p>}
                {offer && <p class="muted">{describeOffer(offer)}</p>}
                {step.step && (
                    <StepArguments
                        key={offer ? `${offer.interface}.${offer.step}` : "free"}
                        args={step.args}
                        wrong={step.wrong}
                        info={offer?.argsinfo ?? null}
                        change={(args, mistakes) => change({ ...step, args, wrong: mistakes })}
                    />
                )}
            </div>
        </li>
    );
}

/** Run what a button does, and keep the focus on it: elements that are moved lose it. */
function press(event: { currentTarget: HTMLButtonElement }, run: () => void): void {
    const button = event.currentTarget;
    run();
    requestAnimationFrame(() => button.isConnected && button.focus());
}

function describeOffer(offer: Offer): string {
    const runners: Record<string, string> = { driver: "Run by the driver", agent: "Run by the agent", reserved: "Run by Ingot itself" };
    const parts = [runners[offer.runner] ?? `Run by ${offer.runner}`, offer.requires_ramdisk ? "in the ramdisk" : "without the ramdisk"];
    if (offer.priority > 0) parts.push(`priority ${offer.priority} where nothing else is said`);
    if (!offer.abortable) parts.push("cannot be aborted");
    return `${parts.join(", ")}.`;
}

interface NameProps {
    step: StepDraft;
    at: number;
    offers: Offer[] | null;
    offer: Offer | undefined;
    change: (step: StepDraft) => void;
}

const FREE = "free";

/** Return offers by interface; those of any interface have none. */
function groupOffers(offers: Offer[]): Map<string, Offer[]> {
    const groups = new Map<string, Offer[]>();
    for (const one of offers) groups.set(one.interface ?? "", [...(groups.get(one.interface ?? "") ?? []), one]);
    return groups;
}

function StepName({ step, at, offers, offer, change }: NameProps): JSX.Element {
    const rename = (named: Partial<StepDraft>): void => change({ ...step, ...named, args: {}, wrong: {} });
    const choose = (value: string): void => {
        if (value === FREE) return rename({ step: step.step && offer ? "" : step.step });
        const dot = value.indexOf(".");
        rename({ interface: value.slice(0, dot) || step.interface, step: value.slice(dot + 1) });
    };
    const groups = groupOffers(offers ?? []);
    const isFree = offers === null || offer === undefined;
    return (
        <div class="step-name">
            {offers !== null && (
                <select
                    class="input mono"
                    aria-label={`Step ${at + 1}`}
                    value={offer ? `${offer.interface ?? ""}.${offer.step}` : FREE}
                    onChange={(event) => choose(event.currentTarget.value)}
                >
                    <option value={FREE}>Another step…</option>
                    {[...groups].map(([type, members]) => (
                        <optgroup key={type} label={type || "on any interface"}>
                            {members.map((one) => (
                                <option key={one.step} value={`${type}.${one.step}`}>
                                    {type ? `${type}.${one.step}` : one.step}
                                </option>
                            ))}
                        </optgroup>
                    ))}
                </select>
            )}
            {(isFree || offer?.interface === null) && (
                <select
                    class="input mono step-interface"
                    aria-label={`Interface of step ${at + 1}`}
                    value={step.interface}
                    onChange={(event) => change({ ...step, interface: event.currentTarget.value })}
                >
                    {INTERFACES.map((one) => (
                        <option key={one}>{one}</option>
                    ))}
                </select>
            )}
            {isFree && (
                <input
                    class="input mono"
                    type="text"
                    aria-label={`Name of step ${at + 1}`}
                    placeholder="erase_devices"
                    autocomplete="off"
                    spellcheck={false}
                    value={step.step}
                    onInput={(event) => change({ ...step, step: event.currentTarget.value.trim() })}
                />
            )}
        </div>
    );
}

interface PriorityProps {
    value: string;
    wrong: string | undefined;
    change: (value: string) => void;
}

function Priority({ value, wrong, change }: PriorityProps): JSX.Element {
    const id = useId();
    return (
        <div class="step-priority">
            <label for={id}>Priority</label>
            <input
                id={id}
                class="input"
                type="text"
                inputMode="numeric"
                value={value}
                aria-invalid={wrong !== undefined}
                aria-describedby={wrong ? `${id}-note` : undefined}
                onInput={(event) => change(event.currentTarget.value)}
            />
            {wrong && (
                <span id={`${id}-note`} class="field-wrong">
                    {wrong}
                </span>
            )}
        </div>
    );
}
