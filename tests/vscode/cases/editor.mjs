// What the server asks of the editor: to save what it has changed, and what other language servers say.
import assert from "node:assert/strict";
import { eventually, test } from "../lib/runner.mjs";

const LINES = "one\ntwo\nthree\n";

test("what the agent changed in an open file is saved by the editor before a command looks at it", async (workbench) => {
    const window = await workbench.open({ "a.txt": LINES }, { "kode.agent.mode": "acceptEdits" });
    await window.openChat();
    await window.edit("a.txt");
    await window.prompt("save before you look");
    await eventually("what the command saw", async () => /The disk says:[^]*TWO/.test(await window.text("said")));
    assert.equal(window.read("a.txt"), LINES.replace("two", "TWO"));
    const isDirty = await window.run((vscode) => vscode.window.activeTextEditor.document.isDirty);
    assert.equal(isDirty, false);
});

test("the agent is told what other language servers say, and nothing that it published itself", async (workbench) => {
    const window = await workbench.open({ "a.txt": LINES });
    await window.openChat();
    await window.edit("a.txt");
    await window.run((vscode, memory) => {
        const { uri } = vscode.window.activeTextEditor.document;
        const diagnostic = (message, source) => {
            const made = new vscode.Diagnostic(new vscode.Range(1, 0, 1, 3), message, vscode.DiagnosticSeverity.Error);
            made.source = source;
            made.code = { value: "E7", target: uri };
            return made;
        };
        memory.collection = vscode.languages.createDiagnosticCollection("test");
        memory.collection.set(uri, [diagnostic("two is too many", "counter"), diagnostic("do not tell", "kode")]);
    });
    await window.prompt("what is wrong here");
    const said = await eventually("the answer", async () => /They say: [^]+/.exec(await window.text("said"))?.[0]);
    assert.match(said, /two is too many/);
    assert.match(said, /E7/);
    assert.doesNotMatch(said, /do not tell/);
});
