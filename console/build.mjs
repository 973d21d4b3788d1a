// Builds the console into api/console, the same bytes from the same sources.
//
//   node build.mjs            build
//   node build.mjs --check    build elsewhere, and fail if api/console is not what comes out
//   node build.mjs --watch    build whenever a source changes

import * as esbuild from "esbuild";
import { mkdtemp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const OUTPUT = path.join(HERE, "..", "api", "console");
const BASE = "/console/";

function options(directory) {
    return {
        absWorkingDir: HERE,
        entryPoints: { console: "src/main.tsx" },
        outdir: path.join(directory, "assets"),
        entryNames: "[name]-[hash]",
        chunkNames: "[name]-[hash]",
        assetNames: "[name]-[hash]",
        bundle: true,
        splitting: true,
        format: "esm",
        target: "es2022",
        minify: true,
        legalComments: "none",
        charset: "utf8",
        jsx: "automatic",
        jsxImportSource: "preact",
        metafile: true,
        write: false,
        logLevel: "warning",
    };
}

const LICENCES = "THIRD-PARTY.txt";

/** Return the folder of the package that a source belongs to; null: it was written here. */
function packageOf(source) {
    return /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(source)?.[0] ?? null;
}

/** Return the licences of all packages of which something is in the output, which itself has no comments. */
async function licences(inputs) {
    const folders = [...new Set(Object.keys(inputs).map(packageOf))].filter(Boolean).sort();
    const texts = folders.map(async (folder) => {
        const { name, version } = JSON.parse(await readFile(path.join(HERE, folder, "package.json"), "utf8"));
        const text = await readFile(path.join(HERE, folder, "LICENSE"), "utf8");
        return `${name} ${version}\n\n${text.trim()}\n`;
    });
    const head = "The web console of Ingot contains software of others, under these licences:\n";
    return [head, ...(await Promise.all(texts))].join(`\n${"-".repeat(72)}\n\n`);
}

/** Write what esbuild made, the page that loads it, and the licences. */
async function write(result, directory) {
    await rm(directory, { recursive: true, force: true });
    await mkdir(path.join(directory, "assets"), { recursive: true });
    for (const file of result.outputFiles) await writeFile(file.path, file.contents);
    const outputs = Object.entries(result.metafile.outputs);
    const [script, entry] = outputs.find(([, output]) => output.entryPoint === "src/main.tsx");
    const page = (await readFile(path.join(HERE, "src", "index.html"), "utf8"))
        .replace("%script%", `${BASE}assets/${path.basename(script)}`)
        .replace("%styles%", `${BASE}assets/${path.basename(entry.cssBundle)}`);
    await writeFile(path.join(directory, LICENCES), await licences(result.metafile.inputs));
    await writeFile(path.join(directory, "index.html"), page); // last: a server reads all files anew when it changes
    return result.outputFiles.map((file) => [path.basename(file.path), file.contents]);
}

async function build(directory) {
    return write(await esbuild.build(options(directory)), directory);
}

/** Return the text of each file of a folder by its path. */
async function read(directory) {
    const found = new Map();
    for (const entry of await readdir(directory, { withFileTypes: true, recursive: true })) {
        if (!entry.isFile()) continue;
        const file = path.join(entry.parentPath ?? entry.path, entry.name);
        found.set(path.relative(directory, file), await readFile(file, "utf8"));
    }
    return found;
}

async function check() {
    // Elsewhere: a server may be running with the output.
    const other = await mkdtemp(path.join(tmpdir(), "ingot-console-"));
    try {
        await build(other);
        const [made, kept] = [await read(other), await read(OUTPUT)];
        const names = new Set([...made.keys(), ...kept.keys()]);
        const different = [...names].filter((name) => made.get(name) !== kept.get(name)).sort();
        if (different.length === 0) return;
        console.error(`api/console is not what its sources give: ${different.join(", ")}; run: npm run build`);
        process.exitCode = 1;
    } finally {
        await rm(other, { recursive: true, force: true });
    }
}

async function watch() {
    const rebuilt = { name: "write", setup: (b) => b.onEnd((r) => (r.errors.length ? undefined : write(r, OUTPUT))) };
    const context = await esbuild.context({ ...options(OUTPUT), plugins: [rebuilt] });
    await context.watch();
}

if (process.argv.includes("--check")) await check();
else if (process.argv.includes("--watch")) await watch();
else {
    for (const [name, contents] of await build(OUTPUT)) {
        console.log(`${name}  ${contents.length} bytes, ${gzipSync(contents).length} with gzip`);
    }
}
