// Commands in the background: moved there while they run, shown live in a terminal of the editor, ended from it.
//
// Rule: the terminal is read from the screen.
import assert from "node:assert/strict";
import fs from "node:fs";
import { eventually, test } from "../lib/runner.mjs";

/** The text on the screen of the active terminal. */
async function terminalText(window) {
    const rows = window.page.locator(".terminal-wrapper.active .xterm-rows > div");
    return (await rows.allTextContents()).join("\n").replaceAll("\u00a0", " ");
}

/** The names of the terminals. */
const terminals = (window) => window.run((vscode) => vscode.window.terminals.map(({ name }) => name));

/** The running commands in the background. */
const running = async (window) => (await window.ask("agent/tasks/list", {})).tasks.filter(({ end }) => end === undefined);

test("a command is moved to the background while it runs, and a terminal shows all of its output as it comes", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await window.ready();
    await window.openChat();
    await window.prompt("build it");
    const callId = await eventually("the call runs", async () => {
        const { items } = await window.ask("agent/session/load", {});
        return items.map(({ body }) => body).find(({ state }) => state === "EXECUTING")?.callId;
    });
    const { taskId } = await window.ask("agent/tasks/background", { callId });
    assert.equal(taskId, "bash_1");
    await eventually("the turn goes on", async () => /It said: The user moved the command/.test(await window.text("said")));
    const sessionId = await window.text("session");
    await window.act("showTask", { sessionId, taskId, title: "build" });
    const first = await eventually("the output so far", async () => {
        const text = await terminalText(window);
        return text.includes("green one") && text;
    });
    assert.doesNotMatch(first, /title|two/, "what names the terminal is left out");
    await window.shot("background-terminal");
    fs.writeFileSync(window.path("go-on"), "");
    await eventually("the rest and the end", async () => {
        const text = await terminalText(window);
        return /two[\s\S]*The command ended with exit code 0\./.test(text);
    });
    assert.deepEqual(await running(window), []);
    await window.act("showTask", { sessionId, taskId, title: "build" });
    assert.equal((await terminals(window)).filter((name) => name.startsWith("Kode: ")).length, 1, "one terminal for one command");
});

test("a terminal of a command in the background types nothing, and Ctrl+C in it ends the command", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await window.ready();
    await window.openChat();
    await window.prompt("serve it");
    await eventually("it runs", async () => (await running(window)).length === 1);
    const sessionId = await window.text("session");
    await window.act("showTask", { sessionId, taskId: "bash_1", title: "serve $(x)" });
    await eventually("its output", async () => /up/.test(await terminalText(window)));
    await window.page.locator(".terminal-wrapper.active .xterm-helper-textarea").focus();
    await window.page.keyboard.type("exit");
    assert.equal((await running(window)).length, 1);
    await window.page.keyboard.press("Control+c");
    await eventually("the end", async () => /The command was stopped\./.test(await terminalText(window)));
    assert.deepEqual(await running(window), []);
    assert.doesNotMatch(await terminalText(window), /exit/);
});
