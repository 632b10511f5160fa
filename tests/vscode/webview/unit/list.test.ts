// Rows of transcripts, and diffs.
//
// Rule: a row keeps its key and identity as long as its items do; a diff loses no line.

import assert from "node:assert/strict";
import test from "node:test";

import type { Item, ToolCall } from "../../../../protocol/generated/kode";
import { readDiff } from "../../../../editors/vscode/src/webview/cards/readDiff";
import { rowsOf } from "../../../../editors/vscode/src/webview/store/rows";
import { putItem, transcriptOf } from "../../../../editors/vscode/src/webview/store/transcript";

const call = (index: number, name: string, state: ToolCall["state"] = "COMPLETED"): Item => ({
    itemId: `item_${index}`,
    turnId: "turn",
    timestamp: "",
    body: {
        type: "toolCall",
        callId: `c${index}`,
        name,
        title: name,
        kind: "readOnly",
        input: {},
        state,
        display: "",
        audit: [],
    },
});
const words = (index: number, text: string, complete = true): Item => ({
    itemId: `item_${index}`,
    turnId: "turn",
    timestamp: "",
    body: { type: "agentMessage", text, complete, interrupted: false },
});

test("looks at files that follow each other are one row, over pages too", () => {
    const looks = Array.from({ length: 130 }, (_, index) => call(index, index % 2 === 0 ? "Read" : "Grep"));
    const rows = rowsOf(transcriptOf([...looks, words(200, "So."), call(201, "Read")], false));
    assert.deepEqual(
        rows.map((row) => row.kind),
        ["looks", "item", "looks"],
    );
    assert.equal(rows[0]?.kind === "looks" && rows[0].items.length, 130);
});

test("what failed or waits stands alone, and what says nothing has no row", () => {
    const rows = rowsOf(
        transcriptOf([call(1, "Read"), call(2, "Read", "FAILED"), words(3, " "), call(4, "Bash")], false),
    );
    assert.deepEqual(
        rows.map((row) => row.key),
        ["item_1", "item_2", "item_4"],
    );
});

test("a row keeps its key and its identity while others come", () => {
    const before = transcriptOf(
        Array.from({ length: 640 }, (_, index) => words(index, "x")),
        false,
    );
    const first = rowsOf(before);
    const second = rowsOf(putItem(before, words(639, "xy")));
    assert.equal(first.filter((row, index) => row !== second[index]).length <= 64, true);
    assert.equal(first[0], second[0]);
});

test("a diff is read file by file, and lines that look like headers are lines", () => {
    const [file, other] = readDiff(
        "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n--- b\n+++ c\n@@ -9 +9,2 @@ fn\n-d\n+e\n+f\n\\ No newline at end of file\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+g\n",
    );
    assert.deepEqual([file?.path, file?.added, file?.removed, file?.hunks.length], ["x", 3, 2, 2]);
    assert.deepEqual([other?.path, other?.added, other?.removed], ["new", 1, 0]);
    assert.deepEqual(
        file?.hunks[0]?.lines.map((line) => [line.kind, line.text]),
        [
            ["same", "a"],
            ["removed", "-- b"],
            ["added", "++ c"],
        ],
    );
    assert.deepEqual(file?.hunks[1]?.lines.at(-1), { kind: "note", text: "No newline at end of file" });
    assert.equal(file?.cut, undefined);
    const [part] = readDiff("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+\\ b\n\\ The rest is left out\n");
    assert.deepEqual([part?.cut, part?.hunks[0]?.lines.length], ["The rest is left out", 3]);
});
