// Builds the bundles of the extension into dist: the half in the extension host, with the language client in a file of its
// own that is loaded after the activation, and the page of the chat.
//
//   node build.mjs [--watch] [--development] [--only host|page] [--page FILE] [--out FOLDER]
//
// Rule: the host is CommonJS and has the editor's API as its only import; the page is one script and one style sheet,
// so that its content security policy can name them and nothing else.
import { mkdirSync, statSync, writeFileSync } from "node:fs";
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
 * Features of the language client that the server does not offer, by module: they are left out of the bundle. A feature that
 * the server is given one day has to be taken off this list.
 */
const ABSENT = [
    ...["callHierarchy", "colorProvider", "completion", "declaration", "definition", "diagnostic", "documentHighlight"],
    ...["documentLink", "documentSymbol", "fileOperations", "foldingRange", "formatting", "implementation", "inlayHint"],
    ...["inlineCompletion", "inlineValue", "linkedEditingRange", "notebook", "reference", "rename", "selectionRange"],
    ...["semanticTokens", "signatureHelp", "typeDefinition", "typeHierarchy", "workspaceSymbol"],
];

/** What stands for an absent module: whatever is looked for in it is a feature that announces and does nothing. */
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

/** Leaves what is imported while the extension runs to a file of its own. */
const laterInItsOwnFile = {
    name: "later-in-its-own-file",
    setup(build) {
        build.onResolve({ filter: /^\.\/client\.ts$/ }, ({ kind }) =>
            kind === "dynamic-import" ? { path: "./client.js", external: true } : undefined,
        );
    },
};

const host = {
    ...common,
    tsconfig: path.join(here, "tsconfig.json"),
    entryPoints: { extension: path.join(here, "src/extension.ts"), client: path.join(here, "src/host/client.ts") },
    platform: "node",
    target: "node20",
    format: "cjs",
    external: ["vscode"],
    plugins: [laterInItsOwnFile, withoutAbsentFeatures],
};

const page = {
    ...common,
    tsconfig: path.join(here, "tsconfig.webview.json"),
    entryPoints: { webview: path.resolve(options.page), languages: path.join(here, "src/webview/markdown/languages.ts") },
    platform: "browser",
    target: "chrome128",
    format: "iife",
    jsx: "automatic",
    jsxImportSource: "preact",
    // A page outside of the folder, as tests have, finds the packages here.
    nodePaths: [path.join(here, "node_modules")],
};

const halves = { host, page };
const wanted = options.only ? [halves[options.only]] : Object.values(halves);
if (wanted.includes(undefined)) throw new Error(`--only is host or page, and not ${options.only}`);

mkdirSync(options.out, { recursive: true });
if (options.watch) {
    for (const half of wanted) await (await esbuild.context(half)).watch();
} else {
    await Promise.all(wanted.map((half) => esbuild.build(half)));
    const style = path.join(options.out, "webview.css");
    // The page links it whether or not anything was imported.
    if (!statSync(style, { throwIfNoEntry: false })) writeFileSync(style, "");
    for (const name of ["extension.js", "client.js", "webview.js", "languages.js", "webview.css"]) {
        const bytes = statSync(path.join(options.out, name), { throwIfNoEntry: false })?.size;
        if (bytes === undefined) continue;
        console.log(`${name.padEnd(14)} ${(bytes / 1000).toFixed(1).padStart(7)} kB`);
    }
}
