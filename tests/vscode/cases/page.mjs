// The chat as users have it, in the real workbench: the page and the host together.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { eventually, test } from "../lib/runner.mjs";

/** Opens the chat with the key and waits for its prompt. */
async function chat(window) {
    await window.ready();
    await window.command("kode.chat.focus");
    const prompt = window.chat.getByRole("textbox", { name: "Prompt" });
    await prompt.waitFor({ timeout: 30_000 });
    await hasFocus(prompt);
    return prompt;
}

/** Waits until the keyboard is in the prompt. */
const hasFocus = (prompt) =>
    eventually("the prompt has the focus", () =>
        prompt.evaluate((box) => box.ownerDocument.hasFocus() && box === box.ownerDocument.activeElement),
    );

test("a prompt that is typed into the chat streams its answer", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await chat(window);
    await window.page.keyboard.type("hello");
    await window.page.keyboard.press("Enter");
    await window.chat.getByText("Hello from the scripted model, piece by piece.").first().waitFor();
    await window.status(/ready/);
    await window.shot("chat-answer");
    const refused = window.console.filter((line) => /Content Security Policy/.test(line) && /webview/.test(line));
    assert.deepEqual(refused, [], "the page needs nothing that its policy refuses");
});

test("a session in a git worktree is begun by a command, and its sandbox profile chosen in a list", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await chat(window);
    window.git("init", "--quiet");
    window.git("add", ".");
    window.git("-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--quiet", "--allow-empty", "-m", "begin");
    await window.command("kode.session.newInWorktree");
    await window.chat.getByText("kode-ls/ses_").waitFor();
    // The new session takes the keyboard when it is drawn, and a list that is open then closes.
    await eventually("the profile is chosen", async () => {
        await window.command("kode.session.sandbox");
        await window.page.locator(".quick-input-list-row", { hasText: "read-only" }).click({ timeout: 3_000 });
        return true;
    });
    await window.chat.getByRole("button", { name: "Sandbox: read-only" }).waitFor();
    await window.shot("worktree");
});

test("one can type and send before there is a server, and the first that comes takes it", async (workbench) => {
    const mute = path.join(workbench.box, "mute");
    fs.writeFileSync(mute, "#!/bin/sh\nexec cat >/dev/null\n", { mode: 0o755 });
    const window = await workbench.open({ "a.txt": "one\n" }, { "kode.server.path": mute });
    await window.status(/Starting the server/);
    await window.command("kode.chat.focus");
    const prompt = window.chat.getByRole("textbox", { name: "Prompt" });
    await hasFocus(prompt);
    await window.page.keyboard.type("hello");
    await window.page.keyboard.press("Enter");
    await window.chat.getByText("Will be sent when the server is ready.", { exact: true }).waitFor();
    // Open prompts are there again when the view was hidden meanwhile.
    await window.command("workbench.view.explorer");
    await window.page.locator("iframe.webview.ready").waitFor({ state: "detached" });
    await window.command("kode.chat.focus");
    await eventually("the words are there again", async () => (await prompt.inputValue()) === "hello");
    await prompt.press("Enter");
    await window.run((vscode) =>
        vscode.workspace
            .getConfiguration("kode")
            .update("server.path", undefined, vscode.ConfigurationTarget.Workspace),
    );
    await window.chat.getByText("Hello from the scripted model, piece by piece.").first().waitFor({ timeout: 60_000 });
    assert.equal(await prompt.inputValue(), "");
});

test("what is typed after the key goes to the chat, also while the extension host is busy", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one two three\n" });
    const prompt = await chat(window);
    await window.edit("a.txt");
    await window.page.keyboard.press("Control+Home");
    await window.page.keyboard.press("Control+Shift+ArrowRight");
    const [busy, free] = ["busy", "free"].map((name) => path.join(workbench.box, name));
    await window.run(
        (_vscode, _memory, busy, free) => {
            const fs = process.getBuiltinModule("node:fs");
            setTimeout(() => {
                fs.writeFileSync(busy, "");
                while (!fs.existsSync(free));
            });
        },
        busy,
        free,
    );
    await eventually("the host is busy", () => fs.existsSync(busy));
    try {
        await window.page.keyboard.press("Control+'");
        await hasFocus(prompt);
        await window.page.keyboard.type("why");
        assert.equal(await prompt.inputValue(), "why");
    } finally {
        fs.writeFileSync(free, "");
    }
    await window.chat.locator(".chip", { hasText: "a.txt" }).first().waitFor();
    assert.equal(await window.buffer("a.txt"), "one two three\n");
    assert.equal(await prompt.inputValue(), "why");
});

test("words of an answer can be selected by the mouse, also when the keyboard was in the editor", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await chat(window);
    await window.page.keyboard.type("hello");
    await window.page.keyboard.press("Enter");
    const answer = window.chat.getByText("Hello from the scripted model, piece by piece.").first();
    await answer.waitFor();
    await window.status(/ready/);
    await window.edit("a.txt");
    const { x, y, width, height } = await answer.boundingBox();
    await window.page.mouse.move(x + 1, y + height / 4);
    await window.page.mouse.down();
    await window.page.mouse.move(x + width / 2, y + height / 4, { steps: 4 });
    await window.page.mouse.up();
    await eventually("words are selected", () => answer.evaluate(() => /^Hello/.test(getSelection().toString())));
});

test("a permission is asked in the chat and given there", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await chat(window);
    await window.page.keyboard.type("make it");
    await window.page.keyboard.press("Enter");
    await window.status(/1 question for you/);
    await window.shot("chat-permission");
    await window.chat.getByRole("button", { name: "Allow", exact: true }).click();
    await eventually("the command ran", () => fs.existsSync(window.path("made-it")));
    await window.status(/ready/);
});

test("a chat in an editor tab comes back with its session after a reload", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await window.ready();
    await window.command("kode.session.newInEditor");
    await window.chat.getByRole("textbox", { name: "Prompt" }).fill("hello");
    await window.chat.getByRole("textbox", { name: "Prompt" }).press("Enter");
    const answer = () => window.chat.getByText("Hello from the scripted model, piece by piece.").first();
    await answer().waitFor();
    await window.status(/ready/);
    await window.reload();
    await answer().waitFor({ timeout: 60_000 });
});

test("rules and what files ask for are opened by a command", async (workbench) => {
    const settings = { permissions: { allow: ["Bash(make:*)"] } };
    const window = await workbench.open({ "a.txt": "one\n", ".kode/settings.json": JSON.stringify(settings) });
    await chat(window);
    await window.page.keyboard.type("hello");
    await window.page.keyboard.press("Enter");
    await window.chat.getByText("Hello from the scripted model, piece by piece.").first().waitFor();
    await window.command("kode.permission.rules");
    const waiting = window.chat.locator(".trust-row", { hasText: "permissions.allow" });
    await waiting.getByText("Bash(make:*)").waitFor();
    await window.shot("chat-rules");
    await waiting.getByRole("button", { name: "Approve permissions.allow" }).click();
    await window.chat.locator(".rule-row", { hasText: "Bash(make:*)" }).waitFor();
});

test("the chat's pages survive being hidden, in the side bar and in a tab", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await chat(window);
    await window.page.keyboard.type("hello");
    await window.page.keyboard.press("Enter");
    const answer = () => window.chat.getByText("Hello from the scripted model, piece by piece.").first();
    await answer().waitFor();
    await window.command("workbench.view.explorer");
    await window.page.locator("iframe.webview.ready").waitFor({ state: "detached" });
    await window.command("kode.chat.focus");
    await answer().waitFor();
    // And in a tab: behind another editor, and back.
    await window.command("kode.chat.openInEditor");
    await window.command("workbench.view.explorer");
    await eventually("only the tab is shown", async () => (await window.page.locator("iframe.webview.ready").count()) === 1);
    await answer().waitFor();
    await window.edit("a.txt");
    await window.page.locator("iframe.webview.ready").waitFor({ state: "detached" });
    await window.command("workbench.action.previousEditor");
    await answer().waitFor();
});

test("code of an answer takes the place of what is selected once it was looked at", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\ntwo\nthree\n" });
    await window.edit("a.txt");
    await window.run((vscode) => {
        vscode.window.activeTextEditor.selection = new vscode.Selection(1, 0, 3, 0);
    });
    await chat(window);
    await window.page.keyboard.type("show code");
    await window.page.keyboard.press("Enter");
    await window.status(/ready/);
    await window.chat.getByRole("button", { name: /^Apply:/ }).click();
    const card = window.chat.getByRole("region", { name: /^Replace the selection/ });
    await card.waitFor();
    await window.shot("chat-apply");
    assert.equal(await window.buffer("a.txt"), "one\ntwo\nthree\n", "nothing was done yet");
    await card.getByRole("button", { name: "Replace", exact: true }).click();
    await eventually("the code is there", async () => (await window.buffer("a.txt")) === "one\nTWO\nTHREE\n");
    await window.chat.getByText("1 file changed").waitFor();
});

test("a code action on a selection is answered in the chat, which it opens", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\ntwo\n" });
    await window.ready();
    await window.edit("a.txt");
    await window.run(async (vscode) => {
        const { uri } = vscode.window.activeTextEditor.document;
        const range = new vscode.Range(0, 0, 1, 0);
        const found = await vscode.commands.executeCommand("vscode.executeCodeActionProvider", uri, range);
        const { command } = found.find(({ title }) => title === "Kode: Explain the selection");
        await vscode.commands.executeCommand(command.command, ...command.arguments);
    });
    await window.chat.getByText("It counts, and that is all.").first().waitFor({ timeout: 60_000 });
});

test("code has the colors of the editor's theme, by chunks that the policy of the page allows", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await chat(window);
    await window.page.keyboard.type("show colors");
    await window.page.keyboard.press("Enter");
    const keyword = window.chat.locator(".t-keyword", { hasText: "const" });
    await keyword.waitFor();
    const [color, ofTheme] = await keyword.evaluate((element) => {
        const box = element.ownerDocument.createElement("i");
        box.style.color = element.ownerDocument.documentElement.style.getPropertyValue("--kode-token-keyword");
        element.ownerDocument.body.append(box);
        return [getComputedStyle(element).color, getComputedStyle(box).color];
    });
    assert.match(ofTheme, /^rgb/);
    assert.equal(color, ofTheme);
    await window.command("kode.session.list");
    await window.chat.locator(".session").first().waitFor();
    await window.shot("chat-sessions");
    const refused = window.console.filter((line) => /Content Security Policy/.test(line) && /webview/.test(line));
    assert.deepEqual(refused, []);
});

/** The files below a folder that have a text in them. */
function filesWith(folder, text) {
    return fs
        .readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => path.join(entry.parentPath, entry.name))
        .filter((file) => fs.readFileSync(file).includes(text));
}

test("a key is added in the editor after a trial, reaches the server, and stands in no setting and no log", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await chat(window);
    const { page } = window;
    const title = (text) => page.locator(".quick-input-title", { hasText: text }).waitFor();
    await window.command("kode.key.add");
    await title("Add a Model");
    await page.keyboard.type("compatible");
    await page.keyboard.press("Enter");
    await title("Address");
    await page.keyboard.type(`${workbench.modelUrl}/v1`);
    await page.keyboard.press("Enter");
    const key = "sk-test-0123456789abcdef";
    await page.locator(".quick-input-widget input[type=password]").waitFor();
    await page.keyboard.type(key);
    await window.shot("chat-key");
    await page.keyboard.press("Enter");
    // The model that answered is the first; another one is chosen.
    await page.locator(".quick-input-list-row", { hasText: "answered" }).waitFor();
    await window.shot("chat-key-models");
    await page.keyboard.type("small");
    await page.keyboard.press("Enter");
    await eventually("the model is offered", async () => {
        await window.command("kode.session.model");
        await window.chat.locator(".menu-item", { hasText: "small-test" }).waitFor({ timeout: 2_000 });
        return true;
    });
    await window.shot("chat-models");
    await page.keyboard.press("Escape");
    await window.command("kode.key.manage");
    await page.locator(".quick-input-list", { hasText: "key …cdef" }).waitFor();
    await page.keyboard.press("Escape");
    for (const folder of ["state", "ud", "home", "w"]) assert.deepEqual(filesWith(path.join(workbench.box, folder), key), []);
});

test("a trial that fails says why and leads back to the part that can be changed", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await chat(window);
    const { page } = window;
    await window.command("kode.key.add");
    await page.locator(".quick-input-title", { hasText: "Add a Model" }).waitFor();
    await page.keyboard.type("compatible");
    await page.keyboard.press("Enter");
    await page.locator(".quick-input-title", { hasText: "Address" }).waitFor();
    await page.keyboard.type("http://127.0.0.1:1/v1");
    await page.keyboard.press("Enter");
    await page.locator(".quick-input-widget input[type=password]").waitFor();
    await page.keyboard.press("Enter");
    const failed = page.locator(".notification-list-item", { hasText: "did not answer" });
    await failed.waitFor();
    await window.shot("chat-key-failed");
    await failed.getByRole("button", { name: "Change the Options" }).click();
    await page.locator(".quick-input-title", { hasText: "Address" }).waitFor();
    await page.keyboard.press("Escape");
});

test("a model that runs on this machine is chosen from the list of models, and answers", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await chat(window);
    await window.command("kode.session.model");
    await window.chat.locator(".menu-item", { hasText: "gemma-test:4b" }).click();
    await window.chat.locator(".composer-foot", { hasText: "gemma-test:4b" }).waitFor();
    await window.shot("chat-local-model");
    await window.chat.getByRole("textbox", { name: "Prompt" }).fill("hello");
    await window.chat.getByRole("textbox", { name: "Prompt" }).press("Enter");
    await window.chat.getByText("Hello from the scripted model, piece by piece.").first().waitFor();
});

test("a program that is not found leads to the settings of the machine it runs on", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" }, { "kode.server.path": "/nowhere/kode-ls" });
    await window.command("kode.chat.focus");
    await window.chat.getByText("The server did not start").waitFor();
    await window.shot("chat-no-server");
    await window.chat.getByRole("button", { name: "Settings" }).click();
    await window.page.locator(".settings-editor", { hasText: "Server: Path" }).waitFor();
    await window.shot("settings-machine");
});

test("the first of the first steps is ticked where the server runs", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await window.ready();
    await window.command("kode.server.walkthrough");
    const steps = window.page.locator(".getting-started-step");
    await steps.first().waitFor();
    await steps.first().locator(".codicon-getting-started-step-checked").waitFor();
    await window.shot("first-steps");
});
