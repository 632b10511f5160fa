// Typing while the agent works: not a character is lost or misplaced, and nothing moves the user.
import assert from "node:assert/strict";
import { eventually, test } from "../lib/runner.mjs";
import { SHARED_EDITS, SOAK, soakFile, soakText } from "./script.mjs";

/** Remembers every editor that becomes the active one from now on. */
const watchEditors = (window) =>
    window.run((vscode, memory) => {
        memory.active = [];
        vscode.window.onDidChangeActiveTextEditor((editor) => memory.active.push(editor?.document.uri.path ?? "none"));
    });

const editorsSeen = (window) => window.run((_, memory) => memory.active);

test("30 edits in other open files move neither a typed character nor the active editor", async (workbench) => {
    const files = { "mine.txt": "" };
    for (let number = 0; number < SOAK.files; number++) files[soakFile(number)] = soakText("agent", 20);
    const window = await workbench.open(files, { "kode.agent.mode": "acceptEdits" });
    await window.openChat();
    for (let number = 0; number < SOAK.files; number++) await window.edit(soakFile(number));
    await window.edit("mine.txt");
    await watchEditors(window);
    await window.prompt("soak");

    let typed = "";
    for (let word = 0; ; word++) {
        const piece = word % 12 === 11 ? `w${word}\n` : `w${word} `;
        await window.page.keyboard.type(piece, { delay: 8 });
        typed += piece;
        if ((await window.text("done")) !== "" && word > 60) break;
        assert.ok(word < 5_000, "the turn does not end");
    }
    await eventually("all that was typed", async () => (await window.buffer("mine.txt")) === typed);
    assert.deepEqual(await editorsSeen(window), []);
    let changed = 0;
    for (let number = 0; number < SOAK.files; number++) {
        changed += (await window.buffer(soakFile(number))).match(/was changed/g).length;
    }
    assert.equal(changed, SOAK.edits);
    console.log(`      ${typed.length} characters typed during ${changed} edits, 0 misplaced`);
});

test("typing into the very file that the agent edits loses no character of the user's", async (workbench) => {
    const window = await workbench.open(
        { "shared.txt": soakText("agent", SHARED_EDITS * 2) },
        { "kode.agent.mode": "acceptEdits" },
    );
    await window.openChat();
    await window.edit("shared.txt");
    await watchEditors(window);
    // The user's characters, each of which is there only once, at random places, some of them in the lines that the agent
    // is about to change.
    await window.run(async (vscode, memory) => {
        const editor = vscode.window.activeTextEditor;
        const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
        let seed = 42;
        const random = (below) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
        memory.typed = [];
        memory.stop = false;
        memory.typing = (async () => {
            while (!memory.stop) {
                const line = random(editor.document.lineCount);
                const isOverlap = random(4) === 0;
                const length = editor.document.lineAt(line).text.length;
                const place = new vscode.Position(line, isOverlap ? random(length + 1) : length);
                const character = String.fromCodePoint(0x4e00 + memory.typed.length);
                const options = { undoStopBefore: false, undoStopAfter: false };
                if (await editor.edit((edit) => edit.insert(place, character), options)) memory.typed.push(character);
                await sleep(random(20));
            }
        })();
    });
    await window.prompt("shared");
    await eventually("the end", async () => (await window.text("done")) !== "", 120_000);
    const typed = await window.run(async (_, memory) => {
        memory.stop = true;
        await memory.typing;
        return memory.typed;
    });
    const text = await window.buffer("shared.txt");
    const lost = typed.filter((character) => text.split(character).length !== 2);
    assert.deepEqual(lost, []);
    assert.deepEqual(await editorsSeen(window), []);
    const changed = (text.match(/was changed/g) ?? []).length;
    assert.ok(changed > 0, "the agent changed something");
    assert.ok(typed.length >= 50, `only ${typed.length} characters were typed`);
    console.log(`      ${typed.length} characters typed into it, 0 lost; ${changed} of ${SHARED_EDITS} edits made`);
});
