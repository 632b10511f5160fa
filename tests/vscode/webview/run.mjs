// Builds the page, bundles the tests, and runs them; see run.
//
// Rule: the tests run the page as shipped, minified. The tests are checked by the compiler before they run.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";

const here = path.dirname(new URL(import.meta.url).pathname);
const extension = path.resolve(here, "../../../editors/vscode");
const { build } = createRequire(path.join(extension, "package.json"))("esbuild");
const tools = process.env.KODE_VSCODE_TOOLS_DIR;
const [what = "", ...rest] = process.argv.slice(2);

const out = process.env.KODE_WEBVIEW_OUT ?? mkdtempSync(path.join(tmpdir(), "kode-webview-"));
mkdirSync(path.join(out, "pictures"), { recursive: true });

function run(program, args, environment = {}) {
    return (
        spawnSync(program, args, { stdio: "inherit", env: { ...process.env, ...environment } }).status ?? 1
    );
}

// The types of what drives the browser lie with the tools, outside of the checkout.
writeFileSync(
    path.join(out, "tsconfig.json"),
    JSON.stringify({
        extends: path.join(extension, "tsconfig.webview.json"),
        compilerOptions: {
            types: ["node"],
            typeRoots: [path.join(extension, "node_modules/@types")],
            erasableSyntaxOnly: false,
            paths: {
                "kode-protocol": [path.resolve(here, "../../../protocol/generated/kode.ts")],
                "playwright-core": [path.join(tools, "node_modules/playwright-core/types/types.d.ts")],
                "*": [path.join(extension, "node_modules/*")],
            },
        },
        include: [path.join(here, "**/*.ts")],
        exclude: [],
    }),
);

let failed = 0;
if (what !== "--record") {
    failed +=
        run(path.join(extension, "node_modules/.bin/tsc"), ["-p", path.join(out, "tsconfig.json")]) === 0
            ? 0
            : 1;
}

const dist = path.join(out, "dist");
if (run(process.execPath, [path.join(extension, "build.mjs"), "--only", "page", "--out", dist]) !== 0)
    process.exit(1);

const groups = { "--unit": ["unit"], "--page": ["page"], "": ["unit", "page"] };
const files =
    what === "--record"
        ? ["record.ts"]
        : what === "--bench"
          ? ["bench.ts"]
          : (groups[what] ?? groups[""]).flatMap((group) =>
                readdirSync(path.join(here, group))
                    .filter((name) => name.endsWith(".test.ts"))
                    .map((name) => path.join(group, name)),
            );
await build({
    absWorkingDir: here,
    entryPoints: files,
    outdir: path.join(out, "tests"),
    outbase: here,
    outExtension: { ".js": ".cjs" },
    bundle: true,
    platform: "node",
    target: "node20",
    format: "cjs",
    external: ["playwright-core", "axe-core"],
    tsconfig: path.join(extension, "tsconfig.webview.json"),
    nodePaths: [path.join(extension, "node_modules")],
    logLevel: "warning",
});

const environment = {
    NODE_PATH: path.join(tools, "node_modules"),
    KODE_WEBVIEW_DIST: dist,
    KODE_WEBVIEW_PICTURES: path.join(out, "pictures"),
    KODE_RECORDED: path.join(here, "recorded"),
    KODE_REPLAY: path.resolve(here, "../../fixtures/replay"),
};
const bundles = files.map((file) => path.join(out, "tests", file.replace(/\.ts$/, ".cjs")));
const isTest = what === "" || what === "--unit" || what === "--page";
const args = isTest
    ? ["--test", "--test-concurrency=2", "--test-reporter=spec", ...rest, ...bundles]
    : [...bundles, ...rest];
failed += run(process.execPath, args, environment) === 0 ? 0 : 1;
console.log(`pictures and bundles: ${out}`);
process.exit(failed === 0 ? 0 : 1);
