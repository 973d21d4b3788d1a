/** One machine: where it is and why, what can be done, and its past, its hardware and its console in tabs. */

import type { JSX } from "preact";
import { useRef } from "preact/hooks";

import { CommandButton, type Command } from "../components/command";
import { useKeys } from "../components/keys";
import { Empty, Loaded } from "../components/loading";
import { PowerBadge, StateBadge } from "../components/state";
import { toast } from "../components/toasts";
import type { IngotEvent } from "../live/feed";
import { ofNode, useLive, type Resource } from "../live/resource";
import { ConsoleTab } from "../node/console";
import { ExplanationPanel, useExplanation } from "../node/explanation";
import { FactsPanel, Uuid } from "../node/facts";
import { HardwareTab } from "../node/hardware";
import { HistoryTab } from "../node/history";
import { JsonTab } from "../node/json";
import { LogsTab } from "../node/logs";
import { NetworkTab } from "../node/network";
import { PlanTab } from "../node/plan";
import { StatePathView } from "../node/statepath";
import { Tabs, type Tab } from "../node/tabs";
import { TimelineTab } from "../node/timeline";
import type { Explanation, NodeDetail } from "../node/types";
import { part } from "../paths";
import { address, query, setQuery } from "../router";
import { useRefusal, VerbMenu } from "../verbs/menu";
import { openVerb } from "../verbs/request";
import { verbOf, VERB_NAMES } from "../verbs/verbs";

const FIRST_TAB = "timeline";

const pathOf = (ident: string): string => `/v1/nodes/${part(ident)}`;

/** Shows the page of a node. */
export function NodePage({ node }: { node: string }): JSX.Element {
    const uuid = useRef<string | null>(null);
    // A node may get another name while its page is shown: once it is known, its UUID is what counts.
    const concerns = (event: IngotEvent): boolean => ofNode(uuid.current ?? node)(event);
    const found = useLive<NodeDetail>(pathOf(node), concerns, undefined, (known) => pathOf(known.uuid));
    uuid.current = found.data.value?.uuid ?? null;
    if (found.data.value === null && found.error.value?.status === 404) {
        return (
            <Empty>
                There is no node {node}. <a href={address("/fleet")}>All nodes</a>
            </Empty>
        );
    }
    return <Loaded of={found}>{(detail) => <Content key={detail.uuid} node={detail} reload={found.reload} />}</Loaded>;
}

interface ContentProps {
    node: NodeDetail;
    reload: () => void;
}

function Content({ node, reload }: ContentProps): JSX.Element {
    const explanation = useExplanation(node.uuid);
    const tabs = tabsOf(node, reload);
    const asked = query.value.get("tab") || FIRST_TAB;
    const chosen = tabs.find((tab) => tab.name === asked) ?? tabs[0];
    const choose = (tab: Tab): void => {
        const name = tab.name === FIRST_TAB ? "" : tab.name;
        if (tab !== chosen) setQuery({ tab: name, run: "", verb: "" }, { replace: false });
    };
    useKeys(
        "Tabs",
        tabs.map((tab, at) => ({ key: `${at + 1}`, text: tab.title, run: () => choose(tab) })),
    );
    return (
        <>
            <Head node={node} command={commandOf(node, asked)} />
            <StatePathView state={node.provision_state} target={node.target_provision_state} />
            <Summary node={node} explanation={explanation} />
            {chosen && <Tabs label="About the node" tabs={tabs} chosen={chosen} choose={choose} />}
        </>
    );
}

function tabsOf(node: NodeDetail, reload: () => void): Tab[] {
    return [
        { name: FIRST_TAB, title: "Timeline", show: () => <TimelineTab node={node} /> },
        { name: "plan", title: "Plan", show: () => <PlanTab node={node} /> },
        { name: "logs", title: "Logs", show: () => <LogsTab node={node} /> },
        { name: "console", title: "Console", show: () => <ConsoleTab node={node} /> },
        { name: "hardware", title: "Hardware", show: () => <HardwareTab node={node} /> },
        { name: "network", title: "Network", show: () => <NetworkTab node={node} /> },
        { name: "history", title: "History", show: () => <HistoryTab node={node} /> },
        { name: "json", title: "JSON", show: () => <JsonTab node={node} reload={reload} /> },
    ];
}

function Head({ node, command }: { node: NodeDetail; command: Command }): JSX.Element {
    const targets = { nodes: [{ uuid: node.uuid, name: node.name, provision_state: node.provision_state }] };
    const refusal = useRefusal(targets);
    const lettered = VERB_NAMES.filter((name) => verbOf(name).key);
    useKeys(
        "This node",
        lettered.map((name) => ({
            key: verbOf(name).key ?? "",
            text: verbOf(name).text,
            run: () => {
                const reason = refusal(name);
                if (reason) toast(reason, "bad");
                else openVerb({ ...targets, verb: name });
            },
        })),
    );
    return (
        <div>
            <div class="page-head">
                <h1>{node.name ?? node.uuid}</h1>
                <StateBadge state={node.provision_state} target={node.target_provision_state} />
                <PowerBadge state={node.power_state} />
                {node.maintenance && <span class="state state-waiting">maintenance</span>}
                <div class="page-actions">
                    <VerbMenu targets={targets} />
                    <CommandButton command={command} />
                </div>
            </div>
            <Uuid node={node} />
        </div>
    );
}

function Summary({ node, explanation }: { node: NodeDetail; explanation: Resource<Explanation> }): JSX.Element {
    return (
        <div class="node-summary">
            <ExplanationPanel node={node} explanation={explanation} />
            <FactsPanel node={node} explanation={explanation} />
        </div>
    );
}

/** Return what a tab shows as a command. */
function commandOf(node: NodeDetail, tab: string): Command {
    const ident = node.name ?? node.uuid;
    const [path, own] = [`/v1/nodes/${part(ident)}`, `/ingot/v1/nodes/${part(ident)}`];
    const gets = (...paths: string[]): Command["requests"] => paths.map((one) => ({ method: "GET", path: one }));
    const cli = (...words: string[]): string[][] => [["baremetal", ...words]];
    const commands: Record<string, Command> = {
        timeline: { own: [["explain", ident]], requests: gets(`${own}/timeline`, `${own}/runs`, `${own}/explanation`) },
        plan: { requests: gets(`${own}/plan?flow=deploy`) },
        logs: { requests: gets(`${own}/logs`) },
        console: { cli: cli("node", "console", "show", ident), requests: gets(`${own}/console/log`) },
        hardware: { cli: cli("node", "inventory", "save", ident), requests: gets(`${path}/inventory`, `${own}/sensors`) },
        network: { cli: cli("port", "list", "--node", ident), requests: gets(`${path}/ports`) },
        history: {
            cli: cli("node", "history", "list", ident),
            requests: gets(`${path}/history?detail=true`, `/ingot/v1/audit?target=${node.uuid}`),
        },
    };
    return commands[tab] ?? { cli: cli("node", "show", ident, "-f", "json"), requests: gets(path) };
}
