/** The JSON of a node. */

import type { JSX } from "preact";

import { CopyButton } from "../components/copy";
import { Icon } from "../components/icon";
import type { NodeDetail } from "./types";

/** Shows what the API says of a node, to be copied. */
export function JsonTab({ node, reload }: { node: NodeDetail; reload: () => void }): JSX.Element {
    const text = JSON.stringify(node, null, 2);
    return (
        <section class="panel" aria-labelledby="node-json">
            <div class="panel-head">
                <h2 id="node-json">JSON</h2>
                <span class="panel-end">
                    <button type="button" class="button-plain" onClick={reload}>
                        <Icon name="refresh" /> Read again
                    </button>
                    <CopyButton text={text} />
                </span>
            </div>
            <pre class="panel-body json" tabIndex={0} aria-label="JSON of the node">
                <code>{text}</code>
            </pre>
        </section>
    );
}
