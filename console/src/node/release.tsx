/** Releasing one hold of a node: who has set it and why, before it is done. */

import type { JSX } from "preact";

import { remove } from "../api/client";
import { CommandPanel } from "../components/command";
import { Dialog } from "../components/dialog";
import { Problem } from "../components/loading";
import { useRequest } from "../components/request";
import { part } from "../paths";
import type { Hold, NodeDetail } from "./types";

interface ReleaseProps {
    node: NodeDetail;
    hold: Hold;
    /** Who has set it, in words. */
    by: string;
    /** How many holds the node has besides. */
    others: number;
    close: () => void;
    done: () => void;
}

/** Shows what releasing a hold means, and releases it. */
export function ReleaseDialog({ node, hold, by, others, close, done }: ReleaseProps): JSX.Element {
    const path = `/ingot/v1/nodes/${part(node.uuid)}/maintenance/${part(hold.name)}`;
    const { error, isBusy, run } = useRequest(() => remove(path), "The hold is released.", { close, done });
    return (
        <Dialog
            title={`Release the hold on ${node.name ?? node.uuid}`}
            onClose={close}
            actions={
                <>
                    <button type="button" class="button" onClick={close}>
                        Cancel
                    </button>
                    <button type="button" class="button button-primary" disabled={isBusy} onClick={() => void run()}>
                        Release
                    </button>
                </>
            }
        >
            <p>
                It was set by {by}: {hold.reason ?? "no reason given"}
            </p>
            <p>{describeRest(hold, others)}</p>
            {error && <Problem text={error} />}
            <details class="fold">
                <summary>As a command</summary>
                <CommandPanel command={{ requests: [{ method: "DELETE", path }] }} />
            </details>
        </Dialog>
    );
}

/** Return what becomes of a node when one of its holds is released. */
export function describeRest(hold: Pick<Hold, "fault">, others: number): string {
    if (others > 0) return `The node stays in maintenance: it has ${others === 1 ? "another hold" : `${others} other holds`}.`;
    const again = hold.fault ? ` If the ${hold.fault} is still there, the hold comes back when it is found again.` : "";
    return `It is the node's only hold: its maintenance ends.${again}`;
}
