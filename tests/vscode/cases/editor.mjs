// The server's requests to the editor: saves of changed documents, and diagnostics.
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

test("the agent asks the language servers of the editor, and renames over unsaved text", async (workbench) => {
    const one = "// Doubles.\nexport function alpha(number: number): number {\n  return number * 2;\n}\n";
    const two = 'import { alpha } from "./one";\n\nexport function beta(): number {\n  // not alpha\n  return alpha(4);\n}\n';
    const files = { "tsconfig.json": "{}", "one.ts": one, "two.ts": two };
    const window = await workbench.open(files, { "kode.agent.mode": "acceptEdits" });
    await window.openChat();
    await window.edit("two.ts");
    // A variable that nothing declares, unsaved.
    await window.run(async (vscode) => {
        const edit = new vscode.WorkspaceEdit();
        const { uri } = vscode.window.activeTextEditor.document;
        edit.insert(uri, new vscode.Position(6, 0), "console.log(alpha(1), Math.max(alpa));\n");
        await vscode.workspace.applyEdit(edit);
    });
    await eventually("the editor's server has read the project", async () => {
        const places = await window.run(async (vscode) => {
            const { uri } = vscode.window.activeTextEditor.document;
            const position = new vscode.Position(4, 10);
            return (await vscode.commands.executeCommand("vscode.executeReferenceProvider", uri, position)).length;
        });
        return places >= 4;
    }, 60_000);
    await window.prompt("ask language servers");
    await eventually("the end", async () => /Renamed\./.test(await window.text("said")), 60_000);
    const results = await workbench.results();
    const [definition, implementation, references, hover, outline, found, callers, called, actions, format, rename, , edit] = results;
    assert.match(definition, /one\.ts:2-4/);
    assert.match(implementation, /one\.ts:2/);
    assert.match(references, /^4 lines in 2 files\none\.ts\n {2}2: .*\ntwo\.ts\n {2}1: .*\n {2}5: .*\n {2}7: /);
    assert.match(hover, /alpha\(number: number\): number/);
    assert.match(outline, /3-6 function beta/);
    assert.match(found, /one\.ts:2 function alpha/);
    assert.match(callers, /function beta[^]*two\.ts/);
    assert.match(called, /function alpha[^]*one\.ts/);
    assert.match(actions, /Change spelling to 'alpha'/);
    assert.doesNotMatch(actions, /Kode/);
    assert.match(format, /Formatted one\.ts|formatted already/);
    assert.match(rename, /^Renamed `alpha` to `omega` at 4 places in 2 files/);
    const expected = two.replace("{ alpha", "{ omega").replace("return alpha(4)", 'return omega("4")');
    assert.equal(await window.buffer("two.ts"), `${expected}console.log(omega(1), Math.max(alpa));\n`);
    // The editor may still have it open for the request.
    assert.match((await window.buffer("one.ts")) ?? window.read("one.ts"), /function omega/);
    // The client waits one second for the editor's servers. On a busy machine TypeScript publishes later, and the result has
    // no diagnostics then.
    if (/ new, /.test(edit)) {
        assert.match(edit, /1 new, 0 gone\nnew: two\.ts:5:\d+ error: Argument of type 'string' is not assignable/);
    } else {
        console.log("      TypeScript published later than a second after the edit: the result is without diagnostics");
        await eventually("TypeScript publishes the error", () =>
            window.run(async (vscode) => {
                const { uri } = vscode.window.activeTextEditor.document;
                return vscode.languages.getDiagnostics(uri).some(({ message }) => message.includes("'string' is not assignable"));
            }),
        );
    }
});
