// The team of sub-agents in the background: who waits for whom, their shared tasks, and a message to one of them.
//
// Rule: everything is done as a person does it, by keys and clicks, and waited for on the screen.

import assert from "node:assert/strict";
import test from "node:test";

import { call, text, type Program } from "../lib/project";
import { inWorld, useBrowser } from "../lib/world";

useBrowser();

const member = (name: string) =>
    call("Task", { description: `The part of ${name}`, prompt: `do ${name}`, name, run_in_background: true });

const programs: Program[] = [
    {
        when: "^do one$",
        steps: [
            { content: [call("WaitForMessage", { from: "two" })], gate: "one", gate_after_events: 0 },
            { content: [text("One is done.")] },
        ],
    },
    {
        when: "^do two$",
        steps: [
            { content: [call("TeamTasks", { action: "claim", task: 1 })], gate: "two", gate_after_events: 0 },
            { content: [call("TeamTasks", { action: "complete", task: 1 })] },
            { content: [text("Two is done.")], gate: "end", gate_after_events: 0 },
        ],
    },
    {
        steps: [
            { content: [member("one"), member("two")] },
            { content: [call("TeamTasks", { action: "add", title: "Find the port that the server of the tests listens on" })] },
            { content: [text("They work.")] },
        ],
    },
];

test("a team shows who waits for whom and its tasks, and takes a message, in a narrow view", () =>
    inWorld({ programs, width: 300, height: 700 }, async ({ project, chat }) => {
        await chat.say("go");
        const team = chat.page.locator(".dock-part.team");
        await team.getByText("Team: 2 sub-agents, 0 of 1 task done").waitFor();
        assert.equal(await team.locator(".team-body").count(), 0, "it is one line until it is opened");
        await project.release("one");
        await team.getByText("Team: 2 sub-agents, 1 waiting, 0 of 1 task done").waitFor();
        await team.locator("button[aria-expanded=false]").click();
        const rows = team.getByRole("list", { name: "Members" }).getByRole("listitem");
        assert.deepEqual((await rows.allInnerTexts()).map((row) => row.replace(/\s+/g, " ").trim()), [
            "main waits for your prompt",
            "one waits for two",
            "two works",
        ]);
        assert.equal(await team.locator(".team-arcs g").count(), 1, "an arc leads from one to two");
        const tasks = team.getByRole("list", { name: "Shared tasks" });
        assert.match(await tasks.innerText(), /1\. Find the port that the server of the tests listens on free/);
        const isInside = await team.evaluate((part) => part.scrollWidth <= part.clientWidth);
        assert.ok(isInside, "nothing reaches over the edge");

        await team.getByRole("button", { name: "Write to two" }).click();
        await chat.page.getByRole("textbox", { name: "Message to two" }).fill("use port 80");
        await chat.page.keyboard.press("Enter");
        await rows.nth(2).getByText("1 unread").waitFor();
        assert.equal(await chat.page.getByRole("textbox", { name: "Message to two" }).count(), 0);
        await project.release("two");
        await project.held("end");
        await team.getByText("1 of 1 task done").waitFor();
        assert.equal(await team.locator(".team-unread").count(), 0, "it has read the message");
        await project.release("end");
        await team.waitFor({ state: "detached" });
    }));
