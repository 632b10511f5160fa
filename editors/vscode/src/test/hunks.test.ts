// Finding hunks by cursor and change.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Hunk, HunkState } from "kode-protocol";
import { hunksAtLine, hunksOfChange, step } from "../logic/hunks.ts";

function hunk(hunkId: string, start: number, end: number, state: HunkState = "applied"): Hunk {
    const position = { line: start, character: 0 };
    return {
        hunkId,
        turnId: "turn_1",
        callId: "call_1",
        kind: "text",
        state,
        range: { start: position, end: position },
        lineRange: { start, end },
        oldText: "",
        newText: "",
        added: 0,
        removed: 0,
        amended: false,
    };
}

const ids = (hunks: Hunk[]) => hunks.map(({ hunkId }) => hunkId);

/** A change of the lines from `start` to `end`, counted from 1, `end` 0 for lines taken out behind `start`. */
function change(start: number, end: number) {
    return {
        originalStartLineNumber: 1,
        originalEndLineNumber: 1,
        modifiedStartLineNumber: start,
        modifiedEndLineNumber: end,
    };
}

test("a change of the editor is found by its lines", () => {
    const hunks = [hunk("a", 2, 4), hunk("b", 4, 6), hunk("c", 9, 10)];
    assert.deepEqual(ids(hunksOfChange(hunks, change(3, 4))), ["a"]);
    assert.deepEqual(ids(hunksOfChange(hunks, change(3, 6))), ["a", "b"], "the editor joins what touches");
    assert.deepEqual(ids(hunksOfChange(hunks, change(10, 10))), ["c"]);
    assert.deepEqual(ids(hunksOfChange(hunks, change(7, 9))), []);
});

test("lines that were taken out are found by the place they stood in", () => {
    const hunks = [hunk("top", 0, 0), hunk("gone", 5, 5)];
    assert.deepEqual(ids(hunksOfChange(hunks, change(5, 0))), ["gone"]);
    assert.deepEqual(ids(hunksOfChange(hunks, change(0, 0))), ["top"]);
});

test("what is not in the text is no part of a change", () => {
    const hunks = [hunk("asked", 2, 4, "proposed"), hunk("open", 2, 4, "conflict")];
    assert.deepEqual(ids(hunksOfChange(hunks, change(3, 4))), ["open"]);
});

test("the hunk at the cursor is meant, or the only one there is", () => {
    const two = [hunk("a", 2, 4), hunk("b", 7, 7)];
    assert.deepEqual(ids(hunksAtLine(two, 3)), ["a"]);
    assert.deepEqual(ids(hunksAtLine(two, 7)), ["b"]);
    assert.deepEqual(ids(hunksAtLine(two, 5)), []);
    assert.deepEqual(ids(hunksAtLine([hunk("a", 2, 4)], 40)), ["a"]);
});

test("next and previous go through all files and around their end", () => {
    const files = [
        { uri: "file:///a", hunks: [hunk("1", 2, 3), hunk("2", 8, 9)] },
        { uri: "file:///b", hunks: [hunk("3", 1, 2)] },
    ];
    const at = (uri: string, line: number) => ({ uri, line });
    assert.deepEqual(step(files, at("file:///a", 2), "next"), at("file:///a", 8));
    assert.deepEqual(step(files, at("file:///a", 8), "next"), at("file:///b", 1));
    assert.deepEqual(step(files, at("file:///b", 1), "next"), at("file:///a", 2));
    assert.deepEqual(step(files, at("file:///a", 2), "previous"), at("file:///b", 1));
    assert.deepEqual(step(files, at("file:///b", 0), "previous"), at("file:///a", 8));
    assert.deepEqual(step(files, at("file:///other", 5), "next"), at("file:///a", 2));
    assert.deepEqual(step(files, undefined, "previous"), at("file:///b", 1));
    assert.equal(step([], at("file:///a", 0), "next"), undefined);
});
