/** The node that a plan is checked with: its hardware says which steps there are, and what would be done. */

import type { JSX } from "preact";
import { useEffect, useId, useState } from "preact/hooks";

import { get } from "../api/client";
import type { Fleet } from "../api/types";
import { FLOW_NAMES, type Flow } from "./kinds";

const TYPED_MS = 200;
const SHOWN = 20;

interface ChoiceProps {
    node: string;
    flow: Flow;
    flows: Flow[];
    chooseNode: (node: string) => void;
    chooseFlow: (flow: Flow) => void;
}

/** Shows the field for a node, with those that match what is typed, and for what it is asked. */
export function NodeChoice({ node, flow, flows, chooseNode, chooseFlow }: ChoiceProps): JSX.Element {
    const [text, setText] = useState(node);
    useEffect(() => setText(node), [node]);
    const names = useNames(text);
    const id = useId();
    const type = (typed: string): void => {
        setText(typed);
        if (names.includes(typed)) chooseNode(typed);
    };
    return (
        <div class="columns-2">
            <div class="field">
                <label for={id}>Check with the node</label>
                <input
                    id={id}
                    type="text"
                    class="mono"
                    list={`${id}-names`}
                    autocomplete="off"
                    spellcheck={false}
                    value={text}
                    aria-describedby={`${id}-note`}
                    onInput={(event) => type(event.currentTarget.value)}
                    onKeyDown={(event) => {
                        if (event.key !== "Enter") return;
                        event.preventDefault(); // it chooses the node, and saves nothing
                        chooseNode(event.currentTarget.value.trim());
                    }}
                    onChange={(event) => chooseNode(event.currentTarget.value.trim())}
                />
                <datalist id={`${id}-names`}>
                    {names.map((name) => (
                        <option key={name} value={name} />
                    ))}
                </datalist>
                <span id={`${id}-note`} class="field-note">
                    Its hardware says which steps there are; nothing is done with it
                </span>
            </div>
            {flows.length > 1 && (
                <label class="field">
                    <span>For</span>
                    <select value={flow} onChange={(event) => chooseFlow(event.currentTarget.value as Flow)}>
                        {flows.map((one) => (
                            <option key={one} value={one}>
                                {FLOW_NAMES[one]}
                            </option>
                        ))}
                    </select>
                </label>
            )}
        </div>
    );
}

/** Return names of nodes that have a text in them. */
function useNames(text: string): string[] {
    const [names, setNames] = useState<string[]>([]);
    const word = text.replace(/[^\w.~-]/g, "");
    useEffect(() => {
        const controller = new AbortController();
        const timer = setTimeout(() => {
            get<Fleet>(`/ingot/v1/fleet?${new URLSearchParams({ filter: word, sort: "name", limit: `${SHOWN}` })}`, controller.signal)
                .then((found) => setNames(found.nodes.map((one) => one.name ?? one.uuid)))
                .catch(() => undefined); // a name can be typed all the same
        }, TYPED_MS);
        return () => {
            clearTimeout(timer);
            controller.abort();
        };
    }, [word]);
    return names;
}
