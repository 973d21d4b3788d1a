/** The sign of the connection: quiet while events come, plain about what may be stale when they do not. */

import type { JSX } from "preact";

import { Icon } from "../components/icon";
import { formatAbsolute, formatDuration } from "../components/time";
import { useNow } from "./clock";
import { feedError, feedState, heardAt, retryAt, retryNow } from "./feed";

/** Shows whether the console is connected. */
export function ConnectionSign(): JSX.Element {
    const state = feedState.value;
    const text = { connecting: "Connecting", connected: "Live", lost: "Connection lost" }[state];
    return (
        <span class={`connection connection-${state}`} role="status">
            <Icon name={state === "lost" ? "alert" : "dot"} />
            <span class="connection-text">{text}</span>
        </span>
    );
}

/** Shows above the page since when it may be stale, while the connection is lost. */
export function ConnectionBanner(): JSX.Element | null {
    if (feedState.value !== "lost") return null;
    return (
        <aside class="banner" aria-label="Connection">
            <Icon name="alert" />
            <span>
                <strong>Connection lost.</strong> {feedError.value}{" "}
                {heardAt.value !== null && <Stale since={heardAt.value} />}
            </span>
            <Retry />
        </aside>
    );
}

function Stale({ since }: { since: number }): JSX.Element {
    const now = useNow();
    return (
        <>
            What is shown may be stale since {formatAbsolute(since, now)} ({formatDuration(Math.round((now - since) / 1000))}).
        </>
    );
}

function Retry(): JSX.Element {
    const now = useNow();
    const seconds = retryAt.value === null ? 0 : Math.max(0, Math.ceil((retryAt.value - now) / 1000));
    return (
        <button type="button" class="button" onClick={retryNow}>
            {seconds > 1 ? `Try again (in ${seconds} s)` : "Try again"}
        </button>
    );
}
