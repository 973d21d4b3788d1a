/** The page Conductors. */

import type { JSX } from "preact";

export function ConductorsPage(): JSX.Element {
    return <h1>Conductors</h1>;
}
