// A change asked for at the selection: the input, the progress, the change and the decision are in place.
//
// Rule: everything is done by keys and clicks in the editor, and the result is read from the buffer.
import assert from "node:assert/strict";
import { eventually, test } from "../lib/runner.mjs";

const LINES = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n";

/** A window with lines of a file selected. */
async function selected(workbench, first, last) {
    const window = await workbench.open({ "a.txt": LINES });
    await window.edit("a.txt");
    await window.ready();
    await window.run(
        (vscode, _, first, last) => {
            const editor = vscode.window.activeTextEditor;
            editor.selection = new vscode.Selection(first, 0, last, editor.document.lineAt(last).text.length);
        },
        first,
        last,
    );
    return window;
}

// The editor now and then shows a thread twice, when it is made while the editor collects the threads of the file:
// as two widgets, or as one widget with two inputs.
const widgets = (window) => window.page.locator(".review-widget:visible");
const widget = (window) => widgets(window).first();

/** The input that has the focus, in whichever widget. */
const focusedInput = (window) => widgets(window).locator(".comment-form .monaco-editor.focused");

/** Puts the focus into the input for a further prompt. Now and then the editor leaves the one of the first open and hides its button. */
async function openFurtherPrompt(window) {
    const button = widgets(window).locator(".review-thread-reply-button:visible");
    const open = widgets(window).locator(".comment-form .monaco-editor:visible");
    await eventually("the input has the focus", async () => {
        if ((await focusedInput(window).count()) > 0) return true;
        // It may be replaced under the click; then it is looked for again.
        await button.or(open).first().click({ timeout: 1_000 });
        return false;
    });
}

const closed = (window) => eventually("no widget is left", async () => (await widgets(window).count()) === 0);

/** Writes into the input that has the focus, and sends it. */
async function send(window, words) {
    await window.page.keyboard.type(words);
    const written = focusedInput(window).filter({ hasText: words.split(" ").at(-1) });
    await written.waitFor();
    // The editor takes the text in a moment after it shows it; a key before that sends nothing.
    await eventually("it is sent", async () => {
        await window.page.keyboard.press("Control+Enter");
        await written.waitFor({ state: "hidden", timeout: 3_000 });
        return true;
    });
}

/** Opens the input by its key, and writes into it. */
async function ask(window, words) {
    await window.page.locator(".monaco-editor.focused").first().waitFor();
    await window.page.keyboard.press("Control+Alt+'");
    await focusedInput(window).waitFor();
    await send(window, words);
}

/** The lines that are marked as added in the text. */
const marked = (window) => window.page.locator(".monaco-editor .view-overlays .cdr[class*='ced-']").count();

test("a change is asked for at the selection, drawn in place, refined by a further prompt, and accepted", async (workbench) => {
    const window = await selected(workbench, 1, 2);
    await ask(window, "change a place");
    await eventually("the change is in the text", async () => (await window.buffer("a.txt")) === LINES.replace("two", "TWO"));
    await widget(window).getByText("Changed by Kode").waitFor();
    await widget(window).getByText(/1\s+change\s+in\s+1\s+file/).waitFor();
    await eventually("it is marked in the text", async () => (await marked(window)) > 0);
    await window.shot("inline-changed");

    await openFurtherPrompt(window);
    await send(window, "refine the place");
    const refined = LINES.replace("two", "TWO").replace("three", "THREE");
    await eventually("the refined change is in the text", async () => (await window.buffer("a.txt")) === refined);
    await widget(window).getByText(/It\s+is\s+louder\s+now/).waitFor();

    await widget(window).locator("a", { hasText: "Accept" }).last().click();
    await closed(window);
    await eventually("nothing is left to decide", async () => (await marked(window)) === 0);
    assert.equal(await window.buffer("a.txt"), refined);
});

test("Escape in the input undoes all of it, and one that was never used is closed by it", async (workbench) => {
    const window = await selected(workbench, 1, 1);
    await window.page.keyboard.press("Control+Alt+'");
    await focusedInput(window).waitFor();
    await window.page.keyboard.press("Escape");
    await closed(window);
    assert.equal(await window.buffer("a.txt"), LINES);

    await window.run((vscode) => vscode.commands.executeCommand("workbench.action.focusActiveEditorGroup"));
    await ask(window, "change a place");
    await widget(window).getByText("Changed by Kode").waitFor();
    assert.equal(await window.buffer("a.txt"), LINES.replace("two", "TWO"));
    await openFurtherPrompt(window);
    await window.page.keyboard.press("Escape");
    await closed(window);
    await eventually("the text is as it was", async () => (await window.buffer("a.txt")) === LINES);
});

test("a change in place that needs an answer says so, and discarding it ends its turn", async (workbench) => {
    const window = await selected(workbench, 1, 1);
    await ask(window, "pick a color");
    await widget(window).getByText("Kode waits for your answer in the chat").waitFor();
    await window.status(/1 question for you/);
    await window.shot("inline-asking");
    await widget(window).locator("a", { hasText: "Stop and Discard" }).click();
    await closed(window);
    await window.status(/ready/);
    assert.equal(await window.buffer("a.txt"), LINES);
});
