// The chat as users have it, in the real workbench: the page and the host together.
import assert from "node:assert/strict";
import fs from "node:fs";
import { eventually, test } from "../lib/runner.mjs";

/** Opens the chat with the key and waits for its prompt. */
async function chat(window) {
    await window.ready();
    await window.command("kode.chat.focus");
    const prompt = window.chat.getByRole("textbox", { name: "Prompt" });
    await prompt.waitFor({ timeout: 30_000 });
    await eventually("the prompt has the focus", () => prompt.evaluate((box) => box === box.ownerDocument.activeElement));
    return prompt;
}

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
    const card = window.chat.getByRole("region", { name: /^Put this code in the place/ });
    await card.waitFor();
    await window.shot("chat-apply");
    assert.equal(await window.buffer("a.txt"), "one\ntwo\nthree\n", "nothing was done yet");
    await card.getByRole("button", { name: "Apply", exact: true }).click();
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
