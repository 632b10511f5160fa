// The messages between page, host and server: prompts, events, context, the editor's acts.
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
    // The first piece comes with its item; a slow client gets all others as one event.
    assert.ok(events.some((line) => line.endsWith("text_chunk")), "the rest came as a piece");
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

test("a file that was closed or deleted goes along with no prompt", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\ntwo\n", "b.txt": "one\n" });
    await window.openChat();
    const shown = async () => JSON.parse(await window.text("state")).editor?.path;
    const goesAlong = async () => (await window.act("editorContext", {})).result.activeUri;
    await window.edit("a.txt");
    await eventually("the editor in the state", async () => (await shown()) === "a.txt");
    assert.ok((await goesAlong()).endsWith("/a.txt"));
    await window.command("workbench.action.closeActiveEditor");
    await eventually("no editor in the state", async () => (await shown()) === undefined);
    assert.equal(await goesAlong(), undefined);

    await window.edit("b.txt");
    await eventually("the other editor in the state", async () => (await shown()) === "b.txt");
    await window.run(async (vscode, _, file) => {
        const edit = new vscode.WorkspaceEdit();
        edit.deleteFile(vscode.Uri.file(file));
        await vscode.workspace.applyEdit(edit);
    }, window.path("b.txt"));
    await eventually("no deleted file in the state", async () => (await shown()) === undefined);
    assert.equal(await goesAlong(), undefined);
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
    const inView = await window.openChat();
    await window.prompt("hold view");
    await workbench.waiting("hold-view");
    await window.command("kode.session.newInEditor");
    const frames = window.page.locator("iframe.webview.ready");
    await eventually("two pages", async () => (await frames.count()) === 2);
    const pages = [0, 1].map((index) => frames.nth(index).contentFrame().frameLocator("iframe#active-frame").locator("body"));
    const sessions = await Promise.all(
        pages.map((page) => eventually("its session", () => page.evaluate(() => globalThis.session()))),
    );
    assert.equal(new Set(sessions).size, 2);
    const tab = pages[sessions[0] === inView ? 1 : 0];
    await tab.evaluate(() =>
        globalThis.ask("agent/turn/start", {
            sessionId: globalThis.session(),
            input: [{ type: "text", text: "hold tab" }],
        }),
    );
    await workbench.waiting("hold-tab");
    const ended = (page) => page.evaluate((body) => body.querySelector("#done")?.textContent ?? "");
    // An act for its user makes a page the last used one.
    await tab.evaluate(() => globalThis.send({ type: "host", action: "editorContext", payload: {} }));
    await window.command("kode.session.stop");
    await eventually("the tab's turn has ended", async () => (await ended(tab)) === "cancelled\n");
    const view = pages[sessions[0] === inView ? 0 : 1];
    assert.equal(await ended(view), "", "the other one goes on");
    await workbench.release("hold-view");
    await eventually("the view's turn has ended", async () => (await ended(view)) === "end_turn\n");
});

test("a code action asks in the chat, about the problem it stands at", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\ntwo\n" });
    await window.openChat();
    await window.edit("a.txt");
    const titles = await window.run(async (vscode, memory) => {
        const { uri } = vscode.window.activeTextEditor.document;
        memory.problems = vscode.languages.createDiagnosticCollection("test");
        const range = new vscode.Range(1, 0, 1, 3);
        memory.problems.set(uri, [new vscode.Diagnostic(range, "two is too many", vscode.DiagnosticSeverity.Error)]);
        memory.actions = await vscode.commands.executeCommand("vscode.executeCodeActionProvider", uri, range);
        return memory.actions.map(({ title }) => title);
    });
    assert.ok(titles.includes("Kode: Fix: two is too many"), titles.join(", "));
    await window.run((vscode, memory) => {
        const { command } = memory.actions.find(({ title }) => title === "Kode: Fix: two is too many");
        return void vscode.commands.executeCommand(command.command, ...command.arguments);
    });
    const line = await eventually("the command", async () =>
        (await window.text("commands")).split("\n").find((command) => command.includes('"ask"')),
    );
    const { input } = JSON.parse(line);
    assert.deepEqual(input[0], { type: "text", text: "Fix this problem at its cause." });
    assert.match(input[1].uri, /a\.txt$/);
    assert.deepEqual({ ...input[1], uri: "" }, {
        type: "diagnostics",
        uri: "",
        message: "error: two is too many",
        range: { start: { line: 1, character: 0 }, end: { line: 1, character: 3 } },
    });
});

test("text takes the place of what was selected as a change to review, and not where there is another text by now", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\ntwo\nthree\n" });
    const sessionId = await window.openChat();
    await window.edit("a.txt");
    await window.run((vscode) => {
        vscode.window.activeTextEditor.selection = new vscode.Selection(1, 0, 2, 0);
    });
    const place = await eventually("the selection", async () => (await window.act("selection", {})).result);
    assert.equal(place.text, "two\n");
    assert.equal((await window.act("replace", { sessionId, place, text: "TWO\n" })).error, undefined);
    assert.equal(await window.buffer("a.txt"), "one\nTWO\nthree\n");
    await window.page.locator(".monaco-editor .dirty-diff-glyph").first().waitFor();
    const { error } = await window.act("replace", { sessionId, place, text: "other\n" });
    assert.match(error.message, /a\.txt was not changed: its text has changed since/);
    const elsewhere = { ...place, uri: "vscode-userdata:/User/settings.json" };
    assert.match((await window.act("replace", { sessionId, place: elsewhere, text: "x" })).error.message, /was not changed/);
    assert.equal(await window.buffer("a.txt"), "one\nTWO\nthree\n");
});
