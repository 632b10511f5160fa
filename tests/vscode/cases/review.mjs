// Keeping and undoing what the agent has changed, in the editor's own places.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { eventually, test } from "../lib/runner.mjs";

const LINES = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n";
const CHANGED = "one\nTWO\nand a half\nthree\nfour\nfive\nsix\nseven\nEIGHT\nnine\n";

/** A window in which the agent has changed two places of an open file. */
async function changed(workbench, options = {}) {
    const window = await workbench.open({ "a.txt": LINES }, { "kode.agent.mode": "acceptEdits" }, options);
    await window.openChat();
    await window.edit("a.txt");
    await window.prompt("change two places");
    await eventually("the end", async () => (await window.text("done")) !== "");
    assert.equal(await window.buffer("a.txt"), CHANGED);
    return window;
}

/** The file's own text as the baseline has it. */
const baseline = (window) =>
    window.run(async (vscode) => {
        const found = vscode.workspace.textDocuments.find(({ uri }) => uri.scheme === "kode-baseline");
        return found?.getText() ?? null;
    });

/** Marks of whole lines, and of words in them. */
const marks = (window) => window.page.locator('.monaco-editor .view-overlays [class*="ced-"]');
/** The widths of marks that are no whole lines, in characters. */
const wordMarks = (window) =>
    marks(window).evaluateAll((all) => {
        const line = document.querySelector(".monaco-editor .view-lines").clientWidth;
        const one = document.querySelector(".monaco-editor .view-line span span").getBoundingClientRect();
        const letter = one.width / document.querySelector(".monaco-editor .view-line span span").textContent.length;
        return all.map((mark) => mark.clientWidth).filter((width) => width < line - 20).map((width) => Math.round(width / letter));
    });

/** Shows the hover at a line of the active editor. */
async function hoverAt(window, line) {
    await window.run((vscode, _, line) => {
        const place = new vscode.Position(line, 1);
        vscode.window.activeTextEditor.selection = new vscode.Selection(place, place);
    }, line);
    const hover = window.page.locator(".monaco-hover", { hasText: "Comment" }).first();
    // The editor asks once: a hover that came before the change did has to be asked for again.
    await eventually("a hover on the change", async () => {
        // A hover that is open stays as it is.
        await window.command("editor.action.hideHover");
        await window.command("editor.action.showHover", { focus: "noAutoFocus" });
        await hover.waitFor({ timeout: 3_000 });
        return true;
    });
    return hover;
}

const bars = (window) => window.page.locator(".monaco-editor .dirty-diff-glyph");

test("changed lines have bars, and the inline view keeps and undoes a change", async (workbench) => {
    const window = await changed(workbench);
    await eventually("two bars", async () => (await bars(window).count()) >= 2);
    assert.equal(await baseline(window), LINES);
    await window.shot("review-bars");

    await window.page.keyboard.press("Control+Home");
    await window.command("editor.action.dirtydiff.next");
    const peek = window.page.locator(".peekview-widget");
    await peek.waitFor();
    await window.shot("review-inline");
    await peek.locator('[aria-label^="Keep This Change"]').first().click();
    await eventually("the baseline has the kept change", async () =>
        (await baseline(window)) === CHANGED.replace("EIGHT", "eight"),
    );
    assert.equal(await window.buffer("a.txt"), CHANGED);

    await eventually("the inline view is closed", async () => {
        await window.edit("a.txt");
        await window.page.keyboard.press("Escape");
        return (await peek.count()) === 0;
    });
    await window.command("editor.action.dirtydiff.next");
    await peek.filter({ hasText: "1 of 1 change" }).waitFor();
    await peek.locator('[aria-label^="Undo This Change"]').first().click();
    await eventually("the second change is undone", async () =>
        (await window.buffer("a.txt")) === CHANGED.replace("EIGHT", "eight"),
    );
    await eventually("no bars", async () => (await bars(window).count()) === 0);
});

test("in a git repository changed lines are marked, and a hover shows what was there, keeps and undoes", async (workbench) => {
    const window = await changed(workbench, { git: true });
    await eventually("three marked lines", async () => (await marks(window).count()) >= 3);
    await window.shot("review-marks");
    const hover = await hoverAt(window, 8);
    await hover.getByText("-eight").waitFor();
    await hover.getByText("+EIGHT").waitFor();
    await window.shot("review-hover");
    await hover.getByText("Undo", { exact: true }).click();
    await eventually("the change is undone", async () => (await window.buffer("a.txt")) === CHANGED.replace("EIGHT", "eight"));
    await eventually("two marked lines", async () => (await marks(window).count()) === 2);
    await (await hoverAt(window, 1)).getByText("Comment", { exact: true }).click();
    await window.page.locator(".review-widget .comment-form").waitFor();
    await window.edit("a.txt");
    await (await hoverAt(window, 1)).getByText("Keep", { exact: true }).click();
    await eventually("no marks", async () => (await marks(window).count()) === 0);
    assert.equal(await window.buffer("a.txt"), CHANGED.replace("EIGHT", "eight"));
});

test("changed words of a line are marked, and marks move with what is typed above", async (workbench) => {
    const files = { "a.txt": "let total = price * count;\nend\n" };
    const window = await workbench.open(files, { "kode.agent.mode": "acceptEdits" }, { git: true });
    await window.openChat();
    await window.edit("a.txt");
    await window.prompt("change a word");
    await eventually("the end", async () => (await window.text("done")) !== "");
    await eventually("the word is marked", async () => (await wordMarks(window)).join() === String("amount".length));
    await window.page.keyboard.press("Control+Home");
    await window.page.keyboard.type("mine\n");
    await eventually("the same word", async () => (await wordMarks(window)).join() === String("amount".length));
    await window.page.keyboard.press("Control+Z");
});

test("a proposed change says which errors it would add, and one in the text which it has added", async (workbench) => {
    const command = path.join(path.dirname(workbench.tools.server), "fault-language-server");
    assert.ok(fs.existsSync(command), `${command} is missing: build it with cargo build --workspace --bins`);
    const settings = path.join(workbench.box, "home/.kode-ls/settings.json");
    fs.mkdirSync(path.dirname(settings), { recursive: true });
    const words = { command, args: [""], extensionToLanguage: { ".word": "words" }, sandbox: false };
    fs.writeFileSync(settings, JSON.stringify({ lspServers: { words } }));
    const window = await workbench.open({ "a.word": "def alpha\ntwo\nhmm\n" });
    await window.openChat();
    await window.edit("a.word");
    // The editor's own server finds only names in the text.
    await window.run((vscode, memory) => {
        memory.words = vscode.languages.createDiagnosticCollection("words");
        const check = (document) => {
            const at = document.getText().indexOf("oops");
            const range = new vscode.Range(document.positionAt(at), document.positionAt(at + 4));
            memory.words.set(document.uri, at < 0 ? [] : [new vscode.Diagnostic(range, "no word")]);
        };
        vscode.workspace.onDidChangeTextDocument(({ document }) => check(document));
    });
    await window.prompt("spoil a word");
    await window.status(/question/);
    const says = (expected) =>
        eventually(expected, async () => ((await (await hoverAt(window, 2)).textContent()) ?? "").includes(expected));
    await says("This change adds 1 error, fixes 1 warning.");
    await (await hoverAt(window, 2)).getByText("Allow", { exact: true }).click();
    await eventually("the end", async () => (await window.text("done")) !== "");
    await says("This change adds 1 error.");
    await window.shot("review-diagnostics");
    await window.run(async (vscode) => {
        const edit = new vscode.WorkspaceEdit();
        edit.replace(vscode.window.activeTextEditor.document.uri, new vscode.Range(2, 0, 2, 4), "fine");
        await vscode.workspace.applyEdit(edit);
    });
    await eventually("the error is gone", async () => !((await (await hoverAt(window, 2)).textContent()) ?? "").includes("adds"));
    fs.rmSync(settings);
});

test("a proposal is edited in its diff and allowed in the title, and the diff closes", async (workbench) => {
    const window = await workbench.open({ "a.txt": LINES }, {}, { git: true });
    const session = await window.openChat();
    await window.prompt("change a place");
    await window.status(/question/);
    await eventually("the proposal", async () => {
        await window.act("openDiff", { sessionId: session, uri: `file://${window.path("a.txt")}` });
        return window.run((vscode) => {
            const { input } = vscode.window.tabGroups.activeTabGroup.activeTab ?? {};
            return input instanceof vscode.TabInputTextDiff && input.modified.scheme === "kode-proposal";
        });
    });
    await window.run(async (vscode) => {
        const editor = vscode.window.visibleTextEditors.find(({ document }) => document.uri.scheme === "kode-proposal");
        const at = editor.document.getText().indexOf("TWO");
        const place = editor.document.positionAt(at + 3);
        await editor.edit((edit) => edit.insert(place, " by hand"));
    });
    await window.shot("review-proposal");
    await window.page.locator('.editor-actions [aria-label^="Allow"]').first().click();
    await eventually("the end", async () => (await window.text("done")) !== "");
    await eventually("what was edited", () => window.read("a.txt") === LINES.replace("two", "TWO by hand"));
    await eventually("the diff is closed", () =>
        window.run((vscode) =>
            vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs).every(({ input }) => input?.modified?.scheme !== "kode-proposal"),
        ),
    );
});

test("a proposal that is denied in the title of its diff changes nothing", async (workbench) => {
    const window = await workbench.open({ "a.txt": LINES }, {}, { git: true });
    const session = await window.openChat();
    await window.prompt("change a place");
    await window.status(/question/);
    await window.act("openDiff", { sessionId: session, uri: `file://${window.path("a.txt")}` });
    await window.page.locator('.editor-actions [aria-label^="Deny"]').first().click();
    await eventually("the end", async () => (await window.text("done")) !== "");
    assert.equal(window.read("a.txt"), LINES);
});

/** The texts that are drawn behind lines and are in no document. */
const ghosts = (window) =>
    window.page.locator(".monaco-editor .view-line span span").evaluateAll((all) =>
        all.map((part) => getComputedStyle(part, "::after").content).filter((content) => content !== "none" && content !== "normal"),
    );

/** The texts of the lines that are struck through. */
const struck = (window) =>
    window.page.locator(".monaco-editor .view-line span span").evaluateAll((all) =>
        all.filter((part) => getComputedStyle(part).textDecorationLine.includes("line-through")).map((part) => part.textContent),
    );

const ranges = (window) => window.page.locator(".monaco-editor .comment-range-glyph");

test("a proposal is drawn in the open file, what would go struck and what would come behind it, and is allowed there", async (workbench) => {
    const window = await workbench.open({ "a.txt": LINES });
    await window.openChat();
    await window.edit("a.txt");
    await window.prompt("change a place");
    await window.status(/question/);
    await eventually("the line that would go", async () => (await struck(window)).join() === "two");
    await eventually("the line that would come", async () => (await ghosts(window)).some((text) => text.includes("⟶ TWO")));
    assert.equal(await window.buffer("a.txt"), LINES, "nothing is in the text yet");
    await window.shot("review-ghost");
    await window.page.locator(".codelens-decoration a", { hasText: "Allow +1 -1" }).first().click();
    await eventually("the end", async () => (await window.text("done")) !== "");
    await eventually("the change", async () => (await window.buffer("a.txt")) === LINES.replace("two", "TWO"));
    await eventually("no proposal is drawn", async () => (await struck(window)).length + (await ghosts(window)).length === 0);
});

test("a proposal that is denied at its lines leaves nothing there, nor a place for comments", async (workbench) => {
    const window = await workbench.open({ "a.txt": LINES });
    await window.openChat();
    await window.edit("a.txt");
    await window.prompt("change a place");
    await window.status(/question/);
    await eventually("a place for comments", async () => (await ranges(window).count()) > 0);
    await window.page.locator(".codelens-decoration a", { hasText: "Deny" }).first().click();
    await eventually("the end", async () => (await window.text("done")) !== "");
    await eventually("nothing is drawn", async () => (await struck(window)).length + (await ghosts(window)).length === 0);
    await eventually("no place for comments", async () => (await ranges(window).count()) === 0);
    assert.equal(await window.buffer("a.txt"), LINES);
});

test("undoing a created file that is open removes it", async (workbench) => {
    const window = await workbench.open({ "a.txt": LINES }, { "kode.agent.mode": "acceptEdits" }, { git: true });
    await window.openChat();
    await window.prompt("create a file");
    await eventually("the end", async () => (await window.text("done")) !== "");
    await window.edit("new.txt");
    await eventually("the file is marked", async () => (await marks(window).count()) >= 1);
    await window.command("kode.review.undoFile");
    await eventually("the file is gone", () => !window.exists("new.txt"));
    assert.equal(await window.git("status", "--porcelain", "--", "new.txt"), "");
});

test("keys go from change to change and keep and undo the one at the cursor", async (workbench) => {
    const window = await changed(workbench);
    await eventually("the keys are on", async () => (await bars(window).count()) >= 2);
    const line = () => window.run((vscode) => vscode.window.activeTextEditor.selection.active.line);
    await window.edit("a.txt");
    await window.page.keyboard.press("Control+Home");
    await window.page.keyboard.press("Control+Alt+ArrowDown");
    await eventually("the first change", async () => (await line()) === 1);
    await window.page.keyboard.press("Control+Alt+ArrowDown");
    await eventually("the second change", async () => (await line()) === 8);
    await window.page.keyboard.press("Control+Alt+Backspace");
    await eventually("it is undone", async () => (await window.buffer("a.txt")) === CHANGED.replace("EIGHT", "eight"));
    await window.page.keyboard.press("Control+Alt+ArrowUp");
    await eventually("back at the first", async () => (await line()) === 1);
    await window.page.keyboard.press("Control+Alt+Enter");
    await eventually("nothing is left", async () => (await bars(window).count()) === 0);
    assert.equal(await window.buffer("a.txt"), CHANGED.replace("EIGHT", "eight"));

    await window.command("kode.review.takeBack");
    await eventually("the last decision is taken back", async () => (await bars(window).count()) >= 1);
});

test("a change that the user has typed into is undone only when they say so again", async (workbench) => {
    const window = await changed(workbench);
    await window.page.keyboard.press("Control+Home");
    await window.page.keyboard.press("ArrowDown");
    await window.page.keyboard.press("End");
    await window.page.keyboard.type(" of mine");
    const typed = CHANGED.replace("TWO", "TWO of mine");
    await eventually("the words are there", async () => (await window.buffer("a.txt")) === typed);
    await window.command("kode.review.undo");
    const told = window.page.locator(".notification-toast", { hasText: "you have typed into 1 change" });
    await told.waitFor();
    await window.shot("review-conflict");
    assert.equal(await window.buffer("a.txt"), typed, "nothing of the user's is taken");
    await told.getByRole("button", { name: "Undo, Leaving What I Typed" }).click();
    const undone = LINES.replace("two", "two of mine").replace("eight", "EIGHT");
    await eventually("what the agent wrote is gone", async () => (await window.buffer("a.txt")) === undone);
});

test("the editor's undo takes back one call at a time", async (workbench) => {
    const window = await changed(workbench);
    await window.edit("a.txt");
    await window.page.keyboard.press("Control+Z");
    await eventually("one call", async () => (await window.buffer("a.txt")) === CHANGED.replace("EIGHT", "eight"));
    await window.page.keyboard.press("Control+Z");
    await eventually("both calls", async () => (await window.buffer("a.txt")) === LINES);
});

test("code lenses of the server keep and undo", async (workbench) => {
    const window = await changed(workbench);
    const lens = window.page.locator(".codelens-decoration a", { hasText: /^Kode: Undo$/ });
    await lens.first().waitFor();
    await lens.first().click();
    await eventually("the first change is undone", async () =>
        (await window.buffer("a.txt")) === LINES.replace("eight", "EIGHT"),
    );
});

test("all files are listed, opened as one diff with an editable side, and decided on together", async (workbench) => {
    const files = { "a.txt": LINES, "b.txt": LINES, "c.txt": LINES };
    const window = await workbench.open(files, { "kode.agent.mode": "acceptEdits" });
    await window.openChat();
    await window.prompt("change three files");
    await eventually("the end", async () => (await window.text("done")) !== "");
    const after = LINES.replace("two", "TWO");
    assert.deepEqual(["a.txt", "b.txt", "c.txt"].map((file) => window.read(file)), [after, after, after]);

    await window.command("workbench.view.scm");
    const rows = window.page.locator(".scm-view .monaco-list-row .resource");
    await eventually("three rows", async () => (await rows.count()) === 3);
    await window.shot("review-list");

    await window.command("kode.review.open");
    await eventually("one editor with three diffs", () =>
        window.run((vscode) => vscode.window.tabGroups.activeTabGroup.activeTab?.label.startsWith("Changes by Kode")),
    );
    await window.page.locator(".multiDiffEntry").first().waitFor();
    const title = window.page.locator(".editor-group-container.active .editor-actions");
    await title.locator('[aria-label^="Keep All"]').waitFor();
    await title.locator('[aria-label^="Undo All"]').waitFor();
    await window.shot("review-all");

    await rows.first().click();
    const sides = await eventually("one diff", () =>
        window.run((vscode) => {
            const { input } = vscode.window.tabGroups.activeTabGroup.activeTab ?? {};
            return input instanceof vscode.TabInputTextDiff && [input.original.scheme, input.modified.scheme];
        }),
    );
    assert.deepEqual(sides, ["kode-baseline", "file"], "the right side is the file itself");

    await window.command("kode.review.undoAll");
    await window.page.locator(".monaco-dialog-box", { hasText: "3 changes in 3 files" }).waitFor();
    await window.page.locator(".monaco-dialog-box a.monaco-button, .monaco-dialog-box .monaco-text-button", { hasText: "Undo All" }).click();
    await eventually("all is as it was", async () => {
        const texts = await Promise.all(["a.txt", "b.txt", "c.txt"].map(async (file) => (await window.buffer(file)) ?? window.read(file)));
        return texts.every((text) => text === LINES);
    });
});

test("changes are marked in the explorer, and are there again after a reload without the chat", async (workbench) => {
    const window = await changed(workbench);
    await window.command("workbench.action.files.save");
    const again = await workbench.open({ "a.txt": LINES }, { "kode.agent.mode": "acceptEdits" });
    await again.openChat();
    await again.prompt("change two places");
    await eventually("the end", async () => (await again.text("done")) !== "");
    await again.command("workbench.view.explorer");
    const mark = again.page.locator('.explorer-folders-view [aria-label*="changes by Kode to review"]');
    await mark.first().waitFor();
    await again.reload();
    await mark.first().waitFor({ timeout: 60_000 });
    await again.edit("a.txt");
    await eventually("the bars", async () => (await bars(again).count()) >= 2);
});

/** Writes a comment beside a line of an open file, as a user does. */
async function comment(window, file, line, words, index = 0) {
    await window.edit(file);
    await window.run((vscode, _, line) => {
        const place = new vscode.Position(line, 0);
        vscode.window.activeTextEditor.selection = new vscode.Selection(place, place);
    }, line);
    const widget = window.page.locator(".review-widget").nth(index);
    await eventually("the comment can be written", async () => {
        await window.command("workbench.action.addComment");
        await widget.waitFor({ timeout: 5_000 });
        return true;
    }, 40_000);
    await widget.locator(".comment-form .monaco-editor").waitFor();
    await widget.locator(".comment-form .monaco-editor").click();
    await window.page.keyboard.type(words);
    await widget.getByRole("button", { name: "Add Comment" }).click();
    await widget.getByText("Not sent yet").waitFor();
}

test("comments on changes are sent together, and answered where they were asked", async (workbench) => {
    const window = await changed(workbench);
    await eventually("the ledger", async () => (await bars(window).count()) >= 2);
    await comment(window, "a.txt", 1, "Make it louder.");
    await comment(window, "a.txt", 8, "Why this one?", 1);
    await window.shot("review-comments");
    // Twice, as an impatient user does: it is one round.
    await window.run((vscode) => {
        for (let press = 0; press < 2; press++) void vscode.commands.executeCommand("kode.comment.send");
    });
    await eventually("the end of the round", async () => (await window.text("done")) === "end_turn\nend_turn\n");
    const request = await (await fetch(`${workbench.modelUrl}/scripted/newest`)).text();
    for (const words of ["Make it louder.", "> TWO", "Why this one?", "> EIGHT"]) assert.ok(request.includes(words), words);
    const answer = window.page.locator(".review-widget", { hasText: "Make it louder." });
    // The input closes when it is sent, and an answer opens nothing by itself.
    await answer.waitFor({ state: "hidden" });
    await window.command("workbench.action.expandAllComments");
    await answer.getByText("It is [louder](command:x) now.").waitFor();
    assert.equal(await answer.locator("a[href^='command:'], a[data-href^='command:']").count(), 0);
    await window.page.locator(".review-widget", { hasText: "It stays as it is." }).waitFor();
    await window.command("kode.comment.send");
    await window.page.getByText("No comments to send").first().waitFor();
    await window.shot("review-answers");
});

test("what changed since a round of comments is opened by itself, beside what it was then", async (workbench) => {
    const files = { "a.txt": LINES, "b.txt": LINES, "c.txt": LINES };
    const window = await workbench.open(files, { "kode.agent.mode": "acceptEdits" });
    await window.openChat();
    await window.prompt("change three files");
    await eventually("the end", async () => (await window.text("done")) === "end_turn\n");
    await window.edit("b.txt");
    await eventually("the bars", async () => (await bars(window).count()) >= 1);
    await comment(window, "b.txt", 1, "And the end?");
    await window.command("kode.comment.send");
    await eventually("the end of the round", async () => (await window.text("done")) === "end_turn\nend_turn\n");
    await window.command("kode.review.openSince");
    const tab = await eventually("the diff", () =>
        window.run((vscode) => {
            const { label, input } = vscode.window.tabGroups.activeTabGroup.activeTab ?? {};
            if (!label?.startsWith("Changes by Kode since Your Comments")) return null;
            return input.textDiffs.map(({ original, modified }) => [original.scheme, modified.path.split("/").at(-1)]);
        }),
    );
    assert.deepEqual(tab, [["kode-since", "b.txt"]], "what is as it was is not shown");
    const then = await eventually("its left side", () =>
        window.run((vscode) => {
            const found = vscode.workspace.textDocuments.find(({ uri }) => uri.scheme === "kode-since");
            return found?.getText() ?? null;
        }),
    );
    assert.equal(then, LINES.replace("two", "TWO"), "it is compared with the text the comments were on");
    await window.shot("review-since");
});
