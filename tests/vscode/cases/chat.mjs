// What passes between page, host and server: prompts, events, context, the editor's acts.
import assert from "node:assert/strict";
import { eventually, test } from "../lib/runner.mjs";

test("a prompt streams into the chat view, and status says when it works", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await window.openChat();
    await window.prompt("wait for me");
    await workbench.waiting("wait");
    await window.status(/working/);
    await eventually("the first piece", async () => (await window.text("said")) !== "");
    await workbench.release("wait");
    await eventually("the answer", async () => (await window.text("said")) === "It waited, and goes on.");
    await eventually("the end", async () => (await window.text("done")) === "end_turn\n");
    await window.status(/ready/);
    const events = (await window.text("events")).trim().split("\n");
    assert.ok(events.filter((line) => line.endsWith("text_chunk")).length > 1, "it came in pieces");
});

test("a page that was thrown away comes back with its session, also after a reload", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    const session = await window.openChat();
    await window.prompt("hello");
    await eventually("the end", async () => (await window.text("done")) === "end_turn\n");
    await window.ask("agent/draft/set", { text: "half a thought" });

    await window.command("workbench.view.explorer");
    await window.page.locator("iframe.webview.ready").waitFor({ state: "detached" });
    assert.equal(await window.openChat(), session);
    await eventually("what was said", async () => /Hello from the scripted model/.test(await window.text("said")));

    await window.reload();
    assert.equal(await window.openChat(), session);
    await eventually("the draft", async () => (await window.text("draft")) === "half a thought");
});

test("the key takes the selection along, and the same key goes back", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one two three\n" });
    await window.openChat();
    await window.edit("a.txt");
    await window.page.keyboard.press("Control+Home");
    await window.page.keyboard.press("Control+Shift+ArrowRight");
    // The page's word that it has lost the focus is there with the answer.
    await window.act("editorContext", {});
    await window.page.keyboard.press("Control+'");
    const line = await eventually("the selection", async () => {
        const commands = (await window.text("commands")).trim().split("\n");
        return commands.find((command) => command.includes("addSelection"));
    });
    const { part } = JSON.parse(line);
    assert.match(part.uri, /a\.txt$/);
    assert.match(part.text, /^one ?$/);
    assert.deepEqual(part.range.start, { line: 0, character: 0 });
    await eventually("the view has the focus", () => window.page_((body) => body.ownerDocument.hasFocus()));
    await window.act("editorContext", {});
    await window.page.keyboard.press("Control+'");
    await window.page.locator(".monaco-editor.focused").first().waitFor();
});

test("the page knows the editor, and has what it shows for a prompt", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\ntwo\n" });
    await window.openChat();
    await window.edit("a.txt");
    await window.page.keyboard.press("Control+Home");
    await window.page.keyboard.press("Shift+ArrowDown");
    const state = await eventually("the editor in the state", async () => {
        const { editor } = JSON.parse(await window.text("state"));
        return editor?.path === "a.txt" && editor.range.end.line === 1 && editor;
    });
    assert.deepEqual(state.range, { start: { line: 0, character: 0 }, end: { line: 1, character: 0 } });
    const { result } = await window.act("editorContext", {});
    assert.equal(result.selectedText, "one\n");
    assert.equal(result.openUris.length, 1);
});

test("text is copied, inserted and opened where the user asked for it", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await window.openChat();
    await window.edit("a.txt");
    await window.page.keyboard.press("Control+End");
    await eventually("the cursor is told", async () => JSON.parse(await window.text("state")).editor?.range.start.line === 1);
    assert.equal((await window.act("insert", { text: "inserted" })).error, undefined);
    assert.equal(await window.buffer("a.txt"), "one\ninserted");
    await window.act("openText", { title: "out/../put", text: "all of it" });
    const shown = await window.run((vscode) => {
        const { document } = vscode.window.activeTextEditor;
        return { scheme: document.uri.scheme, path: document.uri.path, text: document.getText() };
    });
    assert.deepEqual(shown, { scheme: "kode-text", path: "/out .. put", text: "all of it" });
});

test("a text that was copied from a document is found there, and one that could be from two places is not", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\ntwo\nthree\nfour\none\ntwo\n" });
    await window.openChat();
    await window.edit("a.txt");
    await window.page.keyboard.press("Control+Home");
    const find = async (text) => (await window.act("findCopied", { text })).result;
    const only = await find("two\nthree\n");
    assert.match(only.uri, /a\.txt$/);
    assert.deepEqual(only.range, { start: { line: 1, character: 0 }, end: { line: 3, character: 0 } });
    assert.equal(await find("one\ntwo\n"), null, "it stands there twice");
    assert.equal(await find("not\nthere\n"), null);
    await window.page.keyboard.press("Shift+ArrowDown");
    await window.page.keyboard.press("Shift+ArrowDown");
    const selected = await find("one\ntwo\n");
    assert.deepEqual(selected.range.start, { line: 0, character: 0 }, "the selection says which of the two");
});

test("two pages show two sessions, and a stop means the one that was used last", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await window.openChat();
    await window.command("kode.session.newInEditor");
    const tabs = () =>
        window.run((vscode) => vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs.map(({ label }) => label)));
    await eventually("the tab", async () => (await tabs()).includes("Kode"));
    await eventually("two pages", async () => (await window.page.locator("iframe.webview.ready").count()) === 2);
});
