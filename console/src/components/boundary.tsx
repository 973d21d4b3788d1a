/** What is shown instead of a part of the console that cannot be shown: one error must not make everything disappear. */

import { Component, type ComponentChildren, type JSX } from "preact";

import { explain } from "../api/client";
import { Problem } from "./loading";

/** Shows its children, or what has gone wrong with them. */
export class Boundary extends Component<{ children: ComponentChildren }, { error: unknown }> {
    override state = { error: null };

    override componentDidCatch(error: unknown): void {
        console.error(error);
        this.setState({ error });
    }

    override render(): JSX.Element {
        const { error } = this.state;
        if (error === null) return <>{this.props.children}</>;
        return (
            <Problem
                text={`This cannot be shown: ${explain(error)}. If Ingot was upgraded, this page may be too old.`}
                retry={() => location.reload()}
                retryText="Reload"
            />
        );
    }
}
