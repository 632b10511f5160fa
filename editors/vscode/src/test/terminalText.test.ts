// Tests of output for a terminal: colors pass, sequences that act do not, however the output is cut into pieces.
//
// Rule: the sequences are those of real programs and of hostile ones.

import assert from "node:assert/strict";
import test from "node:test";

import { TerminalText } from "../logic/terminalText.ts";

/** The text of a terminal for these pieces. */
function shown(pieces: readonly string[]): string {
    const text = new TerminalText();
    return pieces.map((piece) => text.next(piece)).join("") + text.end();
}

const CASES: [what: string, output: string, expected: string][] = [
    ["line ends", "a\nb\r\nc\n", "a\r\nb\r\nc\r\n"],
    ["colors and styles", "\u001b[1;32mok\u001b[0m \u001b[38:2::1:2:3mx\u001b[m", "\u001b[1;32mok\u001b[0m \u001b[38:2::1:2:3mx\u001b[m"],
    ["a cursor that moves up and erases", "one\n\u001b[1A\u001b[2Ktwo", "one\r\ntwo"],
    ["a title and a clipboard", "\u001b]0;title\u0007a\u001b]52;c;aGk=\u001b\\b", "ab"],
    ["a device string, a charset and a reset", "\u001bPq#0\u001b\\a\u001b(Bb\u001bcc", "abc"],
    ["a bell, a backspace and one-byte sequences", "a\u0007b\u0008c\u009b2Jd", "abc2Jd"],
    ["text that changes its direction", "a\u202eb", "ab"],
    ["a tab, and progress on one line", "a\t1%\r2%", "a\t1%\r2%"],
];

for (const [what, output, expected] of CASES) {
    test(`output for a terminal: ${what}, in one piece and in all pairs of pieces`, () => {
        assert.equal(shown([output]), expected);
        for (let cut = 0; cut <= output.length; cut++) {
            assert.equal(shown([output.slice(0, cut), output.slice(cut)]), expected, `cut at ${cut}`);
        }
    });
}

test("output for a terminal: an unfinished sequence is held back, but not for ever", () => {
    const text = new TerminalText();
    assert.equal(text.next("a\u001b]0;never"), "a");
    assert.equal(text.next("x".repeat(10_000)).includes("xxx"), true);
    const colors = new TerminalText();
    assert.equal(colors.next("a\u001b[3"), "a");
    assert.equal(colors.next("1mred"), "\u001b[31mred");
});
