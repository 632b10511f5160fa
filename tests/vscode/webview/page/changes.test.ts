// The user's acts on code and changes from the page: code that is applied, proposals that are made or dropped place by
// place, and why something was undone.
//
// Rule: what came of it is looked for in the files and in what the model reads.

import assert from "node:assert/strict";
import test from "node:test";

import type { ChatPage } from "../lib/host";
import { changing, numbered } from "../lib/programs";
import { call, text, type Program, type Project } from "../lib/project";
import type { Server } from "../lib/server";
import { inWorld, useBrowser } from "../lib/world";

useBrowser();

const lines = numbered(20);
const plain: Program = { steps: [{ content: [text("Answer to {{prompt}}")] }] };
const code: Program = {
    when: "^code",
    steps: [{ content: [text("Here:\n\n```\nline 2\nthe third\nline 4\n```\n")] }],
};
const twoPlaces = changing("^edit", "a.txt", { 2: "second", 15: "fifteenth" }, "It was seen.");

/** The editor's selection: some whole lines of a file, from 0. */
const selected = (project: Project, first: number, last: number) => ({
    uri: new URL(`file://${project.path("a.txt")}`).href,
    range: { start: { line: first, character: 0 }, end: { line: last + 1, character: 0 } },
    text: lines
        .split(/(?<=\n)/)
        .slice(first, last + 1)
        .join(""),
});

test("code is shown as a diff before it takes the place of what is selected, and is reviewed like other changes", () =>
    inWorld({ programs: [code, plain], files: { "a.txt": lines } }, async ({ chat, project }) => {
        await chat.say("code");
        await chat.page.waitForSelector(".working", { state: "detached" });
        chat.answers.selection = selected(project, 1, 3);
        const block = chat.page.locator(".markdown pre code");
        const background = await block.evaluate((code) => getComputedStyle(code).backgroundColor);
        assert.equal(background, "rgba(0, 0, 0, 0)", "the editor's own for code is behind no line of a block");
        await chat.page.getByLabel(/^Apply:/).click();
        const card = chat.page.locator(".applying");
        await card.waitFor();
        assert.match(await card.innerText(), /a\.txt[\s\S]*−\s*line 3[\s\S]*\+\s*the third/);
        assert.equal(await card.locator(".line.removed, .line.added").count(), 2, "the other lines stay as they are");
        assert.equal(project.read("a.txt"), lines, "nothing was done yet");
        await chat.page.keyboard.press("Escape");
        await card.waitFor({ state: "detached" });

        await chat.page.getByLabel(/^Apply:/).click();
        await card.waitFor();
        await chat.page.keyboard.press("Enter");
        await card.waitFor({ state: "detached" });
        const bar = chat.page.locator(".changes");
        await bar.locator("text=1 file changed").waitFor();
        assert.equal(project.read("a.txt"), lines.replace("line 3\n", "the third\n"));
        await bar.getByLabel("Undo all").click();
        await bar.waitFor({ state: "detached" });
        assert.equal(project.read("a.txt"), lines);
    }));

/** A session in which changes of text files are shown before they are made. */
async function proposing(chat: ChatPage, server: Server): Promise<void> {
    await chat.say("begin");
    await chat.page.waitForSelector("text=Answer to begin");
    await server.request("agent/session/configure", {
        sessionId: chat.sessionId,
        mode: "acceptEdits",
        delivery: [{ glob: "*.txt", delivery: "propose" }],
    });
    await chat.page.waitForSelector(".working", { state: "detached" });
    await chat.say("edit it");
}

const proposed = (chat: ChatPage) => chat.page.locator(".card", { hasText: "waits for you" });

const long: Program = {
    when: "^long",
    steps: [
        { content: [call("Write", { file_path: "{{cwd}}/long.txt", content: numbered(2_100) })] },
        { content: [text("It is long.")] },
    ],
};

test("a change that is too long to be shown whole says so before it is allowed", () =>
    inWorld({ programs: [long] }, async ({ chat }) => {
        await chat.say("long");
        const card = chat.page.locator(".permission");
        await card.getByRole("button", { name: "Show 1941 more lines" }).waitFor();
        assert.equal(await card.locator(".diff-cut").innerText(), "The patch is too long; the rest is left out");
        await card.getByRole("button", { name: "Open in a diff editor" }).click();
        assert.match(((await chat.acted("openDiff")) as { uri: string }).uri, /long\.txt$/);
    }));

test("a place of a proposal is left out on its card, and the row in the transcript shows each place", () =>
    inWorld({ programs: [twoPlaces, plain], files: { "a.txt": lines } }, async ({ chat, project, server }) => {
        await proposing(chat, server);
        assert.equal(await chat.page.locator(".changes").count(), 0, "what is asked for is not listed as changed");
        await proposed(chat).locator(".card-line").click();
        const places = proposed(chat).locator(".proposal");
        await places.nth(1).waitFor();
        assert.match(await places.first().innerText(), /−\s*line 2[\s\S]*\+\s*second/);
        const card = chat.page.locator(".permission");
        await card.locator(".hunk-choice input").first().uncheck();
        await card.getByRole("button", { name: "Allow 1 of 2 hunks" }).click();
        await chat.page.waitForSelector("text=It was seen.");
        assert.equal(project.read("a.txt"), lines.replace("line 15\n", "fifteenth\n"));
    }));

test("what was denied stays in its card and can be allowed after all", () =>
    inWorld({ programs: [twoPlaces, plain], files: { "a.txt": lines } }, async ({ chat, project, server }) => {
        await proposing(chat, server);
        await chat.page.locator(".permission").getByText("Deny", { exact: true }).click();
        await chat.page.waitForSelector("text=It was seen.");
        const card = chat.page.locator(".card", { hasText: "denied" });
        await card.locator(".card-line").click();
        const places = card.locator(".proposal");
        assert.match(await places.first().innerText(), /−\s*line 2[\s\S]*\+\s*second/);
        await places.first().getByRole("button", { name: "Allow after all" }).click();
        await places.first().locator("text=It was allowed after all.").waitFor();
        assert.equal(project.read("a.txt"), lines.replace("line 2\n", "second\n"));
    }));

test("why a change was undone is told to the model with the next prompt", () =>
    inWorld({ programs: [twoPlaces, plain], files: { "a.txt": lines } }, async ({ chat, project }) => {
        await chat.say("edit it");
        await chat.page.locator(".permission .primary").click();
        await chat.page.waitForSelector("text=It was seen.");
        await chat.page.waitForSelector(".working", { state: "detached" });
        const bar = chat.page.locator(".changes");
        await bar.locator(".dock-open").click();
        await bar.getByLabel("Optional note to Kode").fill("both were right before");
        await bar.getByRole("button", { name: "Undo a.txt" }).click();
        await bar.waitFor({ state: "detached" });
        assert.equal(project.read("a.txt"), lines);
        await chat.say("and now");
        await chat.page.waitForSelector("text=Answer to and now");
        assert.match(await project.newestRequest(), /both were right before/);
    }));

test("what a code action asks is a prompt of the session that is shown, and what is being written stays", () =>
    inWorld({ programs: [plain], files: { "a.txt": lines } }, async ({ chat, project }) => {
        await chat.prompt.fill("half a thought");
        const input = [
            { type: "text" as const, text: "Explain the selected code." },
            { type: "selection" as const, ...selected(project, 4, 5) },
        ];
        await chat.command({ name: "ask", input });
        await chat.page.waitForSelector("text=Answer to Explain");
        assert.match(await project.newestRequest(), /line 5\\nline 6/);
        assert.equal(await chat.prompt.inputValue(), "half a thought");
    }));
