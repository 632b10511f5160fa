// The scene of the README's animation, played by keys in the real workbench; started by `run --pictures`.
//
// Rule: every frame is a picture of the page as it is; nothing is drawn into it. A frame is taken when the page shows what the
// frame is for, and never after a time.
import fs from "node:fs";
import path from "node:path";
import { eventually } from "./lib/runner.mjs";
import { Workbench } from "./lib/workbench.mjs";

const SIZE = { width: 1180, height: 700 };
const FILE = "greeting.py";
const GREETING = `"""Greets people."""


def greet(name):
    return "Helo, " + name


def main():
    print(greet("world"))
`;

const text = (words) => ({ type: "text", text: words });
const call = (name, input) => ({ type: "tool_use", name, input });
const script = {
    programs: [
        {
            steps: [
                { content: [text("I read the file first."), call("Read", { file_path: `{{cwd}}/${FILE}` })] },
                {
                    content: [
                        text("The greeting has a typo."),
                        call("Edit", { file_path: `{{cwd}}/${FILE}`, old_string: "Helo", new_string: "Hello" }),
                    ],
                },
                { content: [text("`greet` says *Hello* now. The line that you typed meanwhile is kept.")] },
            ],
        },
    ],
};

const tools = JSON.parse(process.env.KODE_VSCODE_TOOLS);
const workbench = await Workbench.start(tools, script);
try {
    await play();
    console.log("workbench: 1 passed, 0 failed");
} finally {
    await workbench.stop();
}

async function play() {
    const window = await workbench.open({ [FILE]: GREETING }, { "editor.fontSize": 15, "breadcrumbs.enabled": false });
    const { page } = window;
    await page.setViewportSize(SIZE);
    await window.ready();
    await window.edit(FILE);
    await window.command("kode.chat.focus");
    const prompt = window.chat.getByRole("textbox", { name: "Prompt" });
    await prompt.waitFor();

    // Milliseconds that each frame is shown.
    const shown = [];
    const frame = async (duration) => {
        await page.mouse.move(SIZE.width - 20, SIZE.height - 60);
        await window.shot(`frame-${String(shown.length).padStart(2, "0")}`);
        shown.push(duration);
    };

    await frame(900);
    await page.keyboard.type("Fix the typo in the greeting");
    await frame(1_300);
    await page.keyboard.press("Enter");
    const allow = window.chat.locator(".permission .primary");
    await allow.waitFor();
    await frame(2_600);

    await window.edit(FILE);
    await page.keyboard.press("Control+End");
    const words = "\n\n# typed while the agent waits";
    for (const part of ["", words.slice(0, 14), words]) {
        const before = await window.buffer(FILE);
        const missing = (GREETING + part).slice(before.length);
        await page.keyboard.type(missing);
        await eventually("the typed text is in the buffer", async () => (await window.buffer(FILE)) === GREETING + part);
        if (part !== "") await frame(700);
    }
    await allow.click();
    await window.chat.getByText("is kept").first().waitFor();
    await window.status(/ready/);
    await eventually("the edit is in the buffer", async () => (await window.buffer(FILE)).includes('"Hello, "'));
    await eventually("the change is marked", async () => (await page.locator(".codelens-decoration a").count()) > 0);
    await frame(2_600);

    await page.locator(".codelens-decoration a", { hasText: /Keep/ }).first().click();
    await eventually("the change is kept", async () => (await page.locator(".codelens-decoration a").count()) === 0);
    await frame(2_000);
    fs.writeFileSync(path.join(tools.out, "frames.json"), JSON.stringify(shown));
}
