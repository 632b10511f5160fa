// Decisions beside the conversation: parts of a change, rules, trust requests, checkpoints; and
// what commands say.
//
// Rule: everything is done as a person does it, and what came of it is looked for where it counts: in files and at the
// server.

import assert from "node:assert/strict";
import test from "node:test";

import type { ChatPage } from "../lib/host";
import { changing, numbered } from "../lib/programs";
import { text, type Program } from "../lib/project";
import { inWorld, useBrowser } from "../lib/world";

useBrowser();

const lines = numbered(20);
const threePlaces = changing("^edit", "a.txt", { 2: "second", 4: "fourth", 15: "fifteenth" }, "It is changed.");
const plain: Program = { steps: [{ content: [text("Answer to {{prompt}}")] }] };

test("hunks of a change can be left out before it is allowed", () =>
    inWorld({ programs: [threePlaces], files: { "a.txt": lines } }, async ({ project, chat }) => {
        await chat.say("edit it");
        const card = chat.page.locator(".permission");
        const boxes = card.locator(".hunk-choice input");
        await boxes.nth(2).waitFor();
        assert.equal(await boxes.count(), 3);
        assert.equal(await card.locator(".hunk").count(), 2, "two of them stand in one part of the diff");
        assert.equal(await card.locator(".hunk").first().locator(".hunk-choice input").count(), 2);
        await card.getByRole("button", { name: "Open in a diff editor" }).click();
        assert.match(((await chat.acted("openDiff")) as { uri: string }).uri, /workspace\/a\.txt$/);
        await card.getByLabel(/^line 4/).uncheck();
        assert.equal(await card.locator(".scopes").count(), 0, "a standing yes speaks of whole changes");
        await card.getByRole("button", { name: "Allow 2 of 3 hunks" }).click();
        await chat.page.waitForSelector("text=It is changed.");
        const expected = lines.replace("line 2\n", "second\n").replace("line 15\n", "fifteenth\n");
        assert.equal(project.read("a.txt"), expected);
    }));

test("a change of which every hunk is left out cannot be allowed", () =>
    inWorld({ programs: [threePlaces], files: { "a.txt": lines } }, async ({ project, chat }) => {
        await chat.say("edit it");
        const card = chat.page.locator(".permission");
        await card.locator(".hunk-choice input").nth(2).waitFor();
        for (const box of await card.locator(".hunk-choice input").all()) await box.uncheck();
        assert.equal(await card.locator(".primary").isDisabled(), true);
        await chat.command({ name: "focusWaiting" });
        await chat.page.keyboard.press("Enter");
        assert.equal(await card.count(), 1);
        await chat.page.keyboard.press("Escape");
        await chat.page.waitForSelector("text=It is changed.");
        assert.equal(project.read("a.txt"), lines);
    }));

test("a rule is written, listed with where it stands, and removed again", () =>
    inWorld({ programs: [plain] }, async ({ chat, server }) => {
        await chat.say("begin");
        await chat.page.waitForSelector("text=Answer to begin");
        await chat.command({ name: "showRules" });
        const pane = chat.page.getByRole("region", { name: "Rules and trust" });
        await pane.getByLabel("Text of the rule").selectOption("deny");
        await pane.getByLabel("The rule", { exact: true }).fill("Bash(rm:*)");
        await pane.getByRole("button", { name: "Add" }).click();
        const row = pane.locator(".rule-row", { hasText: "Bash(rm:*)" });
        await row.waitFor();
        assert.match(await row.innerText(), /Deny[\s\S]*local: settings\.local\.json/);
        const { sessionId } = chat;
        const listed = async () =>
            (await server.request("agent/permission/rules", { sessionId })).rules.map(({ rule }) => rule);
        assert.ok((await listed()).includes("Bash(rm:*)"));
        await row.getByRole("button", { name: "Remove Deny Bash(rm:*)" }).click();
        await row.waitFor({ state: "detached" });
        assert.ok(!(await listed()).includes("Bash(rm:*)"));
        await chat.page.keyboard.press("Escape");
        await pane.waitFor({ state: "detached" });
        assert.equal(await chat.prompt.evaluate((element) => element === document.activeElement), true);
    }));

const hooks = {
    hooks: { PreToolUse: [{ matcher: "Bash", hooks: [{ type: "command", command: "echo \u202e<b>hidden</b>" }] }] },
    permissions: { allow: ["Bash(make:*)"] },
};

test("what files of the workspace ask for is shown exactly before it is approved, and can be taken back", () =>
    inWorld(
        { programs: [plain], files: { ".kode/settings.json": JSON.stringify(hooks) } },
        async ({ chat, server }) => {
            await chat.say("begin");
            await chat.page.waitForSelector("text=Answer to begin");
            const banner = chat.page.locator(".trust-banner");
            await banner.waitFor();
            assert.match(await banner.innerText(), /1 hook/);
            await banner.getByRole("button", { name: "Review" }).click();
            const pane = chat.page.getByRole("region", { name: "Rules and trust" });
            const hook = pane.locator(".trust-row", { hasText: "hooks.PreToolUse" });
            await hook.waitFor();
            assert.match(await hook.locator("pre").innerText(), /echo ⟨U\+202E⟩<b>hidden<\/b>/);
            assert.equal(await hook.locator("b").count(), 0);
            assert.match(await hook.innerText(), /settings\.json/);
            const trust = () => server.request("agent/trust/list", { sessionId: chat.sessionId });
            const before = await trust();
            await hook.getByRole("button", { name: "Approve hooks.PreToolUse" }).click();
            const approved = pane.locator("section", { hasText: "Approved by you" }).locator(".trust-row");
            await approved.waitFor();
            const after = await trust();
            assert.equal(after.waiting.length, before.waiting.length - 1, "nothing else was approved");
            assert.deepEqual(
                after.approved.map(({ key }) => key),
                ["hooks.PreToolUse"],
            );
            await approved.getByRole("button", { name: /Revoke/ }).click();
            await approved.waitFor({ state: "detached" });
            assert.deepEqual((await trust()).approved, []);
        },
    ));

test("what was changed after it was shown is not approved", () =>
    inWorld(
        { programs: [plain], files: { ".kode/settings.json": JSON.stringify(hooks) } },
        async ({ chat, server, project }) => {
            await chat.say("begin");
            await chat.page.waitForSelector("text=Answer to begin");
            await chat.command({ name: "showRules" });
            const pane = chat.page.getByRole("region", { name: "Rules and trust" });
            const approve = pane.getByRole("button", { name: "Approve hooks.PreToolUse" });
            await approve.waitFor();
            // The click goes out with the digest of the text as it is shown, whatever is in the file by then.
            const digest = await pane.locator(".trust-row", { hasText: "hooks.PreToolUse" }).getAttribute("data-digest");
            const other = JSON.stringify(hooks).replace("hidden", "other");
            project.write(".kode/settings.json", other);
            await server.request("agent/trust/approve", {
                sessionId: chat.sessionId,
                digests: [digest ?? ""],
            });
            const { approved } = await server.request("agent/trust/list", { sessionId: chat.sessionId });
            assert.deepEqual(approved, []);
            await pane.locator("pre", { hasText: "other" }).waitFor();
        },
    ));

test("checkpoints are listed, looked at and gone back to", () =>
    inWorld({ programs: [threePlaces, plain], files: { "a.txt": lines } }, async ({ project, chat, server }) => {
        await chat.say("hello");
        await chat.page.waitForSelector("text=Answer to hello");
        await server.request("agent/session/configure", { sessionId: chat.sessionId, mode: "acceptEdits" });
        await chat.say("edit it");
        await chat.page.waitForSelector("text=It is changed.");
        await chat.page.waitForSelector(".working", { state: "detached" });
        await chat.command({ name: "showCheckpoints" });
        const pane = chat.page.getByRole("region", { name: "Checkpoints" });
        const rows = pane.locator(".checkpoint-row");
        await rows.nth(1).waitFor();
        assert.match(await rows.first().innerText(), /edit it[\s\S]*1 file changed/);
        assert.match(await rows.nth(1).innerText(), /hello[\s\S]*No file was changed/);
        await rows.first().getByRole("button", { name: /edit it/ }).click();
        await rows.first().locator("summary", { hasText: "a.txt" }).waitFor();
        assert.equal(project.read("a.txt").includes("second"), true, "looking changes nothing");
        await rows.first().getByRole("button", { name: "Go back" }).click();
        await pane.waitFor({ state: "detached" });
        await chat.page.waitForSelector("text=Answer to hello");
        await chat.page.waitForSelector("text=It is changed.", { state: "detached" });
        assert.equal(project.read("a.txt"), lines);
    }));

/** Pastes a text into the prompt, as the editor's clipboard has it. */
const paste = (chat: ChatPage, words: string) =>
    chat.prompt.evaluate((box, words) => {
        const clipboardData = new DataTransfer();
        clipboardData.setData("text/plain", words);
        box.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
    }, words);

test("code that was copied from a document is pasted as the place it is from, other lines as they are", () =>
    inWorld({ programs: [plain], files: { "a.txt": lines } }, async ({ chat, project }) => {
        const uri = new URL(`file://${project.path("a.txt")}`).href;
        const range = { start: { line: 1, character: 0 }, end: { line: 3, character: 0 } };
        const copied = "line 2\nline 3\n";
        chat.answers.findCopied = { uri, range, text: copied };
        await chat.prompt.fill("look: ");
        await paste(chat, copied);
        await chat.page.locator(".chip", { hasText: "a.txt" }).waitFor();
        assert.equal(await chat.prompt.inputValue(), "look: ");
        chat.answers.findCopied = null;
        await paste(chat, "two\nlines");
        await chat.page.waitForFunction(
            () => document.querySelector<HTMLTextAreaElement>("textarea.prompt")?.value === "look: two\nlines",
        );
        await paste(chat, "one line");
        assert.equal(
            chat.actions.filter(({ action }) => action === "findCopied").length,
            2,
            "one line is never looked for",
        );
    }));

test("a page remembers the session it shows, for a tab that is made anew", () =>
    inWorld({ programs: [plain] }, async ({ chat }) => {
        await chat.say("begin");
        await chat.page.waitForSelector("text=Answer to begin");
        const kept = () => chat.page.evaluate(() => (window as unknown as { keptState: unknown }).keptState);
        assert.deepEqual(await kept(), { sessionId: chat.sessionId });
        await chat.command({ name: "newSession" });
        assert.deepEqual(await kept(), {});
    }));

test("what a command says is shown, also that it was not carried out", () =>
    inWorld({ programs: [plain] }, async ({ chat }) => {
        await chat.say("/status");
        const said = chat.page.locator(".command-output");
        await said.waitFor();
        assert.match(await said.innerText(), /\/status/);
        await chat.say("/model there-is-none");
        await chat.page.locator(".command-output.failed").waitFor();
    }));

test("a command that begins another session has that one shown", () =>
    inWorld({ programs: [plain] }, async ({ chat }) => {
        await chat.say("begin");
        // The list of sessions quotes the answer too, also below the empty session.
        await chat.page.waitForSelector(".row >> text=Answer to begin");
        const before = chat.sessionId;
        await chat.say("/clear");
        await chat.page.waitForSelector(".row >> text=Answer to begin", { state: "detached" });
        // The page tells the host only once it shows the other one.
        await chat.told(() => chat.sessionId !== before, "another session");
    }));
