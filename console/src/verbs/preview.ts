/** Who would accept a verb: a dry run, made again when the arguments change. */

import { useEffect, useState } from "preact/hooks";

import { explain } from "../api/client";
import type { BulkResult } from "../api/types";
import type { VerbNode, VerbRequest } from "./request";
import { ask, findNodes, splitNodes, verbIn, type Body } from "./targets";

const TYPED_MS = 400;

export interface PreviewState {
    /** The nodes that the request is for; null: they are not read yet. */
    nodes: VerbNode[] | null;
    results: BulkResult[];
    error: string | null;
    /** Whether all nodes have answered for these arguments. */
    done: boolean;
}

/** Return the answers of a dry run; another `turn` has it made again. */
export function usePreview(request: VerbRequest, body: Body, ready: boolean, turn: number): PreviewState {
    const [nodes, setNodes] = useState<VerbNode[] | null>(null);
    const [results, setResults] = useState<BulkResult[]>([]);
    const [error, setError] = useState<string | null>(null);
    const [done, setDone] = useState(false);
    const sent = JSON.stringify({ ...body, reason: undefined }); // no node refuses for what the reason says
    useEffect(() => {
        let stopped = false;
        const run = async (): Promise<void> => {
            const found = nodes ?? (await findNodes(request));
            if (stopped) return;
            setNodes(found);
            const all: BulkResult[] = [];
            for (const part of splitNodes(found.map((node) => node.uuid))) {
                all.push(...(await ask(verbIn(request), body, part, true)));
                if (stopped) return;
                setResults([...all]);
            }
            setDone(true);
        };
        setDone(false);
        setResults([]);
        setError(null);
        if (!ready) return undefined;
        const timer = setTimeout(
            () => void run().catch((problem: unknown) => stopped || setError(explain(problem))),
            nodes ? TYPED_MS : 0,
        );
        return () => {
            stopped = true;
            clearTimeout(timer);
        };
    }, [sent, ready, turn]);
    return { nodes, results, error, done };
}
