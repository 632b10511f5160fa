// The call writes the user's version of a proposal.

import assert from "node:assert/strict";
import test from "node:test";

import { inputFor, isEditable, replacement } from "../logic/proposal.ts";

function random(seed: number): () => number {
    let state = seed;
    return () => {
        state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
        return state / 2_147_483_648;
    };
}

test("a passage occurs once and makes the wanted text, for random texts", () => {
    const next = random(7);
    const textOf = () => Array.from({ length: Math.floor(next() * 12) }, () => `${"ab"[Math.floor(next() * 2)]}\n`).join("");
    for (let round = 0; round < 3_000; round += 1) {
        const [current, wanted] = [textOf(), textOf() + (next() < 0.3 ? "end" : "")];
        const found = replacement(current, wanted);
        if (current === wanted) {
            assert.equal(found, undefined);
            continue;
        }
        assert.ok(found);
        if (current !== "") assert.equal(current.split(found.before).length, 2, JSON.stringify({ current, wanted, found }));
        assert.equal(current.replace(found.before, () => found.after), wanted);
    }
});

test("each tool takes the text in its own arguments, and keeps the others", () => {
    const input = { file_path: "/w/a.txt", old_string: "x", new_string: "y", replace_all: true };
    assert.deepEqual(inputFor("Edit", input, "one\r\ntwo\r\n", "one\nTWO\n"), {
        file_path: "/w/a.txt",
        old_string: "two\n",
        new_string: "TWO\n",
        replace_all: false,
    });
    assert.deepEqual(inputFor("MultiEdit", { file_path: "/w/a.txt", edits: [] }, "one\n", "1\n"), {
        file_path: "/w/a.txt",
        edits: [{ old_string: "one\n", new_string: "1\n" }],
    });
    assert.deepEqual(inputFor("Write", { file_path: "/w/a.txt", content: "" }, "", "all\n"), {
        file_path: "/w/a.txt",
        content: "all\n",
    });
    assert.equal(inputFor("Edit", input, "same\n", "same\n"), undefined);
    assert.equal(isEditable("NotebookEdit"), false);
});
