/** The files of one archive of logs, shown as text without leaving the page. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import { explain } from "../api/client";
import { CopyButton } from "../components/copy";
import { Dialog } from "../components/dialog";
import { readFile, save } from "../components/download";
import { Icon } from "../components/icon";
import { Empty, Problem } from "../components/loading";
import { formatSize } from "../components/sizes";
import { readArchive, textOfFile, type ArchiveFile } from "./archive";

const SHOWN = 500_000; // characters of the end of a file: longer texts make browsers slow

function refuse(): never {
    throw new Error("This archive cannot be read here. Download it instead.");
}

interface LogDialogProps {
    path: string;
    title: string;
    close: () => void;
}

/** Shows the files of an archive, and the text of the chosen one. */
export function LogDialog({ path, title, close }: LogDialogProps): JSX.Element {
    const [files, setFiles] = useState<ArchiveFile[] | null>(null);
    const [error, setError] = useState<string | null>(null);
    const [chosen, setChosen] = useState(0);
    useEffect(() => {
        readFile(path)
            .then(({ content }) => readArchive(content).catch(refuse))
            .then((found) => setFiles(found.sort((one, other) => (one.name < other.name ? -1 : 1))))
            .catch((problem: unknown) => setError(explain(problem)));
    }, [path]);
    const file = files?.[chosen];
    return (
        <Dialog title={title} onClose={close} wide>
            {error !== null && <Problem text={error} />}
            {files === null && error === null && <p class="loading">Loading…</p>}
            {files?.length === 0 && <Empty>The archive is empty.</Empty>}
            {files && file && (
                <>
                    <label class="field">
                        <span>File</span>
                        <select value={chosen} onChange={(event) => setChosen(Number(event.currentTarget.value))}>
                            {files.map(({ name, content }, at) => (
                                <option key={name} value={at}>
                                    {name} ({formatSize(content.length)})
                                </option>
                            ))}
                        </select>
                    </label>
                    <FileText key={file.name} file={file} />
                </>
            )}
        </Dialog>
    );
}

function FileText({ file }: { file: ArchiveFile }): JSX.Element {
    const text = textOfFile(file);
    const name = file.name.split("/").pop() ?? file.name;
    return (
        <section class="part" aria-label={file.name}>
            <p class="log-actions">
                <button
                    type="button"
                    class="button-plain"
                    onClick={() => save(new Blob([file.content as Uint8Array<ArrayBuffer>]), name)}
                >
                    <Icon name="down" /> Download
                </button>
                {text !== null && <CopyButton text={text} />}
            </p>
            {text === null ? (
                <Empty>This file is no text.</Empty>
            ) : (
                <>
                    {text.length > SHOWN && <p class="muted">Only its end is shown; download it for the rest.</p>}
                    <pre class="json log-text" tabIndex={0} aria-label={`Text of ${file.name}`}>
                        <code>{text.slice(-SHOWN)}</code>
                    </pre>
                </>
            )}
        </section>
    );
}
