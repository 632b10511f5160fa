// Side questions as one sees them: cards above the prompt, apart from the transcript.
//
// Rule: everything is done as a person does it, by keys and clicks, and waited for on the screen.

import assert from "node:assert/strict";
import test from "node:test";

import { call, text, type Program } from "../lib/project";
import { inWorld, useBrowser } from "../lib/world";

useBrowser();

const programs: Program[] = [
    {
        when: "^run",
        steps: [
            { content: [call("Glob", { pattern: "*" })] },
            { content: [call("Bash", { command: "touch made" })] },
            { content: [text("It ran.")] },
        ],
    },
    { when: "why touch", steps: [{ content: [text("The **build** wants it.")] }] },
    {
        when: "for ever",
        steps: [{ content: [text("It begins here and goes on and on.")], chunk: 6, gate: "hold", gate_after_events: 6 }],
    },
    { when: "broken", steps: [{ content: [text("never")], faults: [{ status: 401 }, { status: 401 }] }] },
    { steps: [{ content: [text("Answer to {{prompt}}")] }] },
];

test("a side question is answered in a card of its own while a call waits, and is in no transcript", () =>
    inWorld({ programs }, async ({ chat }) => {
        await chat.say("run it");
        await chat.page.locator(".permission").waitFor();
        await chat.say("/btw why touch?");
        const card = chat.page.locator(".aside");
        await card.locator("strong", { hasText: "build" }).waitFor();
        assert.match(await card.locator("h2").innerText(), /^why touch\?$/);
        assert.equal(await chat.page.locator(".permission").count(), 1, "the call waits still");
        assert.equal(await chat.prompt.inputValue(), "");
        await card.locator("[aria-label='Copy the answer']").click();
        assert.deepEqual(
            chat.actions.filter(({ action }) => action === "copy").map(({ payload }) => payload),
            [{ text: "The **build** wants it." }],
        );
        await chat.command({ name: "focusWaiting" });
        await chat.page.keyboard.press("Enter");
        await chat.page.waitForSelector("text=It ran.");
        assert.doesNotMatch((await chat.rows()).join(), /why touch|wants it/);
        await card.locator("[aria-label=Close]").click();
        await card.waitFor({ state: "detached" });
    }));

test("the answer shows while it comes, and its card can be closed before the end", () =>
    inWorld({ programs }, async ({ project, chat }) => {
        await chat.say("/btw for ever?");
        await project.held("hold");
        const card = chat.page.locator(".aside");
        await card.getByText("It begins").waitFor();
        assert.equal(await card.getAttribute("aria-busy"), "true");
        await card.locator("[aria-label='Cancel the side question']").click();
        await card.waitFor({ state: "detached" });
        await chat.say("/btw why touch?");
        await card.locator("strong").waitFor();
        assert.equal(await chat.page.locator(".toast.error").count(), 0);
    }));

test("a model that fails is named in the card, and the question can be asked again", () =>
    inWorld({ programs }, async ({ chat }) => {
        await chat.say("/btw broken?");
        const card = chat.page.locator(".aside");
        await card.locator(".aside-problem", { hasText: "401" }).waitFor();
        await chat.prompt.fill("half a thought");
        await card.locator("[aria-label='Ask again']").click();
        await chat.page.locator(".aside[aria-busy=true], .aside .aside-problem").first().waitFor();
        assert.equal(await card.count(), 1);
        assert.equal(await chat.prompt.inputValue(), "half a thought", "words that were typed meanwhile stay");
    }));
