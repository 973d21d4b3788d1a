/** Where the console begins. */

import { render } from "preact";

import { App } from "./app";
import { Boundary } from "./components/boundary";
import { startKeys } from "./components/keys";
import { startRouter } from "./router";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/components.css";
import "./styles/table.css";
import "./styles/pages.css";
import "@xterm/xterm/css/xterm.css";
import "./styles/hardware.css";
import "./styles/terminal.css";
import "./styles/node.css";
import "./styles/conductors.css";
import "./styles/plans.css";
import "./theme";

startRouter();
startKeys();
const root = document.getElementById("console");
root?.replaceChildren(); // what is said in case this script cannot be loaded
if (root) {
    render(
        <Boundary>
            <App />
        </Boundary>,
        root,
    );
}
