// A turn as one sees it: text that comes, questions, the queue, stops.
//
// Rule: everything is done as a person does it, by keys and clicks, and waited for on the screen.

import assert from "node:assert/strict";
import test from "node:test";

import { COLOR, delegating } from "../lib/programs";
import { call, text, thinking, type Program } from "../lib/project";
import { inWorld, useBrowser } from "../lib/world";

useBrowser();

const slow = (gate: string): Program => ({
    when: "^slow",
    steps: [
        {
            content: [text("# Begin\n\nIt begins here and goes on.\n\nA second paragraph.")],
            chunk: 6,
            gate,
            gate_after_events: 8,
        },
        { content: [text("And so on.")] },
    ],
});
const edit: Program = {
    when: "^edit",
    steps: [
        { content: [text("I read it."), call("Read", { file_path: "{{cwd}}/a.txt" })] },
        { content: [call("Edit", { file_path: "{{cwd}}/a.txt", old_string: "one", new_string: "two" })] },
        { content: [text("It is changed.")] },
    ],
};
const command: Program = {
    when: "^run",
    steps: [
        { content: [call("Bash", { command: "touch made && echo made it" })] },
        { content: [text("It ran.")] },
    ],
};
const plain: Program = { steps: [{ content: [text("Answer to {{prompt}}")] }] };

test("text shows while it comes, and its last form is whole", () =>
    inWorld({ programs: [slow("a"), plain] }, async ({ project, chat }) => {
        await chat.say("slow please");
        await project.held("a");
        await chat.page.waitForSelector(".said h3");
        assert.equal(await chat.page.locator(".working").count(), 1);
        assert.doesNotMatch((await chat.rows()).join(), /A second paragraph\./);
        await project.release("a");
        await chat.page.waitForSelector("text=A second paragraph.");
        await chat.page.waitForSelector(".working", { state: "detached" });
        assert.equal(await chat.page.locator(".said .block").count(), 3);
    }));

test("a change is shown whole before it is allowed, and Enter on the card allows it", () =>
    inWorld({ programs: [edit], files: { "a.txt": "one\n" } }, async ({ project, chat }) => {
        await chat.say("edit it");
        const card = chat.page.locator(".permission");
        await card.waitFor();
        assert.match(await card.innerText(), /−\s*one[\s\S]*\+\s*two/);
        assert.equal(
            await chat.prompt.evaluate((element) => element === document.activeElement),
            true,
            "the focus stays",
        );
        await chat.command({ name: "focusWaiting" });
        // Twice, as an impatient user does: one answer.
        await card.evaluate((element) => {
            for (let press = 0; press < 2; press += 1)
                element.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
        });
        await chat.page.waitForSelector("text=It is changed.");
        assert.equal(await chat.page.locator(".toast.error").count(), 0);
        assert.equal(project.read("a.txt"), "two\n");
        const change = chat.page.locator(".card", { hasText: "Edit" }).last();
        assert.match(await change.innerText(), /\+1 −1/);
    }));

test("the card says what a standing yes covers, and the arrows choose how far it reaches", () =>
    inWorld({ programs: [command] }, async ({ chat, server }) => {
        await chat.say("run it");
        const card = chat.page.locator(".permission");
        await card.waitFor();
        assert.match(await card.locator("pre").innerText(), /touch made && echo made it/);
        await chat.command({ name: "focusWaiting" });
        await chat.page.keyboard.press("ArrowDown");
        assert.equal(await card.locator("[aria-checked=true]").innerText(), "In this session");
        const decided = server.event(({ event }) => event.type === "permission_decided", "the decision");
        await chat.page.keyboard.press("Enter");
        const { event } = await decided;
        assert.equal(event.type === "permission_decided" && event.scope, "session");
        await chat.page.waitForSelector("text=It ran.");
    }));

test("a rule that covers more than the command says so, and one that covers it alone does not", () =>
    inWorld({ programs: [{ steps: [{ content: [call("Bash", { command: "npm test" })] }, { content: [text("It ran.")] }] }] }, async ({ chat }) => {
        await chat.say("test it");
        const offer = chat.page.locator(".permission .offer");
        await chat.command({ name: "focusWaiting" });
        await chat.page.getByRole("radio", { name: "In this session" }).click();
        assert.match(await offer.innerText(), /npm test/);
        const ofSession = await offer.innerText();
        assert.equal(/covers more than the command above/.test(ofSession), /:\*|\*\)/.test(ofSession));
        await chat.page.getByRole("radio", { name: "In this project" }).click();
        await offer.getByText("npm test:*").waitFor();
        await offer.getByText("This covers more than the command above: any arguments after it.").waitFor();
    }));

test("a goal shows its progress, and is removed by its button", () =>
    inWorld({ programs: [{ steps: [{ content: [text("Done.")] }, { content: [text("Really done.")] }] }] }, async ({ chat }) => {
        await chat.say("/goal --check 'cat made.txt' --rounds 1 --minutes 5 Make the file");
        const goal = chat.page.locator(".dock-part.goal");
        await goal.locator("text=Goal not met: no checks left: Make the file").waitFor();
        await goal.locator(".dock-open").click();
        const progress = await goal.locator(".goal-progress").innerText();
        assert.match(progress, /Check\s+cat made\.txt\s+Checks\s+1 of 1\s+Cost\s+(< )?\$[\d.]+\s+Time\s+[\d.]+ s of 5 min\s/);
        assert.match(progress, /No such file/);
        await goal.locator("[aria-label='Remove the goal']").click();
        await goal.waitFor({ state: "detached" });
    }));

test("Escape on the card denies, and words tell the model why", () =>
    inWorld({ programs: [command] }, async ({ chat, server }) => {
        await chat.say("run it");
        await chat.page.locator(".permission").waitFor();
        const decided = server.event(({ event }) => event.type === "permission_decided", "the decision");
        await chat.page.locator(".permission .tell").fill("use make instead");
        await chat.page.locator(".permission .tell").press("Enter");
        const { event } = await decided;
        assert.deepEqual(event.type === "permission_decided" && [event.outcome, event.feedback], [
            "deny",
            "use make instead",
        ]);
        await chat.page.waitForSelector(".card.warning >> text=denied");
        assert.equal(await chat.page.locator(".permission").count(), 0);
    }));

test("arguments can be edited before they are allowed", () =>
    inWorld({ programs: [command] }, async ({ chat, project }) => {
        await chat.say("run it");
        await chat.page.getByLabel("Edit the arguments").click();
        const field = chat.page.getByLabel(/^Command;/);
        assert.equal(await field.inputValue(), "touch made && echo made it");
        await field.fill("touch other");
        await chat.page.locator(".permission .primary").click();
        await chat.page.waitForSelector("text=It ran.");
        assert.equal(project.read("other"), "");
    }));

test("a prompt that is answered elsewhere closes here", () =>
    inWorld({ programs: [command] }, async ({ chat, server }) => {
        const asked = server.event(({ event }) => event.type === "permission_required", "the prompt");
        await chat.say("run it");
        const { event, sessionId } = await asked;
        await chat.page.locator(".permission").waitFor();
        if (event.type !== "permission_required") throw new Error("no prompt");
        await server.request("agent/permission/respond", {
            sessionId,
            permissionId: event.prompt.permissionId,
            decision: "deny",
        });
        await chat.page.locator(".permission").waitFor({ state: "detached" });
    }));

const asks: Program = {
    when: "^ask",
    steps: [
        {
            content: [
                call("AskUserQuestion", {
                    questions: [
                        COLOR,
                        {
                            question: "Which shapes?",
                            header: "Shape",
                            multiSelect: true,
                            options: [
                                { label: "Disc", description: "round" },
                                { label: "Box", description: "not" },
                            ],
                        },
                    ],
                }),
            ],
        },
        { content: [text("So be it: {{last_result}}")] },
    ],
};

test("questions take one answer, several, or words", () =>
    inWorld({ programs: [asks] }, async ({ chat, server }) => {
        await chat.say("ask me");
        const card = chat.page.locator(".question");
        await card.waitFor();
        assert.equal(
            await card.getByText("Answer", { exact: true }).isDisabled(),
            true,
            "nothing is chosen beforehand",
        );
        await card.getByLabel("Red").check();
        await card.getByLabel("Disc").check();
        await card.getByLabel("Box").check();
        await card.getByLabel(/Your own words: Which shapes/).fill("and a star");
        const answered = server.event(({ event }) => event.type === "question_answered", "the answer");
        await card.getByText("Answer", { exact: true }).click();
        const { event } = await answered;
        assert.deepEqual(event.type === "question_answered" && event.answers, [
            { labels: ["Red"] },
            { labels: ["Disc", "Box"], text: "and a star" },
        ]);
        await card.waitFor({ state: "detached" });
    }));

test("a plan can be edited and accepted", () =>
    inWorld(
        {
            programs: [
                {
                    when: "^plan",
                    steps: [
                        { content: [call("ExitPlanMode", { plan: "# The plan\n\n1. Do it" })] },
                        { content: [text("I do it.")] },
                    ],
                },
            ],
        },
        async ({ chat, server }) => {
            await chat.page.getByLabel(/^Mode:/).click();
            await chat.page.getByRole("option", { name: /^Plan/ }).click();
            await chat.page.waitForSelector(".mode-plan");
            await chat.say("plan it");
            const card = chat.page.locator(".question");
            await card.locator("h3", { hasText: "The plan" }).waitFor();
            await card.getByText("Edit", { exact: true }).click();
            await card.locator(".plan-edit").fill("# The plan\n\n1. Do it well");
            const answered = server.event(({ event }) => event.type === "question_answered", "the answer");
            await card.locator(".primary").click();
            const { event } = await answered;
            assert.deepEqual(event.type === "question_answered" && [event.outcome, event.plan], [
                "answered",
                "# The plan\n\n1. Do it well",
            ]);
            await chat.page.waitForSelector("text=I do it.");
        },
    ));

test("Enter queues while a turn runs, and what waits is edited, moved, removed and sent", () =>
    inWorld({ programs: [slow("q"), plain] }, async ({ project, chat }) => {
        await chat.say("slow please");
        await project.held("q");
        for (const words of ["first", "second", "third"]) {
            await chat.say(words);
            await chat.page.locator(".queued", { hasText: words }).waitFor();
        }
        const waiting = () => chat.page.locator(".queued-text").allInnerTexts();
        await chat.page.locator(".queued", { hasText: "third" }).getByLabel("Move up").click();
        await chat.page.waitForFunction(
            () => document.querySelectorAll(".queued-text")[1]?.textContent === "third",
        );
        await chat.page.locator(".queued", { hasText: "first" }).getByLabel("Remove").click();
        await chat.page.waitForFunction(() => document.querySelectorAll(".queued-text").length === 2);
        await chat.page.locator(".queued", { hasText: "second" }).getByLabel("Edit").click();
        await chat.page.locator(".queued textarea").fill("second, changed");
        await chat.page.locator(".queued textarea").press("Enter");
        await chat.page.locator(".queued", { hasText: "second, changed" }).waitFor();
        assert.deepEqual(await waiting(), ["third", "second, changed"]);
        await project.release("q");
        await chat.page.waitForSelector("text=Answer to second, changed");
        assert.equal(await chat.page.locator(".queue").count(), 0);
    }));

test("Ctrl+Enter tells the running turn", () =>
    inWorld({ programs: [slow("s"), plain] }, async ({ project, chat }) => {
        await chat.say("slow please");
        await project.held("s");
        await chat.prompt.fill("rather this way");
        await chat.prompt.press("Control+Enter");
        await chat.page.waitForSelector("text=1 message to the running turn");
        await project.release("s");
        await chat.page
            .locator(".user", { hasText: "rather this way" })
            .locator("text=to the running turn")
            .waitFor();
    }));

test("Escape twice stops; the queue waits and the draft stays", () =>
    inWorld({ programs: [slow("e"), plain] }, async ({ project, chat }) => {
        await chat.say("slow please");
        await project.held("e");
        await chat.say("later");
        await chat.page.locator(".queued", { hasText: "later" }).waitFor();
        await chat.prompt.fill("a draft");
        await chat.prompt.press("Escape");
        await chat.page.waitForFunction(() =>
            document.querySelector("[role=status]")?.textContent?.includes("Escape again"),
        );
        // Where the machine was too slow for the second to follow in time, it was a first one.
        await chat.prompt.press("Escape");
        await chat.prompt.press("Escape");
        await chat.page.waitForSelector("text=(paused)");
        assert.equal(await chat.prompt.inputValue(), "a draft");
        await chat.page.getByText("Resume", { exact: true }).click();
        await chat.page.waitForSelector("text=/Answer to [^]*later/");
    }));

test("a message is edited and sent again, with the files as they were", () =>
    inWorld({ programs: [edit, plain], files: { "a.txt": "one\n" } }, async ({ project, chat }) => {
        await chat.say("edit it");
        await chat.page.locator(".permission .primary").click();
        await chat.page.waitForSelector("text=It is changed.");
        await chat.page.waitForSelector(".working", { state: "detached" });
        await chat.page.locator(".user").hover();
        await chat.page.getByLabel("Edit and resend").click();
        assert.equal(await chat.prompt.inputValue(), "edit it");
        await chat.page.getByLabel("Restore files too").check();
        await chat.prompt.fill("something else");
        await chat.prompt.press("Enter");
        await chat.page.waitForSelector("text=Answer to something else");
        assert.equal(project.read("a.txt"), "one\n");
        assert.equal(await chat.page.locator(".user").count(), 1);
    }));

test("what failed is open at the end of its output; all of a long output is there on demand", () =>
    inWorld(
        {
            programs: [
                {
                    steps: [
                        { content: [call("Bash", { command: "seq 1 30000; exit 3" })] },
                        { content: [text("It failed.")] },
                    ],
                },
            ],
        },
        async ({ chat }) => {
            await chat.say("fail");
            await chat.page.waitForSelector("text=It failed.");
            const card = chat.page.locator(".card.failed");
            assert.match(await card.innerText(), /exit 3/);
            const output = card.locator(".output");
            await output.getByText(/\n30000/).waitFor();
            const atEnd = (element: Element) => element.scrollHeight - element.scrollTop - element.clientHeight < 2;
            assert.ok(await output.evaluate(atEnd), "the end is in sight");
            await card.getByText(/Show earlier output/).click();
            await output.getByText(/\n25000\n/).waitFor();
            await card.getByText("Copy", { exact: true }).click();
            await chat.page.waitForFunction(() =>
                document.querySelector("[role=status]")?.textContent?.includes("Copied"),
            );
            const copied = (await chat.acted("copy")) as { text: string };
            assert.match(copied.text, /\n15000\n[\s\S]*\n30000\n/);
        },
    ));

const WAITS = "echo before; until [ -e go-on ]; do sleep 0.05; done; echo after";

test("a running command is moved to the background from its card, and is read, shown in a terminal and gone there", () =>
    inWorld(
        {
            programs: [
                { when: "^build", steps: [{ content: [call("Bash", { command: WAITS })] }, { content: [text("It runs on.")] }] },
                plain,
            ],
            width: 300,
        },
        async ({ project, chat }) => {
            await chat.say("build");
            const card = chat.page.locator(".card", { hasText: "echo before" });
            await card.locator(".tail").getByText("before").waitFor();
            const move = card.getByRole("button", { name: "Move to background" });
            assert.ok((await move.boundingBox()) !== null, "it is in sight at 300 px");
            await move.click();
            await chat.page.waitForSelector("text=It runs on.");
            await chat.page.waitForSelector(".working", { state: "detached" });
            assert.equal(await move.count(), 0, "the call is over");

            const row = chat.page.locator(".dock-part.tasks .file-row");
            assert.match(await row.innerText(), /echo before/);
            const isInside = await row.evaluate((part) => part.scrollWidth <= part.clientWidth);
            assert.ok(isInside, "nothing reaches over the edge");
            await row.getByRole("button", { name: /in a terminal$/ }).click();
            const shown = (await chat.acted("showTask")) as { taskId: string; title: string };
            assert.equal(shown.taskId, "bash_1");
            await card.locator(".card-line").click();
            await card.getByRole("button", { name: "Open in terminal" }).click();
            await chat.told(() => chat.actions.filter(({ action }) => action === "showTask").length === 2, "the card shows it as well");

            project.write("go-on", "");
            await row.waitFor({ state: "detached" });
            await chat.say("and now?");
            await chat.page.waitForSelector("text=Answer to and now?");
        },
    ));

const multiEdit = (old_string: string) =>
    call("MultiEdit", { file_path: "{{cwd}}/src/a.txt", edits: [{ old_string, new_string: "two" }] });

test("rows and cards say nothing in the words of the protocol, of the model's tools or of the machine", () =>
    inWorld(
        {
            programs: [
                {
                    when: "^work",
                    steps: [
                        { content: [call("Read", { file_path: "{{cwd}}/src/a.txt" })] },
                        { content: [multiEdit("nowhere")] },
                        { content: [multiEdit("one")] },
                        { content: [call("Task", { description: "Look around", prompt: "look", subagent_type: "general-purpose" })] },
                        { content: [text("All is done.")] },
                    ],
                },
                { when: "^look", steps: [{ content: [text("Nothing is wrong.")] }] },
                plain,
            ],
            files: { "src/a.txt": "one\n" },
        },
        async ({ chat, project }) => {
            await chat.say("work");
            const card = chat.page.locator(".permission");
            await card.waitFor();
            const seen = [await card.innerText()];
            for (const reach of ["All edits from now on", "In this session", "In this project"]) {
                await card.getByRole("radio", { name: reach }).click();
                seen.push(await card.innerText());
            }
            await card.getByRole("radio", { name: "Only this time" }).click();
            await card.locator(".primary").click();
            await chat.page.waitForSelector("text=All is done.");
            const closed = chat.page.locator("button.card-line[aria-expanded=false]");
            while ((await closed.count()) > 0) await closed.first().click();
            await chat.page.getByText("Nothing is wrong.").first().waitFor();
            seen.push((await chat.rows()).join("\n"));
            const words = seen.join("\n");
            const forbidden = [/agent\/\w+/, /as `?resume/, /Copy the passage/, /mode default/i, /MultiEdit/, /`/, /\(\/\//, project.workspace];
            for (const word of forbidden) {
                const found = typeof word === "string" ? words.includes(word) : word.test(words);
                assert.ok(!found, `${String(word)} in:\n${words}`);
            }
        },
    ));

test("looks at files are one quiet row, thinking another", () =>
    inWorld(
        {
            programs: [
                {
                    steps: [
                        {
                            content: [
                                thinking("Hm, let me see."),
                                call("Read", { file_path: "{{cwd}}/a.txt" }),
                                call("Grep", { pattern: "one" }),
                                call("LS", { path: "{{cwd}}" }),
                            ],
                        },
                        { content: [text("Seen.")] },
                    ],
                },
            ],
            files: { "a.txt": "one\n" },
        },
        async ({ chat }) => {
            await chat.say("look");
            await chat.page.waitForSelector("text=Seen.");
            const looks = chat.page.locator(".card-line", { hasText: "Read a.txt, searched once, listed 1 folder" });
            await looks.click();
            assert.equal(await chat.page.locator(".card-body .card").count(), 3);
            await chat.page.locator(".card-line", { hasText: "Thought" }).click();
            await chat.page.waitForSelector("text=Hm, let me see.");
        },
    ));

test("a sub-agent is one row that shows what it did when it is opened", () =>
    inWorld(
        {
            programs: [
                {
                    when: "^delegate",
                    steps: [
                        { content: [text("I look."), call("Read", { file_path: "{{cwd}}/a.txt" })] },
                        { content: [text("It says one.")] },
                    ],
                },
                delegating,
            ],
            files: { "a.txt": "one\n" },
        },
        async ({ chat }) => {
            await chat.say("go");
            // The turn's last line comes after its text.
            const turnEnd = chat.page.locator(".turn-figures", { hasText: "$" });
            await turnEnd.waitFor();
            const before = await chat.rowsWithoutTimes();
            await chat.load();
            await turnEnd.waitFor();
            assert.deepEqual(await chat.rowsWithoutTimes(), before, "the page that is loaded again shows the same row");
            assert.doesNotMatch((await chat.rows()).join(), /It says one/);
            await chat.page.locator(".card-line", { hasText: "Look around" }).click();
            await chat.page.locator(".agent-items >> text=It says one.").waitFor();
            await chat.page.locator(".agent-items .card", { hasText: "a.txt" }).waitFor();
        },
    ));

test("a sub-agent that works is shown as one after a reload, and what it says is shown once", () =>
    inWorld(
        {
            programs: [
                {
                    when: "^delegate",
                    steps: [
                        {
                            content: [text("I look around and say a good deal about what there is to be seen.")],
                            chunk: 6,
                            gate: "look",
                            gate_after_events: 5,
                        },
                    ],
                },
                delegating,
            ],
        },
        async ({ chat, project }) => {
            await chat.say("go");
            await project.held("look");
            await chat.page.locator(".card.running", { hasText: "Look around" }).waitFor();
            await chat.load();
            const card = chat.page.locator(".card.running", { hasText: "Look around" });
            await card.locator(".card-line").click();
            await card.locator(".agent-items >> text=I look").waitFor();
            await project.release("look");
            await chat.page.waitForSelector("text=All done.");
            const said = chat.page.locator(".agent-items p", { hasText: "I look around" });
            assert.deepEqual(await said.allInnerTexts(), [
                "I look around and say a good deal about what there is to be seen.",
            ]);
        },
    ));

test("completion comes from the server and is chosen by keys alone", () =>
    inWorld(
        { programs: [plain], files: { "src/alpha.rs": "a\n", "src/beta.rs": "b\n" } },
        async ({ chat }) => {
            await chat.prompt.focus();
            await chat.page.keyboard.type("look at @alph");
            await chat.page.locator(".completion-item", { hasText: "alpha.rs" }).waitFor();
            await chat.page.keyboard.press("Tab");
            await chat.page.waitForFunction(() =>
                document.querySelector<HTMLTextAreaElement>("textarea.prompt")?.value.includes("alpha.rs "),
            );
            assert.equal(await chat.prompt.inputValue(), "look at @src/alpha.rs ");
            await chat.prompt.fill("");
            await chat.page.keyboard.type("/comp");
            await chat.page.locator(".completion-item", { hasText: "compact" }).waitFor();
            await chat.page.keyboard.press("Escape");
            await chat.page.locator(".completion").waitFor({ state: "detached" });
        },
    ));

test("symbols of the editor are completed after @# and go along as parts with their place", () =>
    inWorld({ programs: [plain], files: { "src/alpha.rs": "fn alpha() {}\n" } }, async ({ chat, project }) => {
        const uri = `file://${project.workspace}/src/alpha.rs`;
        const range = { start: { line: 0, character: 0 }, end: { line: 0, character: 13 } };
        chat.answers["findSymbols"] = { symbols: [{ name: "alpha", detail: "function · src/alpha.rs:1", uri, range }] };
        await chat.prompt.focus();
        await chat.page.keyboard.type("explain @#alp");
        await chat.page.locator(".completion-item", { hasText: "src/alpha.rs:1" }).waitFor();
        assert.ok(chat.actions.some(({ payload }) => (payload as { query?: string }).query === "alp"));
        await chat.page.keyboard.press("Tab");
        await chat.page.locator(".chip", { hasText: "alpha" }).waitFor();
        assert.equal(await chat.prompt.inputValue(), "explain alpha ");
        await chat.page.keyboard.press("Enter");
        await chat.page.waitForSelector("text=Answer to explain alpha");
        await chat.page.locator(".attachments .chip:not(.failed)", { hasText: "alpha" }).waitFor();
    }));

test("prompts said before come back with the arrow keys", () =>
    inWorld({ programs: [plain] }, async ({ chat }) => {
        for (const words of ["one", "two"]) {
            await chat.say(words);
            await chat.page.waitForSelector(`text=Answer to ${words}`);
            await chat.page.waitForSelector(".working", { state: "detached" });
        }
        const shows = (value: string) =>
            chat.page.waitForFunction(
                (value) => document.querySelector<HTMLTextAreaElement>("textarea.prompt")?.value === value,
                value,
            );
        await chat.prompt.press("ArrowUp");
        await shows("two");
        await chat.prompt.press("ArrowUp");
        await shows("one");
        await chat.prompt.press("ArrowDown");
        await shows("two");
    }));

test("what the editor shows goes along unless its chip is switched off", () =>
    inWorld(
        {
            programs: [plain],
            state: {
                editor: {
                    uri: "file:///w/a.rs",
                    path: "a.rs",
                    range: { start: { line: 3, character: 0 }, end: { line: 9, character: 0 } },
                    languageId: "rust",
                },
            },
        },
        async ({ chat }) => {
            const chip = chat.page.locator("button.chip");
            assert.match(await chip.innerText(), /a\.rs\s*lines 4–9/);
            await chat.say("with it");
            await chat.page.waitForSelector("text=Answer to with it");
            assert.equal(chat.actions.filter(({ action }) => action === "editorContext").length, 1);
            await chip.click();
            assert.equal(await chip.getAttribute("aria-pressed"), "false");
            await chat.say("without");
            await chat.page.waitForSelector("text=Answer to without");
            assert.equal(chat.actions.filter(({ action }) => action === "editorContext").length, 1);
        },
    ));

test("a picture that is pasted goes with the prompt", () =>
    inWorld({ programs: [plain] }, async ({ chat, server }) => {
        const added = server.event(
            ({ event }) => event.type === "item_updated" && event.item.body.type === "userMessage",
            "the attachment",
        );
        await chat.prompt.evaluate((element) => {
            const bytes = Uint8Array.from(
                atob(
                    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
                ),
                (character) => character.charCodeAt(0),
            );
            const data = new DataTransfer();
            data.items.add(new File([bytes], "a.png", { type: "image/png" }));
            element.dispatchEvent(
                new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }),
            );
        });
        await chat.page.locator(".chip .thumb").waitFor();
        await chat.say("what is this?");
        const { event } = await added;
        const body = event.type === "item_updated" ? event.item.body : undefined;
        assert.deepEqual(
            body?.type === "userMessage" && body.attachments?.map((attachment) => attachment.kind),
            ["image"],
        );
        const sent = chat.page.locator(".user .picture");
        await sent.locator("img").waitFor();
        const small = (await sent.boundingBox())?.height ?? 0;
        await sent.click();
        assert.equal(await sent.getAttribute("aria-expanded"), "true");
        assert.ok(small > 0);
        await chat.load();
        await sent.locator("img").waitFor();
    }));

test("a long text that is pasted and a file that is dropped are parts of the prompt, and the model has both", () =>
    inWorld({ programs: [plain], files: { "a.txt": "what the file says\n" } }, async ({ chat, project }) => {
        const long = `begins ${"and goes on ".repeat(400)}and ends`;
        await chat.prompt.evaluate((box, long) => {
            const clipboardData = new DataTransfer();
            clipboardData.setData("text/plain", long);
            box.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
        }, long);
        await chat.page.locator(".chip").waitFor();
        await chat.prompt.evaluate(
            (box, uri) => {
                const dataTransfer = new DataTransfer();
                dataTransfer.setData("text/uri-list", uri);
                box.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
            },
            new URL(`file://${project.path("a.txt")}`).href,
        );
        await chat.page.locator(".chip", { hasText: "a.txt" }).waitFor();
        assert.equal(await chat.prompt.inputValue(), "");
        await chat.say("look");
        await chat.page.waitForSelector("text=/Answer to/");
        const request = await project.newestRequest();
        assert.ok(request.includes(long) && request.includes("what the file says"), request.slice(0, 2_000));
    }));

test("the view does as its settings say: which key sends, what is open, how large the text is", () =>
    inWorld(
        {
            programs: [{ steps: [{ content: [thinking("Hm, let me see."), text("Seen.")] }] }],
            state: { settings: { enterSends: false, includeEditorContext: true, expandThinking: true, fontSize: 21, diffLayout: "auto" } },
        },
        async ({ chat }) => {
            await chat.prompt.fill("two");
            await chat.prompt.press("Enter");
            await chat.prompt.pressSequentially("lines");
            assert.equal(await chat.prompt.inputValue(), "two\nlines");
            await chat.prompt.press("Control+Enter");
            await chat.page.waitForSelector("text=Seen.");
            await chat.page.waitForSelector("text=Hm, let me see.");
            const size = await chat.page.locator(".markdown").last().evaluate((block) => getComputedStyle(block).fontSize);
            assert.equal(size, "21px");
        },
    ));

test("code is copied, put in at the cursor, and applied as a prompt", () =>
    inWorld(
        {
            programs: [
                { when: "^Put", steps: [{ content: [text("I put it there.")] }] },
                { steps: [{ content: [text("Here:\n\n```js\nlet a = 1;\n```\n")] }] },
            ],
        },
        async ({ chat }) => {
            await chat.say("code");
            await chat.page.waitForSelector(".code .t-keyword");
            await chat.page.getByLabel("Copy this code").click();
            await chat.page.getByLabel("Insert this code").click();
            await chat.page.waitForSelector(".working", { state: "detached" });
            await chat.page.getByLabel(/^Apply:/).click();
            await chat.page.waitForSelector("text=I put it there.");
            const said = chat.actions
                .filter(({ action }) => action === "copy" || action === "insert")
                .map(({ action, payload }) => [action, (payload as { text: string }).text]);
            assert.deepEqual(said, [
                ["copy", "let a = 1;"],
                ["insert", "let a = 1;"],
            ]);
        },
    ));

test("the meter says what fills the window and what it cost", () =>
    inWorld({ programs: [plain] }, async ({ chat }) => {
        await chat.say("hello");
        await chat.page.waitForSelector(".working", { state: "detached" });
        await chat.page.locator(".meter button").click();
        await chat.page.locator(".popover >> text=System prompt").waitFor();
        assert.match(await chat.page.locator(".popover").innerText(), /tokens[\s\S]*Free[\s\S]*1 call/);
    }));

test("the meter draws the provider's limits, and one that is nearly used up is on its button", () =>
    inWorld(
        {
            programs: [
                {
                    steps: [
                        {
                            content: [text("Fine.")],
                            headers: {
                                "anthropic-ratelimit-unified-5h-utilization": "0.92",
                                "anthropic-ratelimit-unified-5h-reset": String(Math.floor(Date.now() / 1_000) + 7_000),
                                "anthropic-ratelimit-unified-7d-utilization": "0.4",
                                "anthropic-ratelimit-unified-7d-reset": String(Math.floor(Date.now() / 1_000) - 60),
                            },
                        },
                    ],
                },
            ],
        },
        async ({ chat }) => {
            await chat.say("hello");
            await chat.page.locator(".meter button", { hasText: "5 hours 92 %" }).click();
            const row = chat.page.locator(".figures tr", { hasText: "5 hours" });
            await row.locator("text=new in 2 h").waitFor();
            assert.equal(await row.locator(".bar-front").getAttribute("width"), "92");
            assert.equal(await chat.page.getByText("7 days").count(), 0, "the limit that was reset");
        },
    ));

test("a compaction is begun from the meter and told", () =>
    inWorld({ programs: [plain] }, async ({ chat, server }) => {
        await chat.say("hello");
        await chat.page.waitForSelector(".working", { state: "detached" });
        const told = server.event(
            ({ event }) =>
                event.type === "context_compression" &&
                event.step.type !== "progress" &&
                event.step.type !== "started",
            "the end of it",
        );
        await chat.page.locator(".meter button").click();
        await chat.page.getByText("Compact now").click();
        await told;
    }));
