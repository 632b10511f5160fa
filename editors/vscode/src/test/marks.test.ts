// The marks of proposals in the text.
//
// Rule: as in all unit tests of the extension, no editor.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { Hunk } from "kode-protocol";

import { diagnosticsBlock, marksOf } from "../logic/marks.ts";

const position = { line: 0, character: 0 };
const hunk: Hunk = {
    hunkId: "a",
    turnId: "turn_1",
    callId: "call_1",
    kind: "text",
    state: "proposed",
    range: { start: position, end: position },
    lineRange: { start: 0, end: 1 },
    oldText: "old\n",
    newText: "new\n",
    added: 1,
    removed: 1,
    amended: false,
};

test("a hunk shows what language servers say to it, behind its lines and in the hover", () => {
    const diagnosed: Hunk = { ...hunk, diagnostics: { summary: "adds 1 error", lines: ["a.rs:1:1 error: ```"] } };
    const applied: Hunk = { ...diagnosed, state: "applied" };
    const removed: Hunk = { ...applied, newText: "", lineRange: { start: 0, end: 0 } };
    const marks = marksOf([hunk, diagnosed, applied, removed, { ...hunk, state: "applied" }], 1);
    assert.deepEqual(
        marks.map(({ verdict, ghosts }) => [verdict, ...ghosts.map(({ text }) => text)]),
        [["", "⟶ new"], ["", "⟶ new  (adds 1 error)"], ["adds 1 error"], ["adds 1 error"], [""]],
    );
    assert.equal(diagnosticsBlock(hunk), "");
    assert.equal(
        diagnosticsBlock(diagnosed),
        "````text\nThis change adds 1 error.\na.rs:1:1 error: ```\n````",
    );
});

/** A proposal for lines of a file of ten. */
function proposal(start: number, oldText: string, newText: string) {
    const end = start + oldText.split("\n").length - 1;
    const [marks] = marksOf([{ ...hunk, oldText, newText, lineRange: { start, end } }], 10);
    assert.ok(marks);
    return { ...marks, hunk: undefined };
}

test("of a proposal the lines that would go are marked, and each has behind it the line that would come instead", () => {
    const two = proposal(3, "let a = 1;\n  let b = 2;\n", "let a = 10;\n  let b = 20;\n");
    assert.equal(two.kind, "removed");
    assert.deepEqual([two.first, two.end], [3, 5]);
    assert.deepEqual(two.ghosts, [
        { line: 3, text: "⟶ let a = 10;" },
        { line: 4, text: "⟶ let b = 20;" },
    ]);
    assert.deepEqual(
        two.words.map(({ line }) => line),
        [3, 4],
    );
});

test("lines that a proposal would add beyond those that go are behind the last one, the first few of many", () => {
    const grown = proposal(3, "a\n", "A\nb\n");
    assert.deepEqual(grown.ghosts, [{ line: 3, text: "⟶ A  ⏎ b" }]);
    const many = proposal(3, "", "1\n2\n3\n4\n5\n6\n");
    assert.equal(many.kind, "inserted");
    assert.deepEqual(many.ghosts, [{ line: 2, text: "⏎ 1  ⏎ 2  ⏎ 3  ⏎ 4  (+2 more)" }]);
    assert.deepEqual(proposal(0, "", "1\n").ghosts, [{ line: 0, text: "⏎ 1" }]);
    const gone = proposal(3, "a\nb\n", "");
    assert.deepEqual([gone.kind, gone.ghosts.length], ["removed", 0]);
});
