/** Archives of logs (`.tar.gz`), read in the browser: which files they have, and what text is in them. */

const BLOCK = 512; // bytes of a header, and what contents are filled up to

export interface ArchiveFile {
    name: string;
    content: Uint8Array;
}

/** Return a field of a header; it ends with a zero if it is shorter than its place. */
function textAt(block: Uint8Array, from: number, length: number): string {
    return new TextDecoder().decode(block.subarray(from, from + length)).replace(/\0.*$/s, "");
}

/** Return the path that a record of an extended header has (`22 path=very/long/name`), if there is one. */
function pathIn(records: Uint8Array): string | null {
    return /^\d+ path=(.*)$/m.exec(new TextDecoder().decode(records))?.[1] ?? null;
}

/** Return the files of a tar archive. Long names are those of POSIX (x) and of GNU (L). */
export function readTar(archive: Uint8Array): ArchiveFile[] {
    const files: ArchiveFile[] = [];
    let long: string | null = null;
    for (let at = 0; at + BLOCK <= archive.length; ) {
        const head = archive.subarray(at, at + BLOCK);
        if (head[0] === 0) break;
        const size = Number.parseInt(textAt(head, 124, 12), 8) || 0;
        const kind = textAt(head, 156, 1) || "0";
        const content = archive.subarray(at + BLOCK, at + BLOCK + size);
        at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
        if (kind === "x" || kind === "L") {
            long = kind === "x" ? pathIn(content) : textAt(content, 0, size);
            continue;
        }
        const [name, folder] = [textAt(head, 0, 100), textAt(head, 257, 5) === "ustar" ? textAt(head, 345, 155) : ""];
        if (kind === "0") files.push({ name: long ?? (folder ? `${folder}/${name}` : name), content });
        long = null;
    }
    return files;
}

/** Return the files of a packed archive. */
export async function readArchive(packed: Blob): Promise<ArchiveFile[]> {
    const plain = packed.stream().pipeThrough(new DecompressionStream("gzip"));
    return readTar(new Uint8Array(await new Response(plain).arrayBuffer()));
}

const LOOKED_AT = 8000; // bytes, by which texts are recognized

/** Return the text of a file; null: it is none. */
export function textOfFile({ content }: ArchiveFile): string | null {
    return content.subarray(0, LOOKED_AT).includes(0) ? null : new TextDecoder().decode(content);
}
