// How big the extension is and how long it takes: sizes of the bundles, what loading the host's costs, the activation as the
// editor itself measures it beside that of an extension that does next to nothing, and the time from the command to the first
// picture of the chat's prompt beside that of a view with nothing but a prompt. The server is started by the activation and
// not waited for.
//
//   KODE_LS_BIN=target/release/kode-ls tests/vscode/run --benchmark
//
// Rule: times are printed as median, minimum and maximum, and marked where they have a budget; nothing passes or fails by it.
// Pictures are timed by the browser, by the clock that the extension host has too: who looks from outside sees them late.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { Workbench } from "./lib/workbench.mjs";
import { eventually } from "./lib/runner.mjs";
import { script } from "./cases/script.mjs";

const RUNS = 7;
const tools = JSON.parse(process.env.KODE_VSCODE_TOOLS);

function sizes() {
    const listing = execFileSync("unzip", ["-lv", tools.vsixes[0]], { encoding: "utf8" });
    const sizeOf = (name) => {
        const columns = listing.split("\n").find((line) => line.endsWith(`dist/${name}`))?.trim().split(/\s+/);
        if (!columns) throw new Error(`the extension has no dist/${name}`);
        return { whole: Number(columns[0]) / 1000, packed: Number(columns[2]) / 1000 };
    };
    const line = (name, files, budget) => {
        const found = files.map(sizeOf);
        const sum = (of) => found.reduce((all, size) => all + of(size), 0);
        const [whole, packed] = [sum((size) => size.whole), sum((size) => size.packed)];
        row(name, `${whole.toFixed(0)} kB, packed ${packed.toFixed(0)} kB`, budget && `${budget} kB`, whole <= budget);
    };
    line("extension.js and client.js", ["extension.js", "client.js"], 400);
    line("extension.js, loaded at the start", ["extension.js"]);
    // With what it imports before the first paint it has a budget in the build.
    line("webview.js", ["webview.js"]);
}

/** Prints a line of the table: a figure and, where it has a budget, its ratio to that. */
function row(name, figure, budget, isMet) {
    const mark = budget ? `  ${budget}  ${isMet ? "ok" : "OVER"}` : "";
    console.log(`${name.padEnd(42)} ${figure.padEnd(26)}${mark}`.trimEnd());
}

const medianOf = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

function print(name, values) {
    const [least, most] = [Math.min(...values), Math.max(...values)];
    row(name, `${medianOf(values).toFixed(0)} ms (${least.toFixed(0)} to ${most.toFixed(0)})`);
}

/** A figure beside its floor, and how much more than that it takes, in milliseconds. */
function beside(name, values, floorName, floor, budget) {
    print(name, values);
    print(floorName, floor);
    const more = medianOf(values) - medianOf(floor);
    row(`${name}, over that`, `${more.toFixed(0)} ms`, `${budget} ms`, more <= budget);
}

/** The editor's measurement of our activation, and of one that does next to nothing, in milliseconds. */
async function activations(window) {
    // Only rows that are in sight are on the page, and the probe's is among the last.
    await window.page.setViewportSize({ width: 1400, height: 4000 });
    await window.command("workbench.action.showRuntimeExtensions");
    const rows = window.page.locator(".runtime-extensions-editor .extension", { hasText: /kode/i });
    const probe = rows.filter({ hasText: "probe" }).first();
    const own = rows.filter({ hasNotText: "probe" }).first();
    const timeOf = (row) =>
        eventually("the activation time", async () => {
            const found = await row.locator(".activation-time").textContent({ timeout: 2_000 });
            return /(\d+)ms/.exec(found)?.[1];
        });
    return { own: Number(await timeOf(own)), floor: Number(await timeOf(probe)) };
}

/** The cost of loading the bundle, in milliseconds of the processor, in the editor's own Node with nothing behind the API. */
function loading() {
    const box = fs.mkdtempSync(path.join(os.tmpdir(), "kode-load-"));
    try {
        execFileSync("unzip", ["-q", tools.vsixes[0], "extension/dist/extension.js", "-d", box]);
        fs.writeFileSync(path.join(box, "load.cjs"), LOAD);
        const node = path.join(path.dirname(tools.codeServer), "node");
        const bundle = path.join(box, "extension/dist/extension.js");
        return Array.from({ length: RUNS }, () =>
            Number(execFileSync(node, [path.join(box, "load.cjs"), bundle], { encoding: "utf8" })),
        );
    } finally {
        fs.rmSync(box, { recursive: true, force: true });
    }
}

/** Loads what the extension host has loaded long before, then the bundle, and says what that took. */
const LOAD = `
for (const name of ["child_process", "crypto", "fs", "net", "os", "path", "readline", "util"]) require("node:" + name);
const Module = require("node:module");
const stub = () => new Proxy(class {}, { get: (target, key) => (key === "prototype" ? target.prototype : stub()) });
const load = Module._load;
Module._load = function (name, ...rest) { return name === "vscode" ? stub() : load.call(this, name, ...rest); };
const before = process.cpuUsage();
require(process.argv[2]);
const { user, system } = process.cpuUsage(before);
console.log((user + system) / 1000);
`;

/** From a command to the first picture of a prompt, in milliseconds, and how much of that went by before the page began. */
async function firstPicture(window, command) {
    const asked = await window.run((vscode, _, command) => {
        const now = Date.now();
        void vscode.commands.executeCommand(command);
        return now;
    }, command);
    const prompt = window.chat.getByRole("textbox", { name: "Prompt" });
    await prompt.waitFor({ timeout: 30_000 });
    const { origin, picture } = await eventually("the first picture", () =>
        prompt.evaluate(() => {
            const [entry] = performance.getEntriesByName("first-contentful-paint");
            return entry && { origin: performance.timeOrigin, picture: entry.startTime };
        }),
    );
    return { before: origin - asked, whole: origin - asked + picture };
}

/** Hides the view that is shown, whose page is thrown away. */
async function hide(window) {
    await window.command("workbench.view.explorer");
    await window.page.locator("iframe.webview.ready").waitFor({ state: "detached" });
}

console.log(`${"the extension".padEnd(69)}  budget`);
sizes();
print("loading the host bundle, processor", loading());
const workbench = await Workbench.start(tools, script);
try {
    const own = [];
    const floor = [];
    const pictures = { first: { ours: [], floor: [] }, again: { ours: [], floor: [] } };
    const before = { ours: [], floor: [] };
    const commands = { ours: "kode.chat.focus", floor: "kodeTestProbe.floor.focus" };
    for (let run = 0; run < RUNS; run++) {
        const window = await workbench.open({ "a.txt": "one\n" });
        await window.ready();
        const measured = await activations(window);
        own.push(measured.own);
        floor.push(measured.floor);
        await window.close();
        // The first view of a window costs the editor more than all others: each is the first in a window of its own.
        for (const whose of ["ours", "floor"]) {
            const window = await workbench.open({ "a.txt": "one\n" });
            await window.ready();
            for (const when of ["first", "again"]) {
                const measured = await firstPicture(window, commands[whose]);
                pictures[when][whose].push(measured.whole);
                if (when === "again") before[whose].push(measured.before);
                await hide(window);
            }
            await window.close();
        }
    }
    beside("activation", own, "that of an extension of nothing", floor, 50);
    for (const when of ["first", "again"]) {
        const { ours, floor } = pictures[when];
        beside(`command to the prompt, ${when}`, ours, `a bare view, ${when}`, floor, 300);
    }
    print("until the page begins", before.ours);
    print("until that of a bare view begins", before.floor);
} finally {
    await workbench.stop();
}
