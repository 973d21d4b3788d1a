/** The state of a node as a way through the state machine. */

import type { JSX } from "preact";

import { Icon, type IconName } from "../components/icon";
import { toneOf } from "../components/state";
import { findPath, spellStanding, type PathState, type Standing } from "./path";

const ICONS: Record<Standing, IconName> = { passed: "check", now: "dot", ahead: "circle" };

function State({ of, isBranch = false }: { of: PathState; isBranch?: boolean }): JSX.Element {
    const isNow = of.standing === "now";
    return (
        <li
            class={`path-state is-${of.standing}${isNow ? ` state-${toneOf(of.state)}` : ""}`}
            aria-current={isNow ? "step" : undefined}
        >
            <Icon name={ICONS[of.standing]} />
            {of.state}
            <span class="visually-hidden">, {spellStanding(of, isBranch)}</span>
        </li>
    );
}

/** Shows where a node is, what it has passed and what is to come; below, where it can be held or fail. */
export function StatePathView({ state, target }: { state: string; target: string | null }): JSX.Element {
    const { main, branches } = findPath(state, target);
    return (
        <div class="path">
            <ol class="path-main" aria-label="Path of its state">
                {main.map((one, at) => (
                    <State key={`${one.state} ${at}`} of={one} />
                ))}
            </ol>
            {branches.length > 0 && (
                <ul class="path-branches" aria-label="Where it can be held or fail">
                    {branches.map((one) => (
                        <State key={one.state} of={one} isBranch />
                    ))}
                </ul>
            )}
        </div>
    );
}
