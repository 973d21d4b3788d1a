/** The dialog of a verb: what it will do and who would refuse, its arguments, and what became of each node. */

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { CommandFold } from "../components/command";
import { Dialog } from "../components/dialog";
import { path } from "../router";
import { commandOf } from "./commands";
import { FormActions, FormBody, useForm } from "./form";
import { RunActions, RunBody } from "./progress";
import { closeVerb, verbRequest, type VerbRequest } from "./request";
import { verbRun } from "./run";
import { countOf } from "./targets";

/**
 * Have the dialog end with the page and the session that it belongs to. What became of nodes stays until it was seen:
 * a session may end in the middle, and the user sees the results after the next login.
 */
function useEnd(): void {
    const place = path.value;
    const before = useRef(place);
    useEffect(() => {
        if (before.current !== place && !verbRun.peek()?.running.peek()) closeVerb();
        before.current = place;
    }, [place]);
    useEffect(() => {
        if (verbRun.peek()?.isOwn === false) closeVerb();
        return () => {
            if (verbRun.peek() === null) closeVerb();
        };
    }, []);
}

/** Shows the dialog of the verb that was asked for; there is one of these. */
export function VerbDialog(): JSX.Element | null {
    useEnd();
    const request = verbRequest.value;
    if (!request || verbRun.value?.isOwn === false) return null;
    return <Content key={`${request.verb} ${countOf(request)}`} request={request} />;
}

function Content({ request }: { request: VerbRequest }): JSX.Element {
    const run = verbRun.value;
    const form = useForm(request, run === null);
    const { verb, one, given, preview } = form;
    return (
        <Dialog
            title={one ? [verb.text, verb.joint, one.name ?? one.uuid].filter(Boolean).join(" ") : verb.text}
            onClose={closeVerb}
            busy={run?.running.value ? "Nodes are being asked: stop that first." : null}
            wide={verb.plan !== undefined}
            actions={run ? <RunActions run={run} /> : <FormActions form={form} />}
        >
            <p>{verb.about}</p>
            {run ? <RunBody run={run} nodes={preview.nodes ?? request.nodes ?? []} /> : <FormBody form={form} request={request} />}
            <CommandFold command={() => commandOf(request, given.body, preview.nodes)} />
        </Dialog>
    );
}
