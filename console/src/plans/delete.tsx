/** Asks whether a deploy template or runbook is to be deleted. */

import type { JSX } from "preact";

import { CommandFold } from "../components/command";
import { Dialog } from "../components/dialog";
import { Problem } from "../components/loading";
import { formatNumber } from "../components/number";
import { useRequest } from "../components/request";
import { part } from "../paths";
import { KINDS, type Kind, type Saved } from "./kinds";
import { discard } from "./save";

interface DeleteProps {
    kind: Kind;
    saved: Saved;
    /** How many nodes it is for; null: it is not known. */
    nodes: number | null;
    close: () => void;
    done: () => void;
}

/** Shows the dialog. */
export function DeleteDialog({ kind, saved, nodes, close, done }: DeleteProps): JSX.Element {
    const { one, path, cli } = KINDS[kind];
    const { error, isBusy, run } = useRequest(() => discard(kind, saved), `${saved.name} is deleted.`, { close, done });
    return (
        <Dialog
            title={`Delete ${saved.name}`}
            onClose={close}
            actions={
                <>
                    <button type="button" class="button" onClick={close}>
                        Cancel
                    </button>
                    <button type="button" class="button button-danger" disabled={isBusy} onClick={() => void run()}>
                        Delete
                    </button>
                </>
            }
        >
            <p>
                The {one} is deleted for good. {nodes !== null && nodesOf(nodes)}
                {kind === "template" && nodes !== 0 && "Deployments that ask for its trait get its steps no longer."}
            </p>
            {error && <Problem text={error} />}
            <CommandFold
                command={() => ({ cli: [[...cli, "delete", saved.name]], requests: [{ method: "DELETE", path: `${path}/${part(saved.name)}` }] })}
            />
        </Dialog>
    );
}

function nodesOf(count: number): string {
    if (count === 0) return "It is for no node now.";
    return count === 1 ? "It is for one node now. " : `It is for ${formatNumber(count)} nodes now. `;
}
