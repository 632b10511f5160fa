// Five paths of people in the real workbench, by mouse and keyboard: the first key, the first edit that is reviewed, a command
// that is denied, a session that is resumed, an answer that is copied. Prints for each what the hand does and how long the
// program takes; takes pictures on the way.
//
//   KODE_LS_BIN=target/release/kode-ls tests/vscode/run --paths
//
// Rule: a hand that waits for nothing but what it has to see. Seconds are those of the program: from the first click to the
// last that is seen, with a model that answers at once.
import fs from "node:fs";
import path from "node:path";
import { eventually } from "./lib/runner.mjs";
import { Workbench } from "./lib/workbench.mjs";

const SIZE = { width: 1180, height: 760 };
const FILE = "src/shop.py";
const SHOP = `"""Prices of a shop."""

RATES = {"de": 0.19, "dk": 0.25}


def gross(net, country):
    return net + net * RATES[country]


def total(items, country):
    return sum(gross(item.net, country) for item in items)
`;

const text = (words) => ({ type: "text", text: words });
const call = (name, input) => ({ type: "tool_use", name, input });
const ANSWER = `\`gross\` adds the rate of the country; an unknown country raises a \`KeyError\`:

\`\`\`python
def gross(net, country):
    return net + net * RATES[country]
\`\`\`

\`\`\`mermaid
flowchart LR
    items --> gross --> total
    RATES --> gross
\`\`\`

| country | rate |
| --- | --- |
| de | 19 % |
| dk | 25 % |

The sum of $n$ items is $\\sum_{i=1}^{n} p_i (1 + r)$.
`;
const script = {
    programs: [
        {
            when: "^Round",
            steps: [
                { content: [text("I read the file first."), call("Read", { file_path: `{{cwd}}/${FILE}` })] },
                {
                    content: [
                        call("Edit", {
                            file_path: `{{cwd}}/${FILE}`,
                            old_string: "    return net + net * RATES[country]",
                            new_string: "    return round(net * (1 + RATES[country]), 2)",
                        }),
                    ],
                },
                { content: [text("`gross` rounds to cents now.")] },
            ],
        },
        {
            when: "^Publish",
            steps: [
                { content: [text("The package is complete, so I publish it."), call("Bash", { command: "git push --force origin main" })] },
                { content: [text("I leave the branch as it is.")] },
            ],
        },
        {
            when: "^Test",
            steps: [
                { content: [call("Bash", { command: COLORS() })] },
                { content: [text("Three tests pass, and one is skipped.")] },
            ],
        },
        { when: "^Explain", steps: [{ content: [text(ANSWER)] }] },
        { steps: [{ content: [text("Hello.")] }] },
    ],
    quirks: { pages: { "/v1/models": { data: [{ id: "claude-sonnet-5" }, { id: "claude-opus-4-5" }] } } },
};

/** A command whose output has colors. */
function COLORS() {
    const passed = ["test_gross", "test_total", "test_empty"].map((name) => `\\033[32m✓\\033[0m ${name}`);
    return `printf '${[...passed, "\\033[33m- test_slow (skipped)\\033[0m", "\\033[1m3 passed\\033[0m, 1 skipped"].join("\\n")}\\n'`;
}

/** The hand of a person: it counts clicks, texts and keys, and takes the time of the program. */
class Hand {
    constructor(window) {
        this.window = window;
        this.clicks = 0;
        this.keys = 0;
        this.texts = 0;
    }

    begin() {
        this.begun ??= performance.now();
    }

    async click(locator) {
        await locator.waitFor();
        this.begin();
        this.clicks += 1;
        await locator.click();
    }

    async press(key) {
        this.begin();
        this.keys += 1;
        await this.window.page.keyboard.press(key);
    }

    async type(words) {
        this.begin();
        this.texts += 1;
        await this.window.page.keyboard.type(words);
    }

    /** A prompt, with Enter. */
    async ask(words) {
        await this.type(words);
        await this.press("Enter");
    }

    /** Pictures take time that is not the program's. */
    async shot(name) {
        const before = performance.now();
        await this.window.page.mouse.move(SIZE.width - 20, SIZE.height - 60);
        await this.window.shot(name);
        this.begun += performance.now() - before;
    }

    row(name) {
        const seconds = ((performance.now() - this.begun) / 1_000).toFixed(1);
        return `${name.padEnd(34)} ${[this.clicks, this.keys, this.texts].map((count) => String(count).padStart(6)).join(" ")} ${seconds.padStart(8)}`;
    }
}

const hasFocus = (prompt) =>
    eventually("the prompt has the focus", () =>
        prompt.evaluate((box) => box.ownerDocument.hasFocus() && box === box.ownerDocument.activeElement),
    );

/** Shows the chat and waits for its prompt. */
async function chat(window) {
    await window.page.setViewportSize(SIZE);
    await window.ready();
    await window.command("kode.chat.focus");
    const prompt = window.chat.getByRole("textbox", { name: "Prompt" });
    await prompt.waitFor();
    await hasFocus(prompt);
}

async function firstKey(window) {
    await window.page.setViewportSize(SIZE);
    await window.command("kode.chat.focus");
    const hand = new Hand(window);
    const { page } = window;
    const add = window.chat.getByRole("button", { name: "Add a key…" }).first();
    await add.waitFor();
    await eventually("the search of this machine has ended", async () => (await window.chat.getByText("Searching…").count()) === 0);
    await window.shot("first-key");
    await hand.click(add);
    await page.locator(".quick-input-title", { hasText: "Add a Model" }).waitFor();
    await hand.shot("first-key-providers");
    // A provider on this machine has one step more than others: its address.
    await hand.type("compatible");
    await hand.press("Enter");
    await page.locator(".quick-input-title", { hasText: "Address" }).waitFor();
    await hand.type(`${window.workbench.modelUrl}/v1`);
    await hand.press("Enter");
    await page.locator(".quick-input-widget input[type=password]").waitFor();
    await hand.type("sk-test-0123456789abcdef");
    await hand.press("Enter");
    await page.locator(".quick-input-list-row", { hasText: "answered" }).waitFor();
    await hand.shot("first-key-models");
    await hand.press("Enter");
    await window.chat.getByRole("heading", { name: "What should Kode do?" }).waitFor();
    const row = hand.row("the first key");
    await window.shot("begin");
    return row;
}

async function firstEdit(window) {
    await chat(window);
    await window.edit(FILE);
    await window.command("kode.chat.focus");
    await hasFocus(window.chat.getByRole("textbox", { name: "Prompt" }));
    const hand = new Hand(window);
    await hand.ask("Round prices to cents");
    const allow = window.chat.locator(".permission .primary");
    await allow.waitFor();
    await eventually("the request is in sight", () => allow.isEnabled());
    await hand.shot("edit-permission");
    await hand.click(allow);
    await window.chat.getByText("rounds to cents now").first().waitFor();
    const keep = window.page.locator(".codelens-decoration a", { hasText: /Keep/ }).first();
    await keep.waitFor();
    await hand.shot("edit-review");
    await hand.click(keep);
    await eventually("the change is kept", async () => (await window.page.locator(".codelens-decoration a").count()) === 0);
    return hand.row("the first edit, reviewed");
}

async function deniedCommand(window) {
    await window.command("kode.session.new");
    await chat(window);
    const hand = new Hand(window);
    await hand.ask("Publish the package");
    const deny = window.chat.getByRole("button", { name: "Deny", exact: true });
    await deny.waitFor();
    await hand.shot("command-permission");
    await hand.click(deny);
    await window.chat.getByText("I leave the branch as it is.").first().waitFor();
    const row = hand.row("a command, denied");
    await window.shot("command-denied");
    return row;
}

async function resumedSession(window) {
    await window.command("kode.session.new");
    await chat(window);
    const recent = window.chat.locator(".session").first();
    await recent.waitFor();
    await window.shot("recent");
    const hand = new Hand(window);
    await hand.click(recent.getByRole("button").first());
    await window.chat.getByText("I leave the branch as it is.").first().waitFor();
    return hand.row("a session, resumed");
}

async function copiedAnswer(window) {
    await window.command("kode.session.new");
    await chat(window);
    await window.page.keyboard.type("Explain gross");
    await window.page.keyboard.press("Enter");
    const copy = window.chat.getByRole("button", { name: "Copy the answer" }).last();
    await copy.waitFor();
    await window.chat.locator(".diagram").first().waitFor();
    // A browser asks before a page may read it; the desktop's editor has no such question.
    const origin = `http://127.0.0.1:${window.workbench.port}`;
    await window.page.context().grantPermissions(["clipboard-read", "clipboard-write"], { origin });
    const hand = new Hand(window);
    await hand.click(copy);
    await eventually("the answer is in the clipboard", async () =>
        (await window.run((vscode) => vscode.env.clipboard.readText())).startsWith("`gross` adds the rate"),
    );
    const row = hand.row("an answer, copied");
    await window.shot("answer");
    return row;
}

/** Pictures of what no path shows. */
async function others(window) {
    await window.command("kode.session.new");
    await chat(window);
    await window.page.keyboard.type("Test it");
    await window.page.keyboard.press("Enter");
    await window.chat.getByText("Three tests pass").first().waitFor();
    await window.chat.getByText("printf").first().click();
    await window.chat.getByText("1 skipped").first().waitFor();
    await window.shot("output");
    await window.command("kode.session.model");
    await window.chat.locator(".menu-item").first().waitFor();
    await window.shot("models");
    await window.page.keyboard.press("Escape");
    await window.command("kode.session.list");
    await window.chat.locator(".session").first().waitFor();
    await window.shot("sessions");
}

const tools = JSON.parse(process.env.KODE_VSCODE_TOOLS);
const rows = [];
const files = { [FILE]: SHOP, "README.md": "# Shop\n" };
const settings = { "breadcrumbs.enabled": false };
// Once without a key and once with one: a key of the environment is found by itself.
for (const [variables, paths] of [
    [{ ANTHROPIC_API_KEY: undefined, ANTHROPIC_BASE_URL: undefined, OLLAMA_HOST: "127.0.0.1:9" }, [firstKey]],
    [{}, [firstEdit, deniedCommand, resumedSession, copiedAnswer, others]],
]) {
    const workbench = await Workbench.start(tools, script, variables);
    try {
        const window = await workbench.open(files, settings, { git: true });
        for (const go of paths) {
            console.log(`-- ${go.name}`);
            rows.push(await go(window));
        }
    } catch (error) {
        await workbench.failed("paths");
        throw error;
    } finally {
        await workbench.stop();
    }
}
console.log(`${"path".padEnd(34)} clicks   keys  texts  seconds`);
for (const row of rows) if (row) console.log(row);
fs.writeFileSync(path.join(tools.out, "paths.txt"), `${rows.filter(Boolean).join("\n")}\n`);
console.log("workbench: 1 passed, 0 failed");
