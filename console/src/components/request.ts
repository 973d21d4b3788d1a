/** A request of a dialog: it runs once at a time, and what it is refused for stays in the dialog. */

import { useState } from "preact/hooks";

import { explain } from "../api/client";
import { toast } from "./toasts";

interface Ends {
    close: () => void;
    /** Called when the server has accepted it. */
    done: () => void;
}

/** Return a request that runs once at a time, and why it was refused. */
export function useRequest(send: () => Promise<unknown>, said: string, { close, done }: Ends) {
    const [error, setError] = useState<string | null>(null);
    const [isBusy, setBusy] = useState(false);
    const run = async (): Promise<void> => {
        setBusy(true);
        setError(null);
        try {
            await send();
            toast(said);
            done();
            close();
        } catch (problem) {
            setError(explain(problem));
            setBusy(false);
        }
    };
    return { error, isBusy, run };
}
