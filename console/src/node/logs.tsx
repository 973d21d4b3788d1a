/** The logs of agents: what ramdisks have said of runs, kept when those failed. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { download } from "../components/download";
import { Icon } from "../components/icon";
import { Empty, Loaded } from "../components/loading";
import { Older } from "../components/older";
import { formatSize } from "../components/sizes";
import { Time } from "../components/time";
import { toastError } from "../components/toasts";
import { ofNode, useLive } from "../live/resource";
import { part } from "../paths";
import { LogDialog } from "./logfiles";
import { RunLink } from "./runs";
import type { AgentLog, AgentLogs, NodeDetail } from "./types";
import { spellFlow } from "./words";

const PAGE = 50;

/** Shows the logs of the agents of a node. */
export function LogsTab({ node }: { node: NodeDetail }): JSX.Element {
    const path = `/ingot/v1/nodes/${part(node.uuid)}/logs`;
    const [limit, setLimit] = useState(PAGE);
    const found = useLive<AgentLogs>(`${path}?sort_key=created_at&sort_dir=desc&limit=${limit}`, ofNode(node.uuid));
    return (
        <Loaded of={found}>
            {({ logs, next }) =>
                logs.length === 0 ? (
                    <Empty>There is no log of an agent: they are kept when a run has failed, or always if that is configured.</Empty>
                ) : (
                    <section class="panel list-scroll" aria-label="Logs of agents" tabIndex={0}>
                        <table class="list">
                            <thead>
                                <tr>
                                    <th scope="col">Collected</th>
                                    <th scope="col">Run</th>
                                    <th scope="col">Size</th>
                                    <th scope="col">Archive</th>
                                </tr>
                            </thead>
                            <tbody>
                                {logs.map((log) => (
                                    <LogRow key={log.uuid} node={node} log={log} path={`${path}/${log.uuid}`} />
                                ))}
                            </tbody>
                        </table>
                        <Older isThere={Boolean(next)} show={() => setLimit(limit + PAGE)} text="Show older logs" />
                    </section>
                )
            }
        </Loaded>
    );
}

function LogRow({ node, log, path }: { node: NodeDetail; log: AgentLog; path: string }): JSX.Element {
    const [isBusy, setBusy] = useState(false);
    const [isShown, setShown] = useState(false);
    const load = async (): Promise<void> => {
        setBusy(true);
        await download(path, `${log.uuid}.tar.gz`).catch(toastError);
        setBusy(false);
    };
    return (
        <tr>
            <td>
                <Time at={log.created_at} both />
            </td>
            <td>{log.run ? <RunLink node={node} run={log.run} text={spellFlow(log.flow)} /> : spellFlow(log.flow)}</td>
            <td class="nowrap">{formatSize(log.size)}</td>
            <td class="log-actions">
                <button
                    type="button"
                    class="button button-small"
                    aria-label={`Show the log of ${log.created_at}`}
                    onClick={() => setShown(true)}
                >
                    Show
                </button>
                {isShown && (
                    <LogDialog path={path} title={`Log of ${spellFlow(log.flow)}`} close={() => setShown(false)} />
                )}
                <button
                    type="button"
                    class="button button-small"
                    disabled={isBusy}
                    aria-label={`Download the log of ${log.created_at}`}
                    onClick={() => void load()}
                >
                    <Icon name="down" /> {isBusy ? "Loading…" : "Download"}
                </button>
            </td>
        </tr>
    );
}
