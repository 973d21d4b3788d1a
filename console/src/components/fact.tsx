/** Facts: pairs of a name and a value in a list. */

import type { ComponentChildren, JSX } from "preact";

/** Shows a fact in a list of facts (`dl`). */
export function Fact({ title, children }: { title: string; children: ComponentChildren }): JSX.Element {
    return (
        <div>
            <dt>{title}</dt>
            <dd>{children}</dd>
        </div>
    );
}
