// Builds the bundles of the extension into dist: the half in the extension host, with the language client, the answers of
// language servers, changes in place and terminals in files of their own that are loaded when they are needed, and the page of the chat.
//
//   node build.mjs [--watch] [--development] [--only host|page] [--page FILE] [--out FOLDER]
//
// Rule: the host is CommonJS and has the editor's API as its only import. The page is a module with chunks beside it, which are
// read when they are needed, and one style sheet.
import { mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import * as esbuild from "esbuild";

const here = import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname);
const { values: options } = parseArgs({
    options: {
        watch: { type: "boolean", default: false },
        development: { type: "boolean", default: false },
        only: { type: "string" },
        page: { type: "string", default: path.join(here, "src/webview/main.tsx") },
        out: { type: "string", default: path.join(here, "dist") },
    },
});

const common = {
    bundle: true,
    absWorkingDir: here,
    outdir: options.out,
    minify: !options.development,
    sourcemap: options.development,
    metafile: true,
    legalComments: "none",
    logLevel: "warning",
};

/**
 * Features of the language client that the server does not offer or the extension draws itself, by module: they are left out of
 * the bundle. A feature that the server is given one day has to be taken off this list.
 */
const ABSENT = [
    ...["callHierarchy", "colorProvider", "completion", "declaration", "definition", "diagnostic", "documentHighlight"],
    ...["documentLink", "documentSymbol", "fileOperations", "foldingRange", "formatting", "hover", "implementation", "inlayHint"],
    ...["inlineCompletion", "inlineValue", "linkedEditingRange", "notebook", "reference", "rename", "selectionRange"],
    ...["semanticTokens", "signatureHelp", "typeDefinition", "typeHierarchy", "workspaceSymbol"],
];

/** The replacement of an absent module: whatever is looked for in it is a feature that announces and does nothing. */
const NOTHING = `
class Absent {
    getState() { return { kind: "static" }; }
    fillClientCapabilities() {}
    initialize() {}
    clear() {}
}
module.exports = new Proxy({}, { get: (_target, name) => (name === "__esModule" ? true : Absent) });
`;

/** Leaves the absent features out, and fails when one of them is not where it was looked for. */
const withoutAbsentFeatures = {
    name: "without-absent-features",
    setup(build) {
        const missing = new Set(ABSENT);
        const filter = new RegExp(`vscode-languageclient/lib/common/(${ABSENT.join("|")})\\.js$`.replaceAll("/", "[\\\\/]"));
        build.onLoad({ filter }, ({ path: file }) => {
            missing.delete(path.basename(file, ".js"));
            return { contents: NOTHING, loader: "js" };
        });
        build.onEnd(() => {
            if (missing.size === 0) return undefined;
            return { errors: [{ text: `the language client has no module ${[...missing].join(", ")} to leave out` }] };
        });
    },
};

/** Leaves modules that are imported at run time to a file of its own. */
const laterInItsOwnFile = {
    name: "later-in-its-own-file",
    setup(build) {
        build.onResolve({ filter: /\/(client|inlineChat|languageServers|taskTerminal)\.ts$/ }, ({ kind, path: file }) =>
            kind === "dynamic-import" ? { path: `./${path.basename(file, ".ts")}.js`, external: true } : undefined,
        );
    },
};

const host = {
    ...common,
    tsconfig: path.join(here, "tsconfig.json"),
    entryPoints: {
        extension: path.join(here, "src/extension.ts"),
        client: path.join(here, "src/host/client.ts"),
        languageServers: path.join(here, "src/host/languageServers.ts"),
        inlineChat: path.join(here, "src/host/review/inlineChat.ts"),
        taskTerminal: path.join(here, "src/host/taskTerminal.ts"),
    },
    platform: "node",
    target: "node20",
    format: "cjs",
    external: ["vscode"],
    // Some packages' other form asks for its files while it runs.
    mainFields: ["module", "main"],
    plugins: [laterInItsOwnFile, withoutAbsentFeatures],
};

const page = {
    ...common,
    tsconfig: path.join(here, "tsconfig.webview.json"),
    entryPoints: { webview: path.resolve(options.page), formulas: path.join(here, "src/webview/style/formulas.css") },
    loader: { ".woff2": "file" },
    // Chromium takes the first form of a font.
    external: ["*.woff", "*.ttf"],
    assetNames: "fonts/[name]-[hash]",
    platform: "browser",
    target: "chrome128",
    format: "esm",
    splitting: true,
    chunkNames: "chunks/[name]-[hash]",
    jsx: "automatic",
    jsxImportSource: "preact",
    // A page outside of the folder, as tests have, finds the packages here.
    nodePaths: [path.join(here, "node_modules")],
};

const halves = { host, page };
const wanted = options.only ? [halves[options.only]] : Object.values(halves);
if (wanted.includes(undefined)) throw new Error(`--only is host or page, and not ${options.only}`);

/** The bytes of an output and of all that it reads before it runs. */
function eagerBytes(outputs, name, seen = new Set()) {
    if (seen.has(name)) return 0;
    seen.add(name);
    const { bytes, imports } = outputs[name];
    const first = imports.filter(({ kind, external }) => kind === "import-statement" && !external);
    return first.reduce((sum, { path: next }) => sum + eagerBytes(outputs, next, seen), bytes);
}

/** The most bytes that are read before the first paint, and that the extension host loads. */
const BUDGETS = {
    "webview.js": 300_000,
    "extension.js": 105_000,
    "client.js": 295_000,
    "languageServers.js": 10_000,
    "inlineChat.js": 12_000,
    "taskTerminal.js": 8_000,
};

/** Prints the size of each entry with what it reads before it runs; fails where a shipped one is over its budget. */
function printSizes({ metafile: { outputs } }) {
    const line = (name, bytes) => console.log(`${name.padEnd(14)} ${(bytes / 1000).toFixed(1).padStart(7)} kB`);
    for (const [output, { entryPoint }] of Object.entries(outputs)) {
        const name = path.basename(output);
        const isEntry = entryPoint && !output.includes("/chunks/");
        if (output.endsWith(".css")) line(name, outputs[output].bytes);
        if (!isEntry || !output.endsWith(".js")) continue;
        const bytes = eagerBytes(outputs, output);
        line(name, bytes);
        const budget = options.development ? undefined : BUDGETS[name];
        if (bytes > budget) throw new Error(`${name} is ${bytes} bytes, its budget is ${budget}: import less before the first paint.`);
    }
}

mkdirSync(options.out, { recursive: true });
if (options.watch) {
    for (const half of wanted) await (await esbuild.context(half)).watch();
} else {
    // Chunks of an earlier build have other names.
    if (wanted.includes(page)) {
        for (const folder of ["chunks", "fonts"]) rmSync(path.join(options.out, folder), { recursive: true, force: true });
    }
    for (const built of await Promise.all(wanted.map((half) => esbuild.build(half)))) printSizes(built);
    const style = path.join(options.out, "webview.css");
    // The page links it whether or not anything was imported.
    if (!statSync(style, { throwIfNoEntry: false })) writeFileSync(style, "");
}
