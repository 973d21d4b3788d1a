/** The sign of the connection: quiet while events come, plain about what may be stale when they do not. */

import type { JSX } from "preact";

import { Icon } from "../components/icon";
import { formatAbsolute, formatDuration } from "../components/time";
import { isUpgraded } from "../api/session";
import { useBrowserNow } from "./clock";
import { feedError, feedState, heardAt, readAgain, retryAt, retryNow, type FeedState } from "./feed";

const TEXTS: Record<FeedState, string> = {
    connecting: "Connecting",
    connected: "Live",
    lost: "Connection lost",
    refused: "Not live",
    paused: "Paused",
};

/** Shows whether the console is connected; who may not follow events reads again when that is needed. */
export function ConnectionSign(): JSX.Element {
    const state = feedState.value;
    return (
        <>
            <span
                class={`connection connection-${state}`}
                role="status"
                title={state === "refused" ? (feedError.value ?? undefined) : undefined}
            >
                <Icon name={state === "lost" ? "alert" : state === "refused" || state === "paused" ? "pause" : "dot"} />
                <span class="connection-text">{TEXTS[state]}</span>
                {state === "refused" && (
                    <span class="visually-hidden">: pages do not change when something happens. {feedError.value}</span>
                )}
            </span>
            {state === "refused" && (
                <button type="button" class="button button-small" onClick={readAgain}>
                    <Icon name="refresh" /> Read again
                </button>
            )}
        </>
    );
}

/** Shows above the page since when it may be stale, while the connection is lost, and that the console is an old one. */
export function ConnectionBanner(): JSX.Element | null {
    if (feedState.value !== "lost") return isUpgraded.value ? <Upgraded /> : null;
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

function Upgraded(): JSX.Element {
    return (
        <aside class="banner banner-quiet" aria-label="Upgrade">
            <Icon name="refresh" />
            <span role="status">The console was upgraded: reload it when you have saved what you are writing.</span>
            <button type="button" class="button" onClick={() => location.reload()}>
                Reload
            </button>
        </aside>
    );
}

function Stale({ since }: { since: number }): JSX.Element {
    const now = useBrowserNow();
    return (
        <>
            What is shown may be stale since {formatAbsolute(since, now)} ({formatDuration(Math.round((now - since) / 1000))}).
        </>
    );
}

function Retry(): JSX.Element {
    const now = useBrowserNow();
    const seconds = retryAt.value === null ? 0 : Math.max(0, Math.ceil((retryAt.value - now) / 1000));
    return (
        <button type="button" class="button" onClick={retryNow}>
            {seconds > 1 ? `Try again (in ${seconds} s)` : "Try again"}
        </button>
    );
}
