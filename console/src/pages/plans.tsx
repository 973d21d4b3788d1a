/** The page Plans. */

import type { JSX } from "preact";

export function PlansPage(): JSX.Element {
    return <h1>Plans</h1>;
}
