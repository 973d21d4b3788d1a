/** The page Node. */

import type { JSX } from "preact";

export function NodePage({ node }: { node: string }): JSX.Element {
    return <h1>{node}</h1>;
}
