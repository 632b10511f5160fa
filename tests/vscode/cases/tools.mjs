// Tools of other extensions: registered by our interface, or chosen among the language-model tools of the editor.
//
// Rule: what a tool did is read from what the model says of its result.
import assert from "node:assert/strict";
import { eventually, test } from "../lib/runner.mjs";

/** Sends a prompt, and allows its call once it is asked for. */
async function promptAndAllow(window, prompt) {
    await window.openChat();
    await window.prompt(prompt);
    await eventually("the prompt", async () => (await window.text("asked")) !== "");
    await window.ask("agent/permission/respond", { permissionId: await window.text("asked"), decision: "allow" });
}

test("an extension registers a tool, and its call is asked for and carried out", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await window.ready();
    await window.run(async (vscode) => {
        const kode = await vscode.extensions.getExtension("kode-ls.kode").activate();
        kode.registerTools("probe.tools", [
            {
                name: "count_words",
                description: "Counts the words of a text.",
                inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
                run: async ({ text }) => `it has ${text.split(" ").length} words`,
            },
        ]);
    });
    await promptAndAllow(window, "count the words");
    await eventually("the answer", async () => /I counted: it has 3 words/.test(await window.text("said")));
});

test("a language-model tool of an extension is offered where the setting names it", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await window.ready();
    await window.run((vscode) =>
        vscode.workspace.getConfiguration("kode").update("tools.ofExtensions", ["probe_note"], vscode.ConfigurationTarget.Global),
    );
    await promptAndAllow(window, "note this");
    await eventually("the answer", async () => /I noted: noted: tea/.test(await window.text("said")));
    assert.equal(await window.run((vscode) => vscode.lm.tools.some(({ name }) => name === "probe_note")), true);
});
