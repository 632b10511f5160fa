// The card that asks before a call runs: the allowed text is in sight, in every size of the view and by the keyboard
// alone.
//
// Rule: "in sight" is what the pointer would hit. A card that is drawn behind or outside of something is not in sight.

import assert from "node:assert/strict";
import test from "node:test";

import type { Locator } from "playwright-core";

import type { ChatPage } from "../lib/host";
import { call, text, type Program } from "../lib/project";
import { inWorld, useBrowser } from "../lib/world";

useBrowser();

const RISKY = "rm -rf build dist && git push --force origin main";

const edits: Program = {
    when: "^change four",
    steps: [
        { content: ["a", "b", "c", "d"].map((name) => call("Write", { file_path: `{{cwd}}/src/${name}.txt`, content: "new\n" })) },
        { content: [text("Four files are changed.")] },
    ],
};
const risky: Program = { when: "^risky", steps: [{ content: [call("Bash", { command: RISKY })] }, { content: [text("It ran.")] }] };
const LONG = Array.from({ length: 60 }, (_, line) => `echo step ${line} && \\`).join("\n") + "\ntouch made";
const long: Program = { when: "^long", steps: [{ content: [call("Bash", { command: LONG })] }, { content: [text("It ran.")] }] };
const twice: Program = {
    when: "^twice",
    steps: [
        { content: [call("Bash", { command: "touch first" })] },
        { content: [call("Bash", { command: "touch second" })] },
        { content: [text("Both ran.")] },
    ],
};
const both: Program = {
    when: "^both",
    steps: [
        { content: ["a", "b"].map((name) => call("Read", { file_path: `{{cwd}}/${name}.txt` })) },
        { content: [call("Edit", { file_path: "{{cwd}}/a.txt", old_string: "one", new_string: "two" })] },
        { content: [call("Edit", { file_path: "{{cwd}}/b.txt", old_string: "one", new_string: "two" })] },
        { content: [text("Both are changed.")] },
    ],
};
const described: Program = {
    when: "^described",
    steps: [{ content: [call("Bash", { command: RISKY, description: "Clear the build and publish" })] }, { content: [text("It ran.")] }],
};
const programs = [edits, risky, long, twice, both, described];

/** Whether the pointer would hit an element at a point of it, from its left and top. */
const isHit = (place: Locator, at: { x: number; y: number }) =>
    place.evaluate((element, at) => {
        const { left, top } = element.getBoundingClientRect();
        const hit = document.elementFromPoint(left + at.x, top + at.y);
        return hit !== null && element.contains(hit);
    }, at);

const isFocused = (place: Locator) => place.evaluate((element) => element === document.activeElement);

/** A session with four changed files, the list of them open and an act that can be taken back, that asks for a command. */
async function crowded(chat: ChatPage): Promise<Locator> {
    await chat.command({ name: "chooseMode" });
    await chat.page.getByRole("option", { name: /^Edit/ }).click();
    await chat.page.waitForSelector(".mode-acceptEdits");
    await chat.say("change four");
    await chat.page.waitForSelector("text=Four files are changed.");
    const bar = chat.page.locator(".changes");
    await bar.locator(".dock-open").click();
    await bar.getByRole("button", { name: "Undo src/d.txt" }).click();
    await chat.page.locator(".toast", { hasText: "Take back" }).waitFor();
    await chat.say("risky");
    const card = chat.page.locator(".permission");
    await card.waitFor();
    return card;
}

const SIZES = [
    { name: "in a side bar of 300 in a window of 900 by 700", width: 300, height: 580 },
    { name: "in the same at 200 % zoom", width: 300, height: 300 },
    { name: "in a wide and low panel", width: 900, height: 260 },
];
for (const { name, width, height } of SIZES) {
    test(`a command that is asked for and the answers to it are in sight ${name}`, () =>
        inWorld({ programs, width, height }, async ({ chat, project }) => {
            const card = await crowded(chat);
            const command = card.locator(".preview-command");
            assert.match(await command.innerText(), /rm -rf build dist && git push --force/);
            assert.equal(await isHit(command, { x: 20, y: 12 }), true, "the command is in sight");
            for (const place of [card.locator(".primary"), card.locator(".deny"), chat.page.getByLabel("Stop", { exact: true }), chat.prompt])
                assert.equal(await isHit(place, { x: 8, y: 8 }), true, `${String(place)} is in sight`);
            assert.equal(await chat.page.locator(".file-row").count(), 0, "all else is one line");
            assert.match(await chat.page.locator(".folded").innerText(), /3 files changed/);
            await chat.page.locator(".permission .primary:enabled").waitFor();
            const wide = await chat.page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
            assert.equal(wide, false, "nothing is wider than the view");
            await card.locator(".deny").click();
            await chat.page.locator(".file-row").first().waitFor();
            void project;
        }));
}

test("a command whose end was not in sight cannot be allowed, by the button or by Enter", () =>
    inWorld({ programs, width: 300, height: 580 }, async ({ chat, project }) => {
        await chat.say("long");
        const card = chat.page.locator(".permission");
        await card.getByText("Scroll to read all of it").waitFor();
        assert.equal(await card.locator(".primary").isDisabled(), true);
        for (const reach of await card.getByRole("radio").all())
            assert.equal(await isHit(reach, { x: 12, y: 12 }), true, "each choice is in sight before the end is");
        await chat.command({ name: "focusWaiting" });
        await chat.page.keyboard.press("Enter");
        await chat.page.waitForFunction(() => (document.querySelector(".prompt-body")?.scrollTop ?? 0) > 0);
        assert.equal(await card.locator(".primary").isDisabled(), true, "one page is not the end");
        await card.locator(".prompt-body").evaluate((body) => body.scrollTo(0, body.scrollHeight));
        await card.locator(".primary:enabled").waitFor();
        await chat.page.keyboard.press("Enter");
        await chat.page.waitForSelector("text=It ran.");
        assert.equal(project.read("made"), "");
    }));

test("a card names what the command does, what it is for and what confines it", () =>
    inWorld({ programs }, async ({ chat }) => {
        await chat.say("described");
        const card = chat.page.locator(".permission");
        await card.getByText("Clear the build").waitFor();
        const risks = card.getByRole("list", { name: "Risks" });
        assert.match(await risks.innerText(), /rm -rf build dist deletes folders with all they contain/);
        assert.match(await risks.innerText(), /git push --force origin main replaces history on the remote/);
        // Where no sandbox can be set up, the card tells so.
        await card.getByText(/^Runs (in the sandbox: it can change the workspace and has no network|with your permissions, outside the sandbox)\./).waitFor();
        assert.doesNotMatch(await card.innerText(), /mode default/);
    }));

test("what is squeezed to nothing cannot be allowed", () =>
    inWorld({ programs, width: 300, height: 580 }, async ({ chat }) => {
        await chat.page.setViewportSize({ width: 300, height: 60 });
        await chat.say("risky");
        const card = chat.page.locator(".permission");
        await card.waitFor();
        assert.equal(await card.locator(".primary").isDisabled(), true);
        await chat.page.setViewportSize({ width: 300, height: 580 });
        await card.locator(".primary:enabled").waitFor();
    }));

test("the keyboard goes from an answered card to the next one, and to the prompt behind the last", () =>
    inWorld({ programs }, async ({ chat, project }) => {
        await chat.say("twice");
        const card = chat.page.locator(".permission");
        await card.filter({ hasText: "touch first" }).locator(".primary:enabled").waitFor();
        await chat.command({ name: "focusWaiting" });
        await chat.page.keyboard.press("Enter");
        await card.filter({ hasText: "touch second" }).waitFor();
        await chat.page.waitForFunction(() => document.activeElement?.classList.contains("permission"));
        // A key that was still meant for the first card is ignored by the second.
        await card.evaluate((element) =>
            element.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", repeat: true, bubbles: true })),
        );
        assert.equal(await card.count(), 1);
        await chat.page.keyboard.press("Escape");
        await chat.page.waitForSelector("text=Both ran.");
        assert.equal(await isFocused(chat.prompt), true);
        assert.equal(project.read("first"), "");
    }));

test("a card that comes while the user writes takes nothing from them", () =>
    inWorld({ programs }, async ({ chat }) => {
        await chat.say("risky");
        await chat.prompt.fill("half a thought");
        await chat.page.locator(".permission").waitFor();
        assert.equal(await isFocused(chat.prompt), true);
    }));

test("the choice how far Allow reaches is one tab stop, and letters typed on the card are words to the model", () =>
    inWorld({ programs, files: { "a.txt": "one\n", "b.txt": "one\n" } }, async ({ chat }) => {
        await chat.say("both");
        const card = chat.page.locator(".permission");
        await card.locator(".primary:enabled").waitFor();
        assert.equal(await card.locator("[role=radio][tabindex='0']").count(), 1);
        await card.getByRole("radio", { name: "Only this time" }).focus();
        await chat.page.keyboard.press("ArrowRight");
        assert.equal(await isFocused(card.getByRole("radio", { name: "All edits from now on" })), true);
        await chat.command({ name: "focusWaiting" });
        await chat.page.keyboard.type("use another file");
        assert.equal(await card.locator(".tell").inputValue(), "use another file");
        await card.getByRole("button", { name: "Deny and tell" }).waitFor();
    }));

test("all edits from now on: the next one is made without asking, and the mode says so", () =>
    inWorld({ programs, files: { "a.txt": "one\n", "b.txt": "one\n" } }, async ({ chat, project }) => {
        await chat.say("both");
        const card = chat.page.locator(".permission");
        await card.getByRole("radio", { name: "All edits from now on" }).click();
        await card.getByText(/Commands, files outside the workspace and protected files still ask/).waitFor();
        await card.getByRole("button", { name: "Allow all edits from now on" }).click();
        await chat.page.waitForSelector("text=Both are changed.");
        assert.deepEqual([project.read("a.txt"), project.read("b.txt")], ["two\n", "two\n"]);
        await chat.page.waitForSelector(".mode-acceptEdits");
    }));
