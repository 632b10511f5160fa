// The session that every client replays, as one sees it; see tests/fixtures/replay.
//
// Rule: no server runs; the page shows the recording alone, and is compared with a text written by hand.

import assert from "node:assert/strict";
import test from "node:test";

import { expected } from "../lib/replayed";
import { inReplay, useBrowser } from "../lib/world";

useBrowser();

test("the recorded session is shown as the items and the changed files that are expected", () =>
    inReplay(async (chat, replayed) => {
        replayed.play();
        await chat.settled();
        await chat.page.waitForSelector("text=The table is of oak.");
        const rows = (await chat.rows()).join("\n");
        for (const { text } of expected.items) {
            if (text !== undefined) assert.ok(rows.includes(text.replaceAll("**", "").trim()), text);
        }
        assert.doesNotMatch(rows, /never mind/, "what was taken back is gone");
        const cards = chat.page.locator(".card");
        const failed = expected.items.filter(({ status }) => status === "FAILED").length;
        const denied = expected.items.filter(({ status }) => status === "DENIED").length;
        assert.equal(await cards.locator("text=/failed|exit code 3/i").count() >= failed, true, rows);
        assert.equal(await chat.page.locator(".card.warning >> text=denied").count(), denied);
        assert.equal(await chat.page.locator(".broke-off").count(), 1);
        assert.equal(await chat.page.locator(".permission").count(), 0);

        const files = [...new Set(expected.hunks.map(({ file }) => file))];
        const changes = chat.page.getByRole("region", { name: "Changed files" });
        await changes.getByRole("button", { name: /files changed/ }).click();
        const listed = await changes.locator(".file-row").allInnerTexts();
        assert.deepEqual(
            listed.map((line) => files.find((file) => line.includes(file))),
            files,
        );
        const conflicts = expected.hunks.filter(({ state }) => state === "conflict");
        for (const { file } of conflicts) {
            assert.match(listed.find((line) => line.includes(file)) ?? "", /1 conflict/);
        }
    }));
