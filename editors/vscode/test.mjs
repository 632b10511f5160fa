// Runs the unit tests of the parts that need no editor: bundles each `*.test.ts` and has Node's own runner run them.
//
// Rule: nothing of the bundles stays behind; the exit code is the runner's.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const folder = path.join(here, "src/test");
const tests = readdirSync(folder).filter((name) => name.endsWith(".test.ts"));
const out = mkdtempSync(path.join(tmpdir(), "kode-unit-"));
try {
    await esbuild.build({
        bundle: true,
        absWorkingDir: here,
        tsconfig: path.join(here, "tsconfig.json"),
        entryPoints: tests.map((name) => path.join(folder, name)),
        outdir: out,
        outExtension: { ".js": ".mjs" },
        format: "esm",
        platform: "node",
        target: "node20",
        sourcemap: "inline",
        logLevel: "warning",
    });
    const files = tests.map((name) => path.join(out, name.replace(/\.ts$/, ".mjs")));
    const run = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...files], {
        cwd: here,
        stdio: "inherit",
    });
    process.exitCode = run.status ?? 1;
} finally {
    rmSync(out, { recursive: true, force: true });
}
