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
    const ghosts = marksOf([hunk, diagnosed, applied, removed, { ...hunk, state: "applied" }], 1);
    assert.deepEqual(
        ghosts.map(({ ghost }) => ghost),
        ["⟶ new", "⟶ new  (adds 1 error)", "adds 1 error", "adds 1 error", ""],
    );
    assert.equal(diagnosticsBlock(hunk), "");
    assert.equal(
        diagnosticsBlock(diagnosed),
        "````text\nThis change adds 1 error.\na.rs:1:1 error: ```\n````",
    );
});
