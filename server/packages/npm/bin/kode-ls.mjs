#!/usr/bin/env node
// Starts the program of kode-ls for this platform with the arguments, the standard streams and the signals of this process.
//
// Rule: the program is the one of the optional dependency that fits, and of no other place. The exit is that of the program:
// its code, or its signal.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { isatty } from "node:tty";

const require = createRequire(import.meta.url);
const own = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const name = `@kode-ls/${process.platform}-${process.arch}`;

function fail(...lines) {
    console.error(lines.join("\n"));
    process.exit(1);
}

/** Whether this Node runs on another C library than that of GNU, as on Alpine. */
function isMusl() {
    return process.platform === "linux" && !process.report.getReport().header.glibcVersionRuntime;
}

/** The program's file, or the end of this process with the reason and the next step. */
function program() {
    const known = Object.keys(own.optionalDependencies ?? {});
    if (!known.includes(name)) {
        const platforms = known.map((one) => one.slice("@kode-ls/".length)).join(", ");
        fail(
            `kode-ls: there is no package for ${process.platform}-${process.arch}. Version ${own.version} has: ${platforms || "none"}.`,
            `Build the program from source (${own.homepage}#install), and start it without npm.`,
        );
    }
    const file = process.platform === "win32" ? "kode-ls.exe" : "kode-ls";
    let manifest;
    try {
        manifest = require.resolve(`${name}/package.json`);
    } catch {
        const libc = isMusl() ? ["On this system (musl) npm leaves out a package that needs glibc."] : [];
        fail(
            `kode-ls: the package ${name} is not installed, and it has the program.`,
            ...libc,
            "npm leaves it out with --omit=optional or --no-optional, and when node_modules comes from another platform.",
            `Install again on this machine: npm install --include=optional kode-ls@${own.version}`,
        );
    }
    const { version } = JSON.parse(readFileSync(manifest, "utf8"));
    if (version !== own.version) {
        fail(
            `kode-ls: ${name} has version ${version}, and kode-ls ${own.version}.`,
            `Install both in one version: npm install kode-ls@${own.version}`,
        );
    }
    return manifest.replace(/package\.json$/, `bin/${file}`);
}

const file = program();
const child = spawn(file, process.argv.slice(2), { stdio: "inherit" });

// A terminal sends its signals to the whole group, the program included; a second copy would count as a second key press.
// `process.stdin` is not touched: it would make the stream that the program reads one that does not block.
const isFromTerminal = [0, 1, 2].some((stream) => isatty(stream));
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
const keys = process.platform === "win32" ? ["SIGINT", "SIGBREAK"] : ["SIGINT", "SIGQUIT"];
for (const signal of keys) process.on(signal, () => isFromTerminal || child.kill(signal));

child.on("error", (error) => {
    fail(`kode-ls: ${file} could not be started: ${error.message}.`, `Install again: npm install kode-ls@${own.version}`);
});
child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    // The same end as the program's: without a listener the signal ends this process.
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
});
