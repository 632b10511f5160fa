// A session of five thousand messages: the page is bounded, the read text stays in place, and new text is
// followed only at the end.
//
// Rule: nothing here is timed; the figures are bench.ts's. The assertions hold on any machine.

import assert from "node:assert/strict";
import test from "node:test";

import type { ChatPage } from "../lib/host";
import { longFiles, longPrograms, makeLong, paragraphs, pieces } from "../lib/long";
import { text, type Program, type Project } from "../lib/project";
import { inWorld, useBrowser } from "../lib/world";

useBrowser();

const stream: Program = {
    steps: [
        {
            content: [
                text(
                    Array.from(
                        { length: 120 },
                        (_, index) => `Line ${index} of the stream with some more words.\n\n`,
                    ).join(""),
                ),
            ],
            chunk: 30,
            gate: "more",
            gate_after_events: 60,
        },
    ],
};

const turns: Program = {
    when: "^turn ",
    steps: Array.from({ length: 24 }, (_, turn) => ({ content: [text(paragraphs(turn * 5, 900 + turn * 40))] })),
};
const programs = [...longPrograms, pieces, turns, stream];

/** Uses a new server, as after the editor was closed and opened: the session is loaded again. */
async function resume(chat: ChatPage, project: Project): Promise<void> {
    await chat.server.close();
    chat.follow(await project.start());
    await chat.load();
}

/** Sends a prompt, and waits until its turn has started and ended. */
async function take(chat: ChatPage, words: string): Promise<void> {
    await chat.say(words);
    await chat.page.locator(".user", { hasText: words }).waitFor();
    await chat.page.waitForSelector(".working", { state: "detached" });
}

/** Rows that are on the page, and elements in all. */
const counts = (chat: ChatPage) =>
    chat.page.evaluate(() => ({
        rows: document.querySelectorAll(".row").length,
        elements: document.querySelectorAll("*").length,
    }));

/** The first row in sight and its place. */
const anchor = (chat: ChatPage) =>
    chat.page.evaluate(() => {
        const box = document.querySelector(".scroller")?.getBoundingClientRect();
        if (!box) throw new Error("there is no list");
        const rows = [...document.querySelectorAll<HTMLElement>(".row")];
        const row = rows.find((row) => row.getBoundingClientRect().bottom > box.top + 1);
        if (!row) throw new Error("no row is in sight");
        return { key: row.dataset["row"] ?? "", top: Math.round(row.getBoundingClientRect().top - box.top) };
    });

const distance = (chat: ChatPage) =>
    chat.page
        .locator(".scroller")
        .evaluate((element) => element.scrollHeight - element.clientHeight - element.scrollTop);

/** Waits until nothing moves: two frames with the same heights. */
const still = (chat: ChatPage) =>
    chat.page.evaluate(async () => {
        const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
        const box = document.querySelector(".scroller");
        for (let before = "", same = 0; same < 4;) {
            await frame();
            const now = `${box?.scrollTop} ${box?.scrollHeight}`;
            same = now === before ? same + 1 : 0;
            before = now;
        }
    });

test(
    "five thousand messages: bounded rows, older ones by scrolling, no jump, and following only at the end",
    { timeout: 900_000 },
    () =>
        inWorld(
            {
                programs,
                files: longFiles,
                prepare: async (server) => ({ sessionId: await makeLong(server) }),
            },
            async ({ chat, project }) => {
                await chat.page.waitForSelector("text=End of part 5.");
                await still(chat);
                assert.ok((await distance(chat)) <= 1, "it opens at the end");
                const atOpen = await counts(chat);
                assert.ok(atOpen.rows <= 80 && atOpen.elements < 3_000, JSON.stringify(atOpen));

                // Scrolls up to the very first message, as a user who searches it does.
                const box = chat.page.locator(".scroller");
                let most = atOpen;
                for (let round = 0; round < 400; round += 1) {
                    await box.evaluate((element) =>
                        element.scrollTo(0, Math.max(0, element.scrollTop - 4_000)),
                    );
                    await still(chat);
                    const now = await counts(chat);
                    if (now.rows > most.rows) most = now;
                    if ((await chat.page.locator(".user", { hasText: "part 0" }).count()) > 0) break;
                }
                assert.equal(
                    await chat.page.locator(".user", { hasText: "part 0" }).count(),
                    1,
                    "the first message was reached",
                );
                assert.ok(most.rows <= 80, JSON.stringify(most));
                assert.ok((await counts(chat)).elements < 3_000);

                // In the middle, the read text stays in place while other things come at the end.
                await box.evaluate((element) => element.scrollTo(0, element.scrollHeight / 2));
                await still(chat);
                const before = await anchor(chat);
                await chat.say("stream");
                await project.held("more");
                await chat.page.waitForSelector(".working");
                await still(chat);
                assert.deepEqual(
                    await anchor(chat),
                    before,
                    "a message that is sent does not move what is read",
                );
                await project.release("more");
                await chat.page.waitForSelector(".working", { state: "detached" });
                await still(chat);
                assert.deepEqual(await anchor(chat), before, "text that streams does not either");
                assert.ok((await counts(chat)).rows <= 80);

                await chat.page.getByText("Jump to latest").click();
                await chat.page.waitForSelector("text=Line 119 of the stream");
                await still(chat);
                assert.ok((await distance(chat)) <= 1);
                assert.equal(await chat.page.getByText("Jump to latest").count(), 0);

                // Resumed, the session continues, and the page with it.
                await resume(chat, project);
                await chat.page.waitForSelector("text=Line 119 of the stream");
                await chat.say("pieces");
                await chat.page.waitForSelector("text=End of the pieces.", { timeout: 300_000 });
                await chat.page.waitForSelector(".working", { state: "detached" });
                await still(chat);
                assert.ok((await distance(chat)) <= 1, "it followed to the end");
                assert.ok((await counts(chat)).rows <= 80);
            },
        ),
);

test("a resumed session of a hundred rows is followed turn after turn, and a turn in it can be stopped", () =>
    inWorld({ programs }, async ({ chat, project }) => {
        for (let turn = 0; turn < 12; turn += 1) await take(chat, `turn ${turn}`);
        await resume(chat, project);
        await chat.page.locator(".user", { hasText: "turn 11" }).waitFor();
        for (let turn = 12; turn < 24; turn += 1) {
            await take(chat, `turn ${turn}`);
            await still(chat);
            assert.ok((await distance(chat)) <= 1, `turn ${turn} is followed`);
        }
        await chat.say("stream");
        await project.held("more");
        await chat.page.getByRole("button", { name: "Stop" }).click();
        await chat.page.waitForSelector(".working", { state: "detached" });
    }));

test("at the end the list follows what comes; a little scrolling up stops it, and reading on takes it up", () =>
    inWorld({ programs: [stream] }, async ({ chat, project }) => {
        await chat.say("stream");
        await project.held("more");
        await chat.page.waitForFunction(() => (document.querySelector(".scroller")?.scrollTop ?? 0) > 300);
        await still(chat);
        assert.ok((await distance(chat)) <= 1, "it follows");
        await chat.page.locator(".scroller").hover();
        await chat.page.mouse.wheel(0, -40);
        await chat.page.getByText("Jump to latest").waitFor();
        await still(chat);
        const before = await anchor(chat);
        await project.release("more");
        await chat.page.waitForSelector(".working", { state: "detached" });
        await still(chat);
        assert.deepEqual(await anchor(chat), before, "it stays where one reads");
        await chat.page.locator(".scroller").evaluate((element) => element.scrollTo(0, element.scrollHeight));
        await chat.page.getByText("Jump to latest").waitFor({ state: "detached" });
    }));

test("a card that is opened does not move what is above it", () =>
    inWorld({ programs: [stream] }, async ({ chat, project }) => {
        await project.release("more");
        await chat.say("stream");
        await chat.page.waitForSelector("text=Line 119 of the stream");
        await chat.page.waitForSelector(".working", { state: "detached" });
        await chat.page.locator(".scroller").evaluate((element) => element.scrollTo(0, 100));
        await still(chat);
        const before = await anchor(chat);
        const message = chat.page.locator(".user").first();
        await message
            .getByLabel("Go back to before this message")
            .first()
            .evaluate((element: HTMLElement) => element.click());
        await chat.page.locator(".preview").waitFor();
        await still(chat);
        const after = await anchor(chat);
        assert.equal(after.key, before.key);
    }));
