// How big the extension is and how long it takes: sizes of the bundles, the activation as the editor itself measures it,
// and the time from the command to the chat's prompt.
//
//   KODE_LS_BIN=target/release/kode-ls tests/vscode/run --benchmark
//
// Rule: each figure is printed with its budget, as median, minimum and maximum; nothing passes or fails by it.
import { execFileSync } from "node:child_process";
import { Workbench } from "./lib/workbench.mjs";
import { eventually } from "./lib/runner.mjs";
import { script } from "./cases/script.mjs";

const RUNS = 7;
const tools = JSON.parse(process.env.KODE_VSCODE_TOOLS);

function sizes() {
    const listing = execFileSync("unzip", ["-lv", tools.vsixes[0]], { encoding: "utf8" });
    for (const [name, budget] of [
        ["extension.js", 400],
        ["webview.js", 300],
    ]) {
        const columns = listing.split("\n").find((line) => line.endsWith(`dist/${name}`))?.trim().split(/\s+/);
        if (!columns) continue;
        const kilobytes = (text) => (Number(text) / 1000).toFixed(0);
        console.log(`${name.padEnd(28)} ${kilobytes(columns[0])} kB, packed ${kilobytes(columns[2])} kB (budget ${budget} kB)`);
    }
}

function print(name, values, budget) {
    const sorted = values.toSorted((a, b) => a - b);
    const [median, least, most] = [sorted[Math.floor(sorted.length / 2)], sorted[0], sorted.at(-1)];
    console.log(`${name.padEnd(28)} ${median.toFixed(0)} ms (${least.toFixed(0)} to ${most.toFixed(0)}; budget ${budget})`);
}

/** What the editor has measured of our activation, in milliseconds. */
async function activation(window) {
    await window.command("workbench.action.showRuntimeExtensions");
    const row = window.page.locator(".runtime-extensions-editor .extension", { hasText: "Kode" });
    const own = row.filter({ hasNotText: "probe" }).first();
    const text = await eventually("the activation time", async () => {
        const found = await own.locator(".activation-time").textContent({ timeout: 2_000 });
        return /(\d+)ms/.test(found) && found;
    });
    return Number(/(\d+)ms/.exec(text)[1]);
}

sizes();
const workbench = await Workbench.start(tools, script);
try {
    const activations = [];
    const firstStates = [];
    for (let run = 0; run < RUNS; run++) {
        const window = await workbench.open({ "a.txt": "one\n" });
        await window.ready();
        activations.push(await activation(window));
        const start = performance.now();
        await window.command("kode.chat.focus");
        await window.chat.getByRole("textbox", { name: "Prompt" }).waitFor({ timeout: 30_000 });
        firstStates.push(performance.now() - start);
        await window.close();
    }
    print("activation", activations, "50 ms");
    print("command to the chat's prompt", firstStates, "300 ms and the editor's own webview");
} finally {
    await workbench.stop();
}
