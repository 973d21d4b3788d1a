// Runs the tests of what needs no browser: node test.mjs

import * as esbuild from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const made = await mkdtemp(path.join(tmpdir(), "ingot-console-test-"));
try {
    const names = await readdir(path.join(HERE, "test"));
    await esbuild.build({
        absWorkingDir: HERE,
        entryPoints: names.filter((name) => name.endsWith(".test.ts")).map((name) => `test/${name}`),
        outdir: made,
        outExtension: { ".js": ".mjs" },
        bundle: true,
        format: "esm",
        platform: "node",
        target: "node18",
        jsx: "automatic",
        jsxImportSource: "preact",
        // What modules ask a browser for when they are loaded.
        banner: { js: 'globalThis.location = new URL("http://ingot.example.com/console/");' },
        logLevel: "warning",
    });
    const built = (await readdir(made)).map((name) => path.join(made, name));
    process.exitCode = spawnSync(process.execPath, ["--test", ...built], { stdio: "inherit" }).status ?? 1;
} finally {
    await rm(made, { recursive: true, force: true });
}
