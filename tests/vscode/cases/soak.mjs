// Typing while the agent works: not a character is lost or misplaced, and nothing moves the user.
//
//   KODE_VSCODE_SOAK_MINUTES=10 KODE_VSCODE_SCHEDULES=200 KODE_LS_BIN=… tests/vscode/run 'edits|schedule'
//
// Rule: variables set its duration; short or long, each round asserts the same.
import assert from "node:assert/strict";
import { eventually, test } from "../lib/runner.mjs";
import { SCHEDULE_EDITS, SHARED_EDITS, SOAK, soakFile, soakText } from "./script.mjs";

/** How long the typing continues at least; one turn of 30 edits in any case. */
const SOAK_MINUTES = Number(process.env.KODE_VSCODE_SOAK_MINUTES ?? 0);

/** How many random schedules of typing and edits are run. */
const SCHEDULES = Number(process.env.KODE_VSCODE_SCHEDULES ?? 3);

/** Remembers every editor that becomes the active one from now on. */
const watchEditors = (window) =>
    window.run((vscode, memory) => {
        memory.active = [];
        vscode.window.onDidChangeActiveTextEditor((editor) => memory.active.push(editor?.document.uri.path ?? "none"));
    });

const editorsSeen = (window) => window.run((_, memory) => memory.active);

/** Types one turn long; answers how much was typed, and how many edits were made meanwhile. */
async function typeDuringTurn(window, round) {
    const before = await window.buffer("mine.txt");
    const ended = (await window.text("done")).length;
    await window.prompt("soak");
    let typed = "";
    for (let word = 0; ; word++) {
        const piece = word % 12 === 11 ? `r${round}w${word}\n` : `r${round}w${word} `;
        await window.page.keyboard.type(piece, { delay: 8 });
        typed += piece;
        if ((await window.text("done")).length > ended && word > 60) break;
        assert.ok(word < 5_000, "the turn does not end");
    }
    await eventually("all that was typed", async () => (await window.buffer("mine.txt")) === before + typed);
    let changed = 0;
    for (let number = 0; number < SOAK.files; number++) {
        changed += (await window.buffer(soakFile(number))).match(/was changed/g)?.length ?? 0;
    }
    assert.equal(changed, SOAK.edits);
    return typed.length;
}

/** Gives files back the text that they had, as the user would: in their buffers, saved. */
const giveBack = (window, files, text) =>
    window.run(
        async (vscode, _, files, text) => {
            for (const file of files) {
                const document = vscode.workspace.textDocuments.find(({ uri }) => uri.fsPath === file);
                const edit = new vscode.WorkspaceEdit();
                const end = document.lineAt(document.lineCount - 1).range.end;
                edit.replace(document.uri, new vscode.Range(new vscode.Position(0, 0), end), text);
                await vscode.workspace.applyEdit(edit);
                await document.save();
            }
        },
        files.map((file) => window.path(file)),
        text,
    );

test("30 edits in other open files move neither a typed character nor the active editor", async (workbench) => {
    const files = { "mine.txt": "" };
    const others = Array.from({ length: SOAK.files }, (_, number) => soakFile(number));
    for (const file of others) files[file] = soakText("agent", 20);
    const window = await workbench.open(files, { "kode.agent.mode": "acceptEdits" });
    await window.openChat();
    for (const file of others) await window.edit(file);
    await window.edit("mine.txt");
    await watchEditors(window);
    const end = Date.now() + SOAK_MINUTES * 60_000;
    let characters = await typeDuringTurn(window, 0);
    let rounds = 1;
    while (Date.now() < end) {
        await giveBack(window, others, soakText("agent", 20));
        characters += await typeDuringTurn(window, rounds++);
    }
    assert.deepEqual(await editorsSeen(window), []);
    console.log(`      ${characters} characters typed during ${rounds * SOAK.edits} edits, 0 misplaced`);
});

/**
 * Types into the active editor from now on: characters of which each is there only once, at random places, some of them in the
 * lines that the agent is about to change. It types as people do: quickly for a while, then not for a while.
 */
const beginTyping = (window, seed, pauseMs = 20) =>
    window.run(async (vscode, memory, first, pauseMs) => {
        const [burstMs, restMs] = [600, 400];
        const editor = vscode.window.activeTextEditor;
        const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
        let seed = first;
        const random = (below) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
        memory.typed = [];
        memory.stop = false;
        memory.typing = (async () => {
            let rest = Date.now() + burstMs;
            while (!memory.stop) {
                if (Date.now() > rest) {
                    await sleep(restMs);
                    rest = Date.now() + burstMs;
                }
                const line = random(editor.document.lineCount);
                const isOverlap = random(4) === 0;
                const length = editor.document.lineAt(line).text.length;
                const place = new vscode.Position(line, isOverlap ? random(length + 1) : length);
                const character = String.fromCodePoint(0x4e00 + memory.typed.length);
                const options = { undoStopBefore: false, undoStopAfter: false };
                if (await editor.edit((edit) => edit.insert(place, character), options)) memory.typed.push(character);
                await sleep(random(pauseMs));
            }
        })();
    }, seed, pauseMs);

/** Ends the typing; answers the typed text. */
const endTyping = (window) =>
    window.run(async (_, memory) => {
        memory.stop = true;
        await memory.typing;
        return memory.typed;
    });

test("typing into the very file that the agent edits loses no character of the user's", async (workbench) => {
    const window = await workbench.open(
        { "shared.txt": soakText("agent", SHARED_EDITS * 2) },
        { "kode.agent.mode": "acceptEdits" },
    );
    await window.openChat();
    await window.edit("shared.txt");
    await watchEditors(window);
    await beginTyping(window, 42);
    await window.prompt("shared");
    await eventually("the end", async () => (await window.text("done")) !== "", 120_000);
    const typed = await endTyping(window);
    const text = await window.buffer("shared.txt");
    const lost = typed.filter((character) => text.split(character).length !== 2);
    assert.deepEqual(lost, []);
    assert.deepEqual(await editorsSeen(window), []);
    const changed = (text.match(/was changed/g) ?? []).length;
    assert.ok(changed > 0, "the agent changed something");
    // A turn takes as long as its edits: a fast one leaves time for few characters.
    assert.ok(typed.length >= SHARED_EDITS / 2, `only ${typed.length} characters were typed`);
    console.log(`      ${typed.length} characters typed into it, 0 lost; ${changed} of ${SHARED_EDITS} edits made`);
});

test("random schedules of typing and edits in a dirty document lose no character of the user's", async (workbench) => {
    const original = soakText("agent", SCHEDULE_EDITS * 10);
    const window = await workbench.open({ "dirty.txt": original }, { "kode.agent.mode": "acceptEdits" });
    await window.openChat();
    await window.edit("dirty.txt");
    await watchEditors(window);
    let characters = 0;
    let changes = 0;
    for (let number = 0; number < SCHEDULES; number++) {
        if (number > 0) await giveBack(window, ["dirty.txt"], original);
        const ended = (await window.text("done")).length;
        await beginTyping(window, 7919 * number + 1, 60);
        await window.prompt("schedule");
        await eventually("the end", async () => (await window.text("done")).length > ended, 120_000);
        const typed = await endTyping(window);
        const text = await window.buffer("dirty.txt");
        const lost = typed.filter((character) => text.split(character).length !== 2);
        assert.deepEqual(lost, [], `schedule ${number}`);
        characters += typed.length;
        changes += (text.match(/was changed/g) ?? []).length;
    }
    assert.deepEqual(await editorsSeen(window), []);
    assert.ok(changes > 0, "the agent changed something");
    console.log(`      ${SCHEDULES} schedules: ${characters} characters typed, 0 lost; ${changes} edits made`);
});
