/** Accepting a machine of the inbox as a node: with what only an operator knows, its BMC and its password. */

import type { JSX } from "preact";

import { post } from "../api/client";
import { useReason } from "../components/action";
import { CREATE } from "../enroll/dialog";
import { hideSecrets } from "../enroll/fields";
import { MachineDialog, useMachine, type Enrolled } from "../enroll/form";
import { part } from "../paths";
import { nameOf, type Entry } from "./entry";

interface AcceptProps {
    entry: Entry;
    close: () => void;
    done: () => void;
}

/** Shows the dialog. */
export function AcceptDialog({ entry, close, done }: AcceptProps): JSX.Element {
    const machine = useMachine();
    const { body } = machine;
    const reasonFor = useReason();
    const path = `/ingot/v1/inbox/${part(entry.uuid)}/accept`;
    const shown = { ...body, driver_info: hideSecrets(body.driver_info) };
    return (
        <MachineDialog
            title={`Accept ${nameOf(entry)}`}
            verb="Accept"
            machine={machine}
            reason={reasonFor("ingot:inbox:accept") ?? reasonFor(CREATE)}
            command={() => ({ requests: [{ method: "POST", path, body: shown }] })}
            send={() => post<Enrolled>(path, body)}
            close={close}
            done={done}
            above={<p class="muted">{whatIsMade(entry)}</p>}
            below={
                entry.bmc_address && (
                    <p class="muted">
                        The machine says that its BMC is at <code>{entry.bmc_address}</code>. That may be another machine’s: type the
                        address that you know.
                    </p>
                )
            }
        />
    );
}

function whatIsMade(entry: Entry): string {
    const count = entry.addresses?.length ?? 0;
    const ports = entry.boot_address
        ? `a port for ${entry.boot_address}, from which it has booted`
        : count === 1
          ? "a port for its card"
          : `ports for its ${count} cards`;
    return `It becomes a node with the UUID ${entry.uuid}, ${ports}, and the inventory that it has sent.`;
}
