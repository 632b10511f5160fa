// How the page looks, and whether everybody can use it: pictures of each state in each theme, checked by axe.
//
// Rule: axe finds nothing, in any theme, in any state that has a picture. The pictures are for people: check them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import type { ChatPage } from "../lib/host";
import { changing, numbered } from "../lib/programs";
import { call, text, thinking, type Program } from "../lib/project";
import { THEMES, type Theme } from "../lib/themes";
import { inWorld, useBrowser } from "../lib/world";

useBrowser();

const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

interface Violation {
    id: string;
    nodes: { html: string; failureSummary: string; any: { data?: { messageKey?: string } | null }[] }[];
}

async function look(chat: ChatPage, name: string): Promise<void> {
    const folder = process.env["KODE_WEBVIEW_PICTURES"];
    if (folder) await chat.page.screenshot({ path: join(folder, `${name}-${chat.state.theme}.png`) });
    // Put in by the driver, which the policy does not concern.
    await chat.page.evaluate(axe);
    const violations = await chat.page.evaluate(async () => {
        const scope = window as unknown as {
            axe: { run: (context: unknown, options: unknown) => Promise<Record<"violations" | "incomplete", Violation[]>> };
        };
        const { violations, incomplete } = await scope.axe.run(document, { resultTypes: ["violations", "incomplete"] });
        // Text in the color of its background is no violation for axe: it may be hidden on purpose. Nothing here is.
        const unseen = incomplete.map(({ id, nodes }) => ({
            id,
            nodes: nodes.filter(({ any }) => any.some(({ data }) => data?.messageKey === "equalRatio")),
        }));
        return [...violations, ...unseen].map(({ id, nodes }) => ({
            id,
            nodes: nodes
                .slice(0, 3)
                .map(({ html, failureSummary }) => ({ html: html.slice(0, 200), failureSummary })),
        }));
    });
    for (const { id, nodes } of violations) {
        for (const { html, failureSummary } of nodes)
            found.push(`${name}: ${id}: ${html}\n    ${failureSummary.replaceAll("\n", " ")}`);
    }
}

/** Findings of axe in the running test. */
const found: string[] = [];

// After every test, so that a finding fails the test whose page has it and no later one.
test.afterEach(() => {
    const all = found.splice(0);
    assert.equal(all.length, 0, `\n${all.join("\n")}`);
});

const answer = `It was the order of the two checks. \`src/cache.rs:12\` looked at the age **before** the key, so an entry of another key could be returned:

\`\`\`rust
pub fn get(&self, key: &Key) -> Option<&Value> {
    // The key decides; the age only says whether it still counts.
    let entry = self.entries.get(key)?;
    (entry.age() < self.limit).then(|| &entry.value)
}
\`\`\`

What I did:

1. The key is looked up first.
2. A test names the behavior: \`an entry of another key is never returned\`.

| Case | before | now |
|:--|--:|--:|
| same key, fresh | hit | hit |
| other key, fresh | **hit** | miss |

> The public API is as it was. See [the notes](https://docs.example/cache).
`;

const programs: Program[] = [
    {
        when: "^The cache",
        steps: [
            {
                content: [
                    thinking("The cache returns stale entries. Let me look at how the lookup works."),
                    text("I look at the cache and its tests."),
                    call("Read", { file_path: "{{cwd}}/src/cache.rs" }),
                    call("Grep", { pattern: "limit" }),
                    call("LS", { path: "{{cwd}}/src" }),
                ],
            },
            {
                content: [
                    call("TodoWrite", {
                        todos: [
                            {
                                content: "Find where entries are looked up",
                                status: "completed",
                                activeForm: "Finding",
                            },
                            {
                                content: "Look the key up first",
                                status: "in_progress",
                                activeForm: "Looking the key up first",
                            },
                            { content: "Write a test", status: "pending", activeForm: "Writing a test" },
                        ],
                    }),
                ],
            },
            {
                content: [
                    text("The age is checked before the key."),
                    call("Edit", {
                        file_path: "{{cwd}}/src/cache.rs",
                        old_string: "    if entry.age() < self.limit { Some(entry) } else { None }\n",
                        new_string:
                            "    let entry = self.entries.get(key)?;\n    (entry.age() < self.limit).then(|| &entry.value)\n",
                    }),
                ],
            },
            { content: [call("Bash", { command: "ls src && cat src/missing.rs" })] },
            { content: [text(answer)] },
        ],
    },
    {
        when: "^Then run",
        steps: [
            {
                content: [
                    text("I run the tests and remove the old build."),
                    call("Bash", {
                        command: "rm -rf target/old && touch built && cargo test --workspace -- --nocapture",
                    }),
                ],
            },
            { content: [text("All passed.")] },
        ],
    },
    {
        when: "^Which",
        steps: [
            {
                content: [
                    call("AskUserQuestion", {
                        questions: [
                            {
                                question: "Which storage is the cache to use?",
                                header: "Storage",
                                multiSelect: false,
                                options: [
                                    { label: "In memory", description: "Fast, and gone with the process" },
                                    { label: "On disk", description: "Survives restarts, needs a folder" },
                                ],
                            },
                        ],
                    }),
                ],
            },
            { content: [text("Good.")] },
        ],
    },
    {
        when: "^Plan",
        steps: [
            {
                content: [
                    call("ExitPlanMode", {
                        plan: "# Move the cache\n\n1. Read `src/cache.rs` and list who calls it\n2. Put the trait into a module of its own\n3. Run all tests\n\nNothing else is touched.",
                    }),
                ],
            },
            { content: [text("I begin.")] },
        ],
    },
    {
        when: "^slow",
        steps: [
            {
                content: [text("I am at it and will say more in a moment.")],
                chunk: 8,
                gate: "slow",
                gate_after_events: 6,
            },
        ],
    },
    { steps: [{ content: [text("Fine.")] }] },
];
const files = {
    "src/cache.rs":
        "fn get(&self, key: &Key) -> Option<&Value> {\n    if entry.age() < self.limit { Some(entry) } else { None }\n}\n",
    "src/lib.rs": "mod cache;\n",
};
const editor = {
    uri: "file:///w/src/cache.rs",
    path: "src/cache.rs",
    range: { start: { line: 11, character: 0 }, end: { line: 17, character: 0 } },
    languageId: "rust",
};

for (const theme of Object.keys(THEMES) as Theme[]) {
    test(`every state of the page is clean in ${theme}`, () =>
        inWorld(
            { programs, files, theme, height: 900, state: { theme, editor } },
            async ({ chat, project, server }) => {
                const { page } = chat;
                const idle = () => page.waitForSelector(".working", { state: "detached" });
                await look(chat, "01-welcome");
                await chat.say("The cache returns entries of other keys. Find out why and fix it.");
                await page.locator(".permission").waitFor();
                await look(chat, "02-edit-asked");
                await page.locator(".permission .primary").click();
                await page.waitForSelector("text=It was the order");
                await idle();
                await page.waitForSelector(".changes");
                await page.waitForSelector(".t-keyword");
                await look(chat, "03-answer");
                await page.locator(".changes .dock-open").click();
                await page.locator(".todos .dock-line").click();
                await look(chat, "04-dock-open");
                await page.locator(".scroller").evaluate((element) => element.scrollTo(0, 0));
                await page.waitForSelector(".to-latest");
                await page.locator(".card-line", { hasText: "Thought" }).click();
                await look(chat, "05-begin");
                await page.locator(".changes .dock-open").click();
                await page.locator(".todos .dock-line").click();
                await page.locator(".user").first().hover();
                await page.getByLabel("Go back to before this message").first().click();
                await page.locator(".preview").waitFor();
                await look(chat, "06-checkpoint");
                await page.locator(".checkpoint").getByText("Close").click();
                await page.getByText("Jump to latest").click();
                await chat.say("Then run the tests");
                await page.locator(".preview-command").waitFor();
                await page
                    .getByText("In this session")
                    .click()
                    .catch(() => undefined);
                await look(chat, "07-command-asked");
                await page.locator(".permission").getByText("Deny", { exact: true }).click();
                await idle();
                await chat.say("Which storage?");
                await page.locator(".question").waitFor();
                await look(chat, "08-question");
                await page.getByLabel("On disk").check();
                await page.locator(".question").getByText("Answer", { exact: true }).click();
                await idle();
                await server.request("agent/session/configure", { sessionId: chat.sessionId, mode: "plan" });
                await chat.say("Plan the move");
                await page.locator(".plan-text").waitFor();
                await look(chat, "09-plan");
                await page.locator(".question .primary").click();
                await idle();
                await chat.say("slow please");
                await project.held("slow");
                await chat.say("And then update the changelog");
                await chat.say("And tell me what is left to do");
                await page.waitForSelector("text=2 queued");
                await chat.prompt.fill("Look at @src/");
                await page.locator(".completion").waitFor();
                await look(chat, "10-queue-and-completion");
                await chat.prompt.fill("");
                await page.getByLabel(/^Mode:/).click();
                await look(chat, "11-modes");
                await page.keyboard.press("Escape");
                await project.release("slow");
                await page.waitForSelector(".queue", { state: "detached" });
                await idle();
                await page.locator(".meter button").click();
                await page.locator(".figures").first().waitFor();
                await look(chat, "12-meter");
                await page.keyboard.press("Escape");
                await chat.command({ name: "showSessions" });
                await page.locator(".session").first().waitFor();
                await page.locator(".session").first().hover();
                await look(chat, "13-sessions");
                await chat.update({
                    trusted: false,
                    connection: {
                        state: "crashed",
                        reason: "it was killed by signal 9.",
                        restartInMs: 4_000,
                        attempt: 1,
                    },
                });
                await page.locator(".banner.error").waitFor();
                await look(chat, "14-banners");
            },
        ));
}

const beside: Program[] = [
    changing("^Paint", "door.txt", { 2: "line 2, red", 9: "line 9, red" }, "The door is red."),
    { steps: [{ content: [text("Fine.")] }] },
];
const asking = {
    "door.txt": numbered(12),
    ".kode/settings.json": JSON.stringify({
        permissions: { allow: ["Bash(make:*)"], deny: ["Read(secrets/**)"] },
        hooks: { PreToolUse: [{ matcher: "Bash", hooks: [{ type: "command", command: "./check.sh" }] }] },
    }),
};

for (const theme of Object.keys(THEMES) as Theme[]) {
    test(`every page beside the conversation is clean in ${theme}`, () =>
        inWorld({ programs: beside, files: asking, theme, height: 900, state: { theme } }, async ({ chat }) => {
            const { page } = chat;
            await chat.say("Paint the door");
            await page.locator(".hunk-choice input").nth(1).waitFor();
            await page.locator(".hunk-choice input").nth(1).uncheck();
            await look(chat, "40-hunks-and-trust");
            await page.locator(".permission .primary").click();
            await page.waitForSelector("text=The door is red.");
            await page.waitForSelector(".working", { state: "detached" });
            await chat.say("/permissions");
            await page.locator(".command-output").waitFor();
            await look(chat, "41-command");
            await chat.command({ name: "showRules" });
            await page.locator(".rule-row").first().waitFor();
            await look(chat, "42-rules");
            await page.keyboard.press("Escape");
            await chat.command({ name: "showCheckpoints" });
            await page.locator(".checkpoint-row button").last().click();
            await page.locator(".checkpoint-row .preview").waitFor();
            await look(chat, "43-checkpoints");
        }));
}

const cramped: Program[] = [
    {
        when: "^Compare",
        steps: [
            {
                content: [
                    call("Write", { file_path: "{{cwd}}/rows.txt", content: "a row with some words in it\n".repeat(300) }),
                ],
            },
            {
                content: [
                    text(
                        `السعر الإجمالي خاطئ.\n\n\`\`\`\nconst sum = total([]);\n\`\`\`\n\n| Option | What it does when it is set | Where |\n|--|--|--|\n| server.option.number | Says with some words what it does | https://docs.example/a/long/address |\n`,
                    ),
                ],
            },
        ],
    },
];

/** Two changes that are too far apart for one hunk. */
const apart: Program[] = [changing("^Paint", "door.txt", { 2: "line 2, red", 25: "line 25, red" }, "The door is red.")];

test("every hunk of a diff is drawn like the first", () =>
    inWorld({ programs: apart, files: { "door.txt": numbered(30) } }, async ({ chat }) => {
        await chat.say("Paint the door");
        const hunks = chat.page.locator(".permission .hunk");
        await hunks.nth(1).waitFor({ state: "attached" });
        await look(chat, "44-two-hunks");
        const drawn = await hunks.evaluateAll((all) =>
            all.map((hunk) => {
                const added = hunk.querySelector(".line.added");
                if (!added) throw new Error("there is no added line");
                const { left, width } = added.getBoundingClientRect();
                const { color, fontSize, display } = getComputedStyle(added);
                return { left: Math.round(left), width: Math.round(width), color, fontSize, display };
            }),
        );
        assert.equal(drawn.length, 2);
        assert.deepEqual(drawn[1], drawn[0]);
    }));

test("a narrow view has everything", () =>
    inWorld({ programs, files, width: 300, height: 700, state: { editor } }, async ({ chat }) => {
        await chat.say("The cache returns entries of other keys. Find out why and fix it.");
        await chat.page.locator(".permission").waitFor();
        await look(chat, "20-narrow-asked");
        await chat.page.locator(".permission .primary").click();
        await chat.page.waitForSelector("text=It was the order");
        await chat.page.waitForSelector(".changes");
        await look(chat, "21-narrow-answer");
        const wide = await chat.page.evaluate(
            () => document.documentElement.scrollWidth > document.documentElement.clientWidth,
        );
        assert.equal(wide, false, "nothing is wider than the view");
    }));

for (const width of [300, 430]) {
    test(`menus and the meter are inside of a view of ${width} pixels`, () =>
        inWorld({ programs, files, width, height: 700 }, async ({ chat: { page }, chat }) => {
            await chat.say("hello");
            await page.waitForSelector("text=Fine.");
            const isInside = async (popup: string) => {
                const box = (await page.locator(popup).boundingBox()) ?? { x: -1, width: 0 };
                assert.ok(box.x >= 0 && box.x + box.width <= width, `${popup}: ${JSON.stringify(box)}`);
                assert.equal(await page.evaluate(() => document.scrollingElement?.scrollLeft), 0);
                await page.keyboard.press("Escape");
                await page.locator(popup).waitFor({ state: "detached" });
            };
            for (const name of ["chooseMode", "chooseModel"] as const) {
                await chat.command({ name });
                await page.locator(".menu-list").waitFor();
                await look(chat, `24-${name}-${width}`);
                await isInside(".menu-list");
            }
            await page.locator(".meter > button").click();
            await page.locator(".popover .figures").first().waitFor();
            await look(chat, `24-meter-${width}`);
            await isInside(".popover");
        }));
}

test("in a low and narrow view the way to answer and to stop is seen, and tables and code can be read", () =>
    inWorld({ programs: cramped, width: 280, height: 560 }, async ({ chat }) => {
        const { page } = chat;
        await chat.say("Compare");
        await page.locator(".permission").waitFor();
        await look(chat, "22-cramped-asked");
        for (const place of [".permission .primary", ".composer .stop"]) {
            const seen = await page.locator(place).evaluate((element) => {
                const { left, top, width, height } = element.getBoundingClientRect();
                const there = document.elementFromPoint(left + width / 2, top + height / 2);
                return there !== null && element.contains(there);
            });
            assert.equal(seen, true, `${place} is seen`);
        }
        await page.locator(".permission .primary").click();
        await page.locator(".markdown td").first().waitFor();
        await look(chat, "23-cramped-answer");
        for (const cell of await page.locator(".markdown td").all()) {
            const { width, height } = (await cell.boundingBox()) ?? { width: 0, height: 0 };
            assert.ok(width > height, "a cell is no column of letters");
        }
        const [first, second] = await page.locator(".markdown pre").evaluate((pre) => {
            const text = pre.textContent ?? "";
            const node = document.createTreeWalker(pre, NodeFilter.SHOW_TEXT);
            const leftOf = (word: string) => {
                node.currentNode = pre;
                while (node.nextNode()) {
                    const at = node.currentNode.textContent?.indexOf(word) ?? -1;
                    if (at < 0) continue;
                    const range = document.createRange();
                    range.setStart(node.currentNode, at);
                    range.setEnd(node.currentNode, at + word.length);
                    return range.getBoundingClientRect().left;
                }
                throw new Error(`${word} is not in ${text}`);
            };
            return [leftOf("const"), leftOf(";")];
        });
        assert.ok((first ?? 0) < (second ?? 0), "code runs from left to right");
    }));

test("a page without a model, and one without a server, are clean", async () => {
    await inWorld({ environment: { ANTHROPIC_API_KEY: "", ANTHROPIC_BASE_URL: "" } }, async ({ chat }) => {
        chat.answers["findModels"] = {
            found: [{ provider: "ollama", label: "Ollama", model: "qwen3:8b", detail: "localhost:11434" }],
        };
        await chat.load();
        await chat.page.waitForSelector("text=qwen3:8b");
        await look(chat, "30-no-model");
    });
    await inWorld(
        {
            state: {
                connection: {
                    state: "stopped",
                    reason: "kode-ls was not found.",
                    hint: "Install it, or say in the settings where it is.",
                    setup: "serverMissing",
                },
            },
        },
        async ({ chat }) => {
            await chat.page.waitForSelector("text=The server did not start");
            await look(chat, "31-no-server");
        },
    );
});

test("messages are headings, rows are walked by keys, and announcements are discrete", () =>
    inWorld({ programs, files }, async ({ chat }) => {
        const said: string[] = [];
        await chat.page.exposeFunction("announced", (words: string) => said.push(words));
        await chat.page.evaluate(() => {
            const region = document.querySelector("[role=status]");
            if (!region) throw new Error("there is no live region");
            new MutationObserver(() =>
                (window as unknown as { announced: (words: string) => void }).announced(
                    region.textContent ?? "",
                ),
            ).observe(region, { childList: true, characterData: true, subtree: true });
        });
        await chat.say("The cache returns entries of other keys. Find out why and fix it.");
        await chat.page.locator(".permission .primary").click();
        await chat.page.waitForSelector("text=It was the order");
        await chat.page.waitForSelector(".working", { state: "detached" });
        await chat.page.waitForFunction(() =>
            document.querySelector("[role=status]")?.textContent?.includes("finished"),
        );
        assert.deepEqual(
            said.map((words) => words.trim()),
            [
                "Kode is working.",
                "Kode asks for permission: Edit src/cache.rs",
                "Answered.",
                "Kode has finished.",
            ],
        );
        assert.equal(
            await chat.page
                .locator("[aria-live]:not([aria-live=off]), [role=log], [role=alert], [role=status]")
                .count(),
            1,
        );
        const headings = await chat.page.locator(".scroller h2").allTextContents();
        assert.ok(headings.includes("You") && headings.includes("Kode"));
        await chat.command({ name: "focusLastMessage" });
        const focused = () => chat.page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
        await chat.page.waitForFunction(() => document.activeElement?.classList.contains("row"));
        assert.equal(await focused(), "Kode");
        await chat.page.keyboard.press("Alt+ArrowUp");
        await chat.page.waitForFunction(() =>
            document.activeElement?.getAttribute("aria-label")?.startsWith("Tool: "),
        );
    }));
