/** The page Inbox. */

import type { JSX } from "preact";

export function InboxPage(): JSX.Element {
    return <h1>Inbox</h1>;
}
