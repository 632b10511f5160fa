// Rounds of comments: the prompt, and the answers.

import assert from "node:assert/strict";
import test from "node:test";
import { answersOf, promptOf } from "../logic/comments.ts";

const comment = { path: "src/a.ts", first: 4, last: 6, lines: "one\ntwo\n", words: " Why two? " };

test("the agent is told each comment with its number, its place and its lines", () => {
    const prompt = promptOf([comment, { ...comment, first: 9, last: 9, lines: "nine", words: "Shorter." }]);
    assert.match(prompt, /^I have 2 comments on your changes\./);
    assert.match(prompt, /Comment 1 on src\/a\.ts, lines 4 to 6:\n> one\n> two\n\nWhy two\?/);
    assert.match(prompt, /Comment 2 on src\/a\.ts, line 9:\n> nine\n\nShorter\./);
    const long = promptOf([{ ...comment, lines: "x\n".repeat(100) }]);
    assert.equal(long.split("\n").filter((line) => line === "> x").length, 40);
    assert.match(long, /> \(60 more lines\)/);
});

test("an answer is taken apart by the numbers, however they are written", () => {
    for (const [first, second] of [
        ["Comment 1: ", "Comment 2: "],
        ["**Comment 1:** ", "**Comment 2:** "],
        ["## Comment 1\n", "## Comment 2\n"],
        ["- **Comment 1** – ", "- **Comment 2** – "],
        ["comment 1. ", "comment 2) "],
    ]) {
        const text = `I have changed it.\n\n${first}It was needed.\nMore of it.\n\n${second}Done.`;
        assert.deepEqual(answersOf(text, 2), ["It was needed.\nMore of it.", "Done."], first);
    }
});

test("what is not answered by number is not answered, and other numbers are words", () => {
    assert.deepEqual(answersOf("All done.", 2), [undefined, undefined]);
    assert.deepEqual(answersOf("Comment 2: yes\nComment 7: no", 2), [undefined, "yes\nComment 7: no"]);
});
