// Sessions: which there are, what they are called, what becomes of them, and that none of it is lost with the page.
//
// Rule: a page that is thrown away and loaded again shows the same.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test from "node:test";
import { isDeepStrictEqual } from "node:util";

import type { ChatPage } from "../lib/host";
import { changing, numbered } from "../lib/programs";
import { call, text, thinking, type Program } from "../lib/project";
import type { Server } from "../lib/server";
import { inWorld, useBrowser } from "../lib/world";

useBrowser();

const plain: Program = { steps: [{ content: [text("Answer to {{prompt}}")] }] };
const edit: Program = {
    when: "^edit",
    steps: [
        {
            content: [
                thinking("Hm."),
                text("I read it.\n\n```rust\nfn a() {}\n```\n"),
                call("Read", { file_path: "{{cwd}}/a.txt" }),
                call("Read", { file_path: "{{cwd}}/none.txt" }),
            ],
        },
        {
            content: [
                call("TodoWrite", {
                    todos: [{ content: "Edit it", status: "in_progress", activeForm: "Editing it" }],
                }),
            ],
        },
        { content: [call("Edit", { file_path: "{{cwd}}/a.txt", old_string: "one", new_string: "two" })] },
        { content: [text("It is changed.")] },
    ],
};

async function answer(chat: ChatPage, words: string): Promise<void> {
    await chat.say(words);
    await chat.page.waitForSelector(`text=Answer to ${words}`);
    await chat.page.waitForSelector(".working", { state: "detached" });
}

/** The visible parts: rows, dock and prompt. */
async function seen(chat: ChatPage): Promise<unknown> {
    return {
        rows: await chat.rowsWithoutTimes(),
        title: await chat.page.locator("h1").innerText(),
        dock: (await chat.page.locator(".dock-part, .prompt-card").allInnerTexts()).map((part) =>
            part.replace(/\s+/g, " "),
        ),
        prompt: await chat.prompt.inputValue(),
        foot: await chat.page.locator(".composer-foot").innerText(),
    };
}

test("the sandbox profile of a session is shown below the prompt and taken back there", () =>
    inWorld({ programs: [plain] }, async ({ chat }) => {
        await answer(chat, "hello");
        await chat.say("/sandbox read-only");
        const mark = chat.page.locator("[aria-label='Sandbox: read-only']");
        await mark.click();
        await chat.page.locator("[role=option]", { hasText: "Default" }).click();
        await mark.waitFor({ state: "detached" });
    }));

test("a session in a git worktree is begun by a command and merged by a button", () =>
    inWorld({ programs: [changing("^change", "a.txt", { 2: "line two" }, "Changed.")] }, async ({ chat, project }) => {
        project.write("a.txt", numbered(3));
        const git = (...words: string[]) =>
            execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.com", ...words], { cwd: project.workspace });
        git("init", "--quiet");
        git("add", ".");
        git("commit", "--quiet", "-m", "begin");
        await chat.command({ name: "newSession", worktree: true });
        const part = chat.page.locator(".dock-part.worktree");
        await part.locator("text=kode-ls/ses_").waitFor();
        await chat.say("change");
        await chat.page.locator(".permission button", { hasText: "Allow" }).first().click();
        await chat.page.locator("text=Changed.").waitFor();
        assert.equal(project.read("a.txt"), numbered(3));
        await part.locator("text=Merge").click();
        await chat.page.locator("text=1 file of the workspace is changed, to be reviewed").waitFor();
        assert.equal(project.read("a.txt"), numbered(3).replace("line 2", "line two"));
    }));

test("a page that is loaded again shows the same: rows, dock, draft, figures", () =>
    inWorld(
        {
            height: 1_600,
            programs: [
                edit,
                {
                    when: "^then",
                    steps: [
                        { content: [call("Bash", { command: "touch made" })] },
                        { content: [text("Made.")] },
                    ],
                },
                plain,
            ],
            files: { "a.txt": "one\n" },
        },
        async ({ chat, server }) => {
            await chat.say("edit it");
            await chat.page.locator(".permission .primary").click();
            await chat.page.waitForSelector("text=It is changed.");
            await chat.page.waitForSelector(".working", { state: "detached" });
            await chat.page.waitForSelector("text=1 file changed");
            await chat.say("then run");
            await chat.page.locator(".preview-command").waitFor();
            await chat.say("waits");
            const folded = chat.page.locator(".folded", { hasText: "1 file changed · 0 of 1 done · 1 queued" });
            await folded.waitFor();
            const kept = server.event(
                ({ event }) => event.type === "draft_changed" && event.draft?.text === "a draft of mine",
                "the draft",
            );
            await chat.prompt.fill("a draft of mine");
            await chat.page.evaluate(() => window.dispatchEvent(new Event("pagehide")));
            await kept;
            const drawn = async () => {
                await folded.waitFor();
                await chat.page.waitForSelector(".meter");
                await chat.page.waitForSelector(".t-keyword");
            };
            await drawn();
            const before = await seen(chat);
            await chat.load();
            await drawn();
            // The parts of a page that is loaded come one after the other.
            for (let looks = 0; looks < 200 && !isDeepStrictEqual(await seen(chat), before); looks += 1)
                await chat.page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
            assert.deepEqual(await seen(chat), before);
        },
    ));

test("answers are rendered though the renderer is read between the first drawing and its effects", () =>
    inWorld({ programs: [plain] }, async ({ chat }) => {
        await answer(chat, "hello");
        let release = () => {};
        const released = new Promise<void>((resolve) => {
            release = resolve;
        });
        const asked = new Promise<string>((resolve) => {
            void chat.page.route(/\/chunks\/Rendered-/, async (route) => {
                resolve(route.request().url());
                await released;
                await route.fallback();
            });
        });
        await chat.page.exposeBinding("releaseRenderer", async () => {
            const address = await asked;
            release();
            return address;
        });
        await chat.page.addInitScript(() => {
            let held: (() => void)[] | undefined;
            const frame = window.requestAnimationFrame.bind(window);
            const timer = window.setTimeout.bind(window);
            window.requestAnimationFrame = (act) =>
                frame((time) => (held ? void held.push(() => act(time)) : act(time)));
            const later = (act: () => void, delay?: number) => timer(() => (held ? void held.push(act) : act()), delay);
            window.setTimeout = later as typeof window.setTimeout;
            const scope = window as unknown as { releaseRenderer: () => Promise<string> };
            new MutationObserver(async (_changes, observer) => {
                if (!document.querySelector(".markdown.plain")) return;
                observer.disconnect();
                held = [];
                await import(await scope.releaseRenderer());
                await new Promise((resolve) => timer(resolve));
                const acts = held;
                held = undefined;
                for (const act of acts) act();
            }).observe(document, { childList: true, subtree: true });
        });
        await chat.load();
        await chat.page.waitForSelector(".markdown:not(.plain) >> text=Answer to hello");
    }));

test("a session begins with the first prompt, and none is made for looking at the page", () =>
    inWorld({ programs: [plain] }, async ({ chat, server }) => {
        const { sessions } = await server.request("agent/session/list", {});
        assert.equal(sessions.length, 0);
        await answer(chat, "hello there");
        assert.equal(await chat.page.locator("h1").innerText(), "hello there");
        assert.equal((await server.request("agent/session/list", {})).sessions.length, 1);
    }));

test("sessions are listed, opened, renamed, archived, searched and deleted", () =>
    inWorld({ programs: [plain] }, async ({ chat, server }) => {
        await answer(chat, "about apples");
        await chat.command({ name: "newSession" });
        await answer(chat, "about pears");
        await chat.command({ name: "showSessions" });
        const row = (title: string) => chat.page.locator(".session", { hasText: title });
        await row("about apples").waitFor();
        assert.equal(await chat.page.locator(".session").count(), 2);

        await row("about apples").hover();
        await row("about apples")
            .getByLabel(/^Rename/)
            .click();
        await chat.page.getByLabel("Title").fill("Fruit");
        await chat.page.getByLabel("Title").press("Enter");
        await row("Fruit").waitFor();

        await chat.page.getByLabel("Search sessions").fill("to about pears");
        await chat.page.locator(".session mark", { hasText: "to about pears" }).waitFor();
        await chat.page.getByLabel("Search sessions").fill("");

        await row("Fruit").locator(".session-open").click();
        await chat.page.waitForSelector("text=Answer to about apples");
        assert.equal(await chat.page.locator("h1").innerText(), "Fruit");

        await chat.command({ name: "showSessions" });
        await row("about pears").hover();
        await row("about pears")
            .getByLabel(/^Archive/)
            .click();
        await row("about pears").waitFor({ state: "detached" });
        await chat.page.getByText("Archived", { exact: true }).click();
        await row("about pears").waitFor();
        await row("about pears").hover();
        await row("about pears")
            .getByLabel(/^Delete/)
            .click();
        await row("about pears").waitFor({ state: "detached" });
        assert.ok(
            chat.actions.some(({ action }) => action === "confirm"),
            "it asked before it deleted",
        );
        const { sessions } = await server.request("agent/session/list", { archived: "include" });
        assert.deepEqual(
            sessions.map((session) => session.title),
            ["Fruit"],
        );
    }));

test("a session that another server begins is listed without being asked for", () =>
    inWorld({ programs: [plain] }, async ({ chat, project }) => {
        await answer(chat, "from here");
        await chat.command({ name: "showSessions" });
        await chat.page.locator(".session", { hasText: "from here" }).waitFor();
        const other = await project.start();
        try {
            const { sessionId } = await other.request("agent/session/new", {});
            const input = [{ type: "text" as const, text: "from there" }];
            await other.request("agent/turn/start", { sessionId, input });
            await chat.page.locator(".session", { hasText: "from there" }).waitFor();
        } finally {
            await other.close();
        }
    }));

test("the list says what a session does by its events alone", () =>
    inWorld(
        {
            tellsOfList: false,
            programs: [
                { when: "^slow", steps: [{ content: [text("on and on")], gate: "on", gate_after_events: 3, chunk: 4 }] },
                plain,
            ],
        },
        async ({ chat, project }) => {
            await answer(chat, "hello");
            await chat.command({ name: "showSessions" });
            const row = chat.page.locator(".session", { hasText: "hello" });
            await row.locator("text=1 turn").waitFor();
            await chat.say("slow");
            await project.held("on");
            await row.locator("text=Working").waitFor();
            await project.release("on");
            await row.locator("text=Working").waitFor({ state: "detached" });
            await row.locator("text=on and on").waitFor();
        },
    ));

/** Makes a session with an answer in it before the page is opened. */
async function prepared(server: Server): Promise<{ sessionId: string }> {
    const { sessionId } = await server.request("agent/session/new", {});
    const done = server.event(({ event }) => event.type === "done", "the end of the turn");
    await server.request("agent/turn/start", { sessionId, input: [{ type: "text", text: "long ago" }] });
    await done;
    return { sessionId };
}

test("a page that is opened while the server starts shows its session, with what was typed meanwhile", () =>
    inWorld(
        { programs: [plain], prepare: prepared, state: { connection: { state: "starting" } } },
        async ({ chat, server }) => {
            const { sessionId } = chat;
            await server.request("agent/draft/set", { sessionId, text: "a draft" });
            await chat.prompt.fill("typed early");
            await chat.update({ connection: { state: "ready", serverVersion: "test" } });
            await chat.page.waitForSelector("text=Answer to long ago");
            assert.equal(await chat.prompt.inputValue(), "a draft\ntyped early");
            assert.equal(chat.sessionId, sessionId);
        },
    ));

test("a prompt that is handed in while the server starts is sent when it is ready, and kept back when it was changed", () =>
    inWorld({ programs: [plain], state: { connection: { state: "starting" } } }, async ({ chat, project, server }) => {
        const ready = () => chat.update({ connection: { state: "ready", serverVersion: "test" } });
        const note = chat.page.locator(".editing-note", { hasText: "Will be sent when the server is ready." });
        await chat.say("early");
        await note.waitFor();
        assert.equal(await chat.prompt.inputValue(), "early");
        await ready();
        await chat.page.waitForSelector("text=Answer to early");
        assert.equal(await chat.prompt.inputValue(), "");
        await chat.page.waitForSelector(".working", { state: "detached" });
        await chat.update({ connection: { state: "crashed", reason: "It was killed.", restartInMs: 1_000, attempt: 1 } });
        await chat.say("not yet");
        await note.waitFor();
        await chat.prompt.press("End");
        await chat.prompt.pressSequentially(", wait");
        await note.waitFor({ state: "detached" });
        const kept = new Promise<void>((resolve) => {
            server.onEvent(({ event }) => {
                if (event.type === "draft_changed" && event.draft?.text === "not yet, wait") resolve();
            });
        });
        await ready();
        await kept;
        assert.equal(await chat.prompt.inputValue(), "not yet, wait");
        assert.doesNotMatch(await project.newestRequest(), /not yet/);
    }));

test("what is written while there is no server is there again when the page is made anew", () =>
    inWorld({ programs: [plain], state: { connection: { state: "starting" } } }, async ({ chat }) => {
        await chat.prompt.fill("half a thought");
        await chat.load();
        assert.equal(await chat.prompt.inputValue(), "half a thought");
        await chat.update({ connection: { state: "ready", serverVersion: "test" } });
        await chat.told(() => chat.state.sessionId !== undefined, "the session of the draft");
        await chat.load();
        await chat.page.waitForFunction(
            () => document.querySelector<HTMLTextAreaElement>("textarea.prompt")?.value === "half a thought",
        );
    }));

test("a prompt that the server does not have yet is there once when the page is made anew at once", () =>
    inWorld({ programs: [plain] }, async ({ chat }) => {
        await chat.prompt.fill("first");
        await chat.told(() => chat.state.sessionId !== undefined, "the session of the draft");
        await chat.prompt.fill("first and more");
        await chat.load();
        await chat.page.waitForFunction(
            () => document.querySelector<HTMLTextAreaElement>("textarea.prompt")?.value === "first and more",
        );
        await chat.prompt.fill("");
        await chat.load();
        await chat.page.waitForFunction(
            () => document.querySelector<HTMLTextAreaElement>("textarea.prompt")?.value === "",
        );
    }));

test("whoever comes to the page by the keyboard can type at once", () =>
    inWorld({ state: { connection: { state: "starting" } } }, async ({ chat }) => {
        await chat.page.keyboard.type("at once");
        assert.equal(await chat.prompt.inputValue(), "at once");
    }));

test("what the model's host refuses is told in the conversation, and there alone", () =>
    inWorld(
        {
            programs: [
                {
                    steps: [
                        {
                            content: [text("never")],
                            faults: [
                                {
                                    status: 401,
                                    body: { type: "error", error: { type: "authentication_error", message: "no such key" } },
                                },
                            ],
                        },
                    ],
                },
            ],
        },
        async ({ chat }) => {
            await chat.say("hello");
            await chat.page.locator(".notice.error").waitFor();
            await chat.page.waitForSelector(".working", { state: "detached" });
            // Screen readers are given the error once before the turn's end takes its place.
            const seen = chat.page.getByText("no such key").and(chat.page.locator(":not(.unseen)"));
            assert.equal(await seen.count(), 1);
        },
    ));

test("a command that leads to what waits is carried out when the session is here", () =>
    inWorld(
        {
            programs: [{ steps: [{ content: [call("Bash", { command: "touch made" })] }, { content: [text("Made.")] }] }],
            state: { connection: { state: "starting" } },
            prepare: async (server) => {
                const { sessionId } = await server.request("agent/session/new", {});
                const asked = server.event(({ event }) => event.type === "permission_required", "the prompt");
                await server.request("agent/turn/start", { sessionId, input: [{ type: "text", text: "go" }] });
                await asked;
                return { sessionId };
            },
        },
        async ({ chat, project }) => {
            await chat.command({ name: "focusWaiting" });
            await chat.update({ connection: { state: "ready", serverVersion: "test" } });
            await chat.page.waitForFunction(() => document.activeElement?.classList.contains("permission"));
            await chat.page.waitForSelector(".permission .primary:enabled");
            await chat.page.keyboard.press("Enter");
            await chat.page.waitForSelector("text=Made.");
            assert.equal(project.read("made"), "");
        },
    ));

test("drafts belong to their sessions", () =>
    inWorld({ programs: [plain] }, async ({ chat }) => {
        await answer(chat, "first");
        await chat.prompt.fill("draft of the first");
        await chat.command({ name: "newSession" });
        assert.equal(await chat.prompt.inputValue(), "");
        await answer(chat, "second");
        await chat.command({ name: "showSessions" });
        await chat.page.locator(".session", { hasText: "first" }).locator(".session-open").first().click();
        await chat.page.waitForFunction(
            () =>
                document.querySelector<HTMLTextAreaElement>("textarea.prompt")?.value ===
                "draft of the first",
        );
    }));

test("going back is shown before it is done, done, and taken back", () =>
    inWorld({ programs: [edit, plain], files: { "a.txt": "one\n" } }, async ({ chat, project, server }) => {
        await answer(chat, "before");
        await chat.say("edit it");
        await chat.page.locator(".permission .primary").click();
        await chat.page.waitForSelector("text=It is changed.");
        await chat.page.waitForSelector(".working", { state: "detached" });
        const message = chat.page.locator(".user", { hasText: "edit it" });
        await message.hover();
        await message.getByLabel("Go back to before this message").first().click();
        const panel = chat.page.locator(".checkpoint");
        await panel.locator("text=/items? of the conversation would go/").waitFor();
        await panel.locator("summary", { hasText: "a.txt" }).click();
        assert.match(await panel.locator(".diff").first().innerText(), /−\s*two[\s\S]*\+\s*one/);
        assert.equal(project.read("a.txt"), "two\n", "nothing was done yet");
        const done = server.event(({ event }) => event.type === "edits_resolved", "the end of going back");
        await panel.locator(".primary").click();
        await chat.page.waitForFunction(
            () => !document.querySelector(".rows")?.textContent?.includes("It is changed."),
        );
        // The conversation goes first and the files follow.
        await done;
        assert.equal(project.read("a.txt"), "one\n");
        await chat.page.getByText("Take back").click();
        await chat.page.waitForSelector("text=It is changed.");
        await chat.page.waitForFunction(() => !document.querySelector(".checkpoint"));
    }));

test("a fork has the conversation up to a message and that message's words as its draft", () =>
    inWorld({ programs: [plain] }, async ({ chat, server }) => {
        await answer(chat, "one");
        await answer(chat, "two");
        const before = chat.sessionId;
        const message = chat.page.locator(".user", { hasText: "two" });
        await message.hover();
        await message.getByLabel("Go back to before this message").first().click();
        await chat.page.getByText("Fork here").click();
        await chat.page.waitForFunction(
            () => document.querySelector<HTMLTextAreaElement>("textarea.prompt")?.value === "two",
        );
        assert.notEqual(chat.sessionId, before);
        assert.doesNotMatch((await chat.rows()).join(), /Answer to two/);
        assert.equal((await server.request("agent/session/list", {})).sessions.length, 2);
    }));

test("changes are kept, undone and reviewed from the bar, and an act is taken back", () =>
    inWorld({ programs: [edit], files: { "a.txt": "one\n" } }, async ({ chat, project, server }) => {
        await chat.say("edit it");
        await chat.page.locator(".permission .primary").click();
        await chat.page.waitForSelector("text=It is changed.");
        const bar = chat.page.locator(".changes");
        await bar.locator("text=1 file changed").waitFor();
        await bar.getByText("Review").click();
        await chat.acted("reviewChanges");
        await bar.locator(".dock-open").click();
        await bar.locator(".file-name").click();
        await chat.acted("openDiff");
        await bar.getByLabel("Mark a.txt as reviewed").click();
        await bar.locator("text=1 reviewed").waitFor();
        await bar.getByLabel("a.txt is reviewed: remove the mark").click();
        await bar.getByLabel("Mark a.txt as reviewed").waitFor();
        const undone = server.event(({ event }) => event.type === "edits_resolved", "the undo");
        await bar.getByLabel("Undo all").click();
        await undone;
        await bar.waitFor({ state: "detached" });
        assert.equal(project.read("a.txt"), "one\n");
        await chat.page.getByText("Take back").click();
        await bar.waitFor();
        assert.equal(project.read("a.txt"), "two\n");
        await bar.getByLabel("Keep all").click();
        await bar.waitFor({ state: "detached" });
        assert.equal(project.read("a.txt"), "two\n");
    }));

test("a server that dies is told; the draft stays, and what was said is there again with the next one", () =>
    inWorld(
        {
            programs: [
                {
                    when: "^slow",
                    steps: [
                        {
                            content: [text("Some words that never end")],
                            chunk: 4,
                            gate: "never",
                            gate_after_events: 5,
                        },
                    ],
                },
                plain,
            ],
        },
        async ({ chat, server, project }) => {
            await answer(chat, "hello");
            await chat.say("slow");
            await project.held("never");
            await chat.page.waitForSelector(".working");
            await server.kill();
            await chat.update({
                connection: {
                    state: "crashed",
                    reason: "killed by signal 9",
                    restartInMs: 60_000,
                    attempt: 1,
                },
            });
            await chat.page.waitForSelector("text=killed by signal 9");
            await chat.prompt.fill("typed meanwhile");
            await chat.page.getByText("Restart now").click();
            await chat.acted("restart");
            const next = await project.start();
            chat.follow(next);
            await chat.update({ connection: { state: "ready", serverVersion: "next" } });
            await chat.page.waitForSelector(".banner", { state: "detached" });
            await chat.page.waitForSelector(".working", { state: "detached" });
            assert.equal(await chat.prompt.inputValue(), "typed meanwhile");
            await chat.page.waitForSelector("text=Answer to hello");
            await chat.prompt.press("Enter");
            await chat.page.waitForSelector("text=/Answer to [^]*typed meanwhile/");
        },
    ));

test("without a model the page says what is missing and how to mend it", () =>
    inWorld({ environment: { ANTHROPIC_API_KEY: "", ANTHROPIC_BASE_URL: "" } }, async ({ chat }) => {
        chat.answers["findModels"] = {
            found: [{ provider: "ollama", label: "Ollama", model: "qwen3:8b", detail: "localhost:11434" }],
        };
        await chat.load();
        await chat.page.waitForSelector("text=Add a model to begin");
        await chat.page.getByText("Add a key…").first().click();
        await chat.acted("addKey");
        chat.answers["useModel"] = { profile: "demo" };
        await chat.page.getByLabel("Use qwen3:8b").click();
        assert.deepEqual(await chat.acted("useModel"), {
            provider: "ollama",
            label: "Ollama",
            model: "qwen3:8b",
            detail: "localhost:11434",
        });
        await chat.page.waitForSelector("text=What should Kode do?");
        await chat.page.locator(".composer-foot", { hasText: "demo" }).waitFor();
    }));

test("without a model a profile that works, the search and the doctor are at hand", () =>
    inWorld({ environment: { ANTHROPIC_API_KEY: "", ANTHROPIC_BASE_URL: "" } }, async ({ chat }) => {
        await chat.load();
        await chat.page.waitForSelector("text=/no local server answered/");
        await chat.page.getByText("Run the doctor").click();
        await chat.acted("doctor");
        await chat.page.getByText("Search this machine again").click();
        await chat.told(
            () => chat.actions.some(({ action, payload }) => action === "findModels" && (payload as { fresh: boolean }).fresh),
            "a new search",
        );
        await chat.page.getByLabel("Use demo").click();
        await chat.page.waitForSelector("text=What should Kode do?");
        await chat.page.locator(".composer-foot", { hasText: "demo" }).waitFor();
    }));

test("the model picker offers models of this machine, and the session uses the chosen one", () =>
    inWorld({}, async ({ chat }) => {
        chat.answers["findModels"] = {
            found: [{ provider: "ollama", label: "Ollama", model: "qwen3:8b", detail: "localhost:11434 · 40,960 tokens" }],
        };
        chat.answers["useModel"] = { profile: "demo" };
        await chat.page.getByLabel(/^Model: /).click();
        await chat.page.getByRole("option", { name: "qwen3:8b Ollama · localhost:11434 · 40,960 tokens" }).click();
        assert.equal(((await chat.acted("useModel")) as { model: string }).model, "qwen3:8b");
        await chat.page.locator(".composer-foot", { hasText: "demo" }).waitFor();
    }));

test("a missing server, and a workspace that is not trusted, are told", () =>
    inWorld(
        {
            state: {
                trusted: false,
                connection: {
                    state: "stopped",
                    reason: "kode-ls was not found.",
                    hint: "Install it.",
                    setup: "serverMissing",
                },
            },
        },
        async ({ chat }) => {
            await chat.page.waitForSelector("text=The server did not start");
            await chat.page.getByText("Choose the program…").click();
            await chat.acted("chooseServer");
            await chat.page.getByText("Settings", { exact: true }).click();
            await chat.acted("openSettings");
            await chat.page.waitForSelector("text=Restricted mode");
            await chat.page.getByText("Manage trust").click();
            await chat.acted("manageTrust");
        },
    ));

test("a session that another server writes is followed, and taken over", () =>
    inWorld({ programs: [plain] }, async ({ chat, project }) => {
        await answer(chat, "hello");
        const other = await project.start();
        const { sessionId } = chat;
        chat.follow(other);
        await chat.load();
        await chat.page.waitForSelector("text=/^Open in .* \\(process/");
        await chat.page.getByText("Take over").click();
        await chat.page.waitForSelector(".banner", { state: "detached" });
        await answer(chat, "from here");
        assert.equal(chat.sessionId, sessionId);
    }));

test("what another window changes is listed as it is changed, and decided on once the session is taken over", () =>
    inWorld(
        { programs: [changing("^edit", "a.txt", { 2: "second" }, "It is changed.")], files: { "a.txt": numbered(3) } },
        async ({ chat, project, server }) => {
            const { sessionId } = await server.request("agent/session/new", { mode: "acceptEdits" });
            const other = await project.start();
            chat.follow(other);
            chat.state.sessionId = sessionId;
            await chat.load();
            await chat.page.waitForSelector("text=/^Open in .* \\(process/");
            const bar = chat.page.locator(".changes");
            assert.equal(await bar.count(), 0);
            await server.request("agent/turn/start", { sessionId, input: [{ type: "text", text: "edit it" }] });
            await bar.locator(".dock-open").click();
            await bar.getByText("a.txt").waitFor();
            const decides = bar.getByRole("button", { name: /^(Keep|Undo)/ });
            assert.equal(await decides.count(), 4);
            for (const button of await decides.all()) assert.equal(await button.isDisabled(), true);
            await chat.page.waitForSelector("text=It is changed.");
            const card = chat.page.locator(".card", { hasText: "Edit a.txt" });
            await card.getByRole("button", { name: "Open diff" }).waitFor();
            assert.equal(await card.getByRole("button", { name: "Undo" }).count(), 0);
            await chat.page.getByText("Take over").click();
            await card.getByRole("button", { name: "Undo" }).waitFor();
            await bar.getByRole("button", { name: "Undo a.txt" }).click();
            await bar.waitFor({ state: "detached" });
            assert.equal(project.read("a.txt"), numbered(3));
        },
    ));

test("a turn that runs in another window is stopped for a take-over only by the user's word", () =>
    inWorld(
        {
            programs: [
                { when: "^slow", steps: [{ content: [text("on and on")], gate: "on", gate_after_events: 4, chunk: 4 }] },
                plain,
            ],
        },
        async ({ chat, project }) => {
            await answer(chat, "hello");
            await chat.say("slow");
            await project.held("on");
            const other = await project.start();
            chat.follow(other);
            await chat.load();
            await chat.page.getByRole("button", { name: "Take over", exact: true }).click();
            await chat.page.getByRole("button", { name: "Stop it there and take over" }).click();
            await chat.page.waitForSelector("section.banner[aria-label='Another window']", { state: "detached" });
            const { following } = await other.request("agent/session/load", { sessionId: chat.sessionId });
            assert.equal(following, undefined, "it is this one's now");
        },
    ));

test("commands of the editor put the focus and parts where they belong", () =>
    inWorld({ programs: [plain] }, async ({ chat }) => {
        const uri = "file:///w/a.rs";
        const range = { start: { line: 1, character: 0 }, end: { line: 3, character: 0 } };
        await chat.command({ name: "addSelection", part: { uri, range, text: "let a;" } });
        await chat.page.locator(".chip", { hasText: "a.rs" }).locator("text=lines 2–3").waitFor();
        await chat.command({ name: "addFiles", uris: ["file:///w/b.rs"] });
        await chat.page.locator(".chip", { hasText: "b.rs" }).waitFor();
        await chat.command({ name: "insertText", text: "words" });
        assert.equal(await chat.prompt.inputValue(), "words");
        assert.equal(await chat.prompt.evaluate((element) => element === document.activeElement), true);
        await chat.command({ name: "chooseModel" });
        await chat.page.locator(".menu-list").waitFor();
        await chat.page.keyboard.press("Escape");
        await chat.command({ name: "showSessions" });
        await chat.page.locator(".sessions").waitFor();
        await chat.command({ name: "newSession" });
        await chat.page.locator(".welcome").waitFor();
        await answer(chat, "hello");
        await chat.command({ name: "focusLastMessage" });
        await chat.page.waitForFunction(() => document.activeElement?.getAttribute("aria-label") === "Kode");
    }));

test("a session that is created for a draft does not come back when the user begins another one meanwhile", () =>
    inWorld({ programs: [plain] }, async ({ chat, server }) => {
        const request = server.request.bind(server);
        let create = () => {};
        const created = new Promise<void>((resolve) => {
            create = resolve;
        });
        server.request = (async (method: string, params: never) => {
            if (method === "agent/session/new") await created;
            return request(method as never, params);
        }) as typeof server.request;
        const kept = server.event(({ event }) => event.type === "draft_changed" && event.draft?.text === "words", "the draft");
        await chat.command({ name: "insertText", text: "words" });
        await chat.command({ name: "newSession" });
        await chat.page.locator(".welcome").waitFor();
        create();
        await kept;
        await chat.settled();
        assert.equal(await chat.prompt.inputValue(), "");
        await answer(chat, "hello");
        assert.equal((await request("agent/session/list", {})).sessions.length, 2);
        await chat.command({ name: "showSessions" });
        await chat.page.locator(".session", { hasText: "hello" }).waitFor();
    }));

test("a session is written to a file that the user chooses", () =>
    inWorld({ programs: [plain] }, async ({ chat }) => {
        await answer(chat, "hello");
        await chat.command({ name: "showSessions" });
        const row = chat.page.locator(".session", { hasText: "hello" }).first();
        await row.hover();
        await row.getByLabel(/^Export/).click();
        await chat.page.waitForFunction(() =>
            document.querySelector("[role=status]")?.textContent?.includes("Session exported"),
        );
        const saved = (await chat.acted("saveText")) as {
            fileName: string;
            text: string;
        };
        assert.match(saved.fileName, /\.md$/);
        assert.match(saved.text, /Answer to hello/);
    }));

test("commands in the background are listed while they run, and stopped", () =>
    inWorld(
        {
            programs: [
                {
                    when: "^watch",
                    steps: [
                        {
                            content: [
                                call("Bash", {
                                    command: "touch started; sleep 300",
                                    run_in_background: true,
                                }),
                            ],
                        },
                        { content: [text("It runs.")] },
                    ],
                },
                plain,
            ],
        },
        async ({ chat }) => {
            await chat.say("watch");
            await chat.page.locator(".permission .primary").click();
            await chat.page.waitForSelector("text=It runs.");
            const tasks = chat.page.locator(".tasks");
            await tasks.waitFor();
            await tasks.getByLabel(/^Stop/).click();
            await tasks.waitFor({ state: "detached" });
        },
    ));

test("a row that cannot be drawn says so in its place, and the rest goes on", () =>
    inWorld({ programs: [plain] }, async ({ chat }) => {
        await answer(chat, "hello");
        await chat.page.evaluate((sessionId) => {
            const item = {
                itemId: "item_broken",
                turnId: "turn",
                timestamp: "",
                body: {
                    type: "toolCall",
                    callId: "c",
                    name: "X",
                    title: { toString: 1 },
                    input: {},
                    state: "COMPLETED",
                    display: "",
                    audit: [],
                },
            };
            const params = {
                sessionId,
                bookmark: { seq: 1e12, timestamp: "" },
                channel: "progress",
                event: { type: "item_added", item },
            };
            window.dispatchEvent(new MessageEvent("message", { data: { type: "event", params } }));
        }, chat.sessionId);
        await chat.page.waitForSelector("text=/could not be drawn/");
        assert.match((await chat.rows()).join(), /Answer to hello/);
        assert.equal(await chat.prompt.isEnabled(), true);
    }));

test("the page says when it gets and loses the keyboard", () =>
    inWorld({ programs: [plain] }, async ({ chat }) => {
        await chat.told(() => chat.hasKeyboard, "the keyboard, which it has from the start");
        await chat.page.evaluate(() => window.dispatchEvent(new Event("blur")));
        await chat.told(() => !chat.hasKeyboard, "the loss of the keyboard");
        await chat.page.evaluate(() => window.dispatchEvent(new Event("focus")));
        await chat.told(() => chat.hasKeyboard, "the keyboard again");
    }));
