// One session in two editors: VS Code with the chat as users have it, and Neovim with our plugin, each with a server of its own.
//
// Rule: every act is a key or a click in one editor, and its effect is checked in the other.
import assert from "node:assert/strict";
import { Neovim } from "../lib/neovim.mjs";
import { eventually, test } from "../lib/runner.mjs";

/** The buttons that answer a prompt in the chat. */
const button = (window, name) => window.chat.getByRole("button", { name, exact: true });

test("a prompt of VS Code is answered in Neovim, and one of Neovim in VS Code", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await window.ready();
    await window.command("kode.chat.focus");
    const prompt = window.chat.getByRole("textbox", { name: "Prompt" });
    await prompt.fill("hello");
    await prompt.press("Enter");
    await window.chat.getByText("Hello from the scripted model, piece by piece.").first().waitFor();
    await window.status(/ready/);

    const neovim = await Neovim.start(window, "a.txt");
    try {
        await neovim.command("Kode resume");
        await neovim.shows("Hello from the scripted model, piece by piece.");
        // VS Code writes the session: its prompt is shown and answered in Neovim.
        await prompt.fill("make it");
        await prompt.press("Enter");
        await button(window, "Allow").waitFor();
        await neovim.shows("2  Allow once");
        assert.equal(window.exists("made-it"), false);
        await neovim.type("<C-\\><C-N>]p");
        await eventually("Neovim takes keys", async () =>
            (await neovim.lua("require('kode.surface').latest().transcript:is_settled()")) === "true");
        await neovim.type("2");
        await eventually("the command ran", () => window.exists("made-it"));
        await window.chat.getByText("It said:").first().waitFor();
        await button(window, "Allow").waitFor({ state: "detached" });
        await window.status(/ready/);
        await neovim.shows("It said:");
        assert.equal(await neovim.waiting(), 0);

        // Neovim writes the session: its prompt is shown and answered in VS Code.
        await neovim.command("Kode takeover");
        await eventually("Neovim writes", async () => (await neovim.lua("require('kode').session().following == nil")) === "true");
        await neovim.command("Kode send make it again");
        await button(window, "Allow").waitFor();
        await window.chat.getByText("Waiting for your answer").waitFor();
        assert.equal(await neovim.waiting(), 1);
        await window.shot("two-editors");
        await button(window, "Deny").click();
        await button(window, "Allow").waitFor({ state: "detached" });
        await eventually("nothing waits in Neovim", async () => (await neovim.waiting()) === 0);
        assert.match((await workbench.results()).at(-1), /refused/);
    } finally {
        await neovim.stop();
    }
});
