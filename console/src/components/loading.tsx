/** What is shown instead of data: that it is being read, or why it could not be. */

import type { ComponentChildren, JSX } from "preact";

import type { Resource } from "../live/resource";
import { Icon } from "./icon";

interface ProblemProps {
    text: string;
    retry?: () => void;
    retryText?: string;
}

/** Shows an error in the server's words, and the way to try again. */
export function Problem({ text, retry, retryText = "Try again" }: ProblemProps): JSX.Element {
    return (
        <div class="problem" role="alert">
            <Icon name="alert" />
            <span>{text}</span>
            {retry && (
                <button type="button" class="button" onClick={retry}>
                    {retryText}
                </button>
            )}
        </div>
    );
}

/** Shows that there is nothing, and what to do about it. */
export function Empty({ children }: { children: ComponentChildren }): JSX.Element {
    return <div class="empty">{children}</div>;
}

interface LoadedProps<T> {
    of: Resource<T>;
    children: (data: T) => ComponentChildren;
}

/** Shows what was read; an error stands above what was read before it. */
export function Loaded<T>({ of, children }: LoadedProps<T>): JSX.Element {
    const [data, error] = [of.data.value, of.error.value];
    return (
        <>
            {error && <Problem text={error.text} retry={of.reload} />}
            {data !== null && children(data)}
            {data === null && !error && <p class="loading">Loading…</p>}
        </>
    );
}
