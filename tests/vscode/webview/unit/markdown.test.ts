// Texts that grow are cut into blocks, links lead only where they may, and hidden characters show.
//
// Rule: whatever way a text comes in, piece by piece or at once, it is cut into the same blocks.

import assert from "node:assert/strict";
import test from "node:test";

import {
    cutBlocks,
    NO_BLOCKS,
    openFence,
    type Blocks,
} from "../../../../editors/vscode/src/webview/markdown/blocks";
import { codeTarget, fileLocation, linkTarget } from "../../../../editors/vscode/src/webview/markdown/links";
import { exact, exactLine, plainLine, prose, span, tokens } from "../../../../editors/vscode/src/webview/text";

const TEXT = `# Title

Some *words* in a
paragraph that go on.

- one
- two

  with a second paragraph

1. first

\`\`\`rust
fn main() {}

// still code
\`\`\`

> quoted

| a | b |
|---|---|
| 1 | 2 |

The end without a line break`;

function grown(text: string, sizes: () => number): Blocks {
    let blocks = NO_BLOCKS;
    let before = "";
    for (let at = 0; at < text.length;) {
        at = Math.min(text.length, at + sizes());
        const now = text.slice(0, at);
        blocks = cutBlocks(blocks, before, now);
        assert.equal(blocks.closed.join("") + blocks.open, now, "nothing is lost or doubled");
        before = now;
    }
    return blocks;
}

test("a text is cut into the same blocks whatever the pieces it came in", () => {
    const whole = cutBlocks(NO_BLOCKS, "", TEXT);
    assert.equal(whole.closed.length, 7);
    let seed = 7;
    const random = () => 1 + ((seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) % 17);
    for (let round = 0; round < 50; round += 1) assert.deepEqual(grown(TEXT, random), whole);
    assert.deepEqual(
        grown(TEXT, () => 1),
        whole,
    );
});

test("closed blocks are never touched again", () => {
    const before = cutBlocks(NO_BLOCKS, "", TEXT);
    const after = cutBlocks(before, TEXT, `${TEXT}\n\nMore\n\nand more`);
    assert.deepEqual(after.closed.slice(0, before.closed.length), before.closed);
});

test("a text that is another one is cut anew", () => {
    const before = cutBlocks(NO_BLOCKS, "", TEXT);
    assert.deepEqual(cutBlocks(before, TEXT, "a\n\nb"), cutBlocks(NO_BLOCKS, "", "a\n\nb"));
});

test("a fence that is open is code up to its end", () => {
    assert.deepEqual(openFence("```ts\nlet a"), { info: "ts", code: "let a" });
    assert.deepEqual(openFence("~~~\nx\n~~~\n"), { info: "", code: "x\n" });
    assert.equal(openFence("``` a`b\nx"), undefined);
    assert.equal(openFence("words"), undefined);
});

const REFUSED = [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    " javascript:alert(1)",
    "java\tscript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "command:workbench.action.terminal.new",
    "vscode://x/y",
    "vscode-insiders:x",
    "blob:x",
    "ftp://x/y",
    "//evil.example/x",
    "#here",
    "?x",
    "",
    "file:///a%00b",
    "a%zz",
    "ssh://x",
    "mailto:",
    "chrome://settings",
    "about:blank",
    "x".repeat(3_000),
];
for (const href of REFUSED.filter((href) => href !== "mailto:")) {
    test(`no link leads to ${JSON.stringify(href.slice(0, 40))}`, () =>
        assert.equal(linkTarget(href), undefined));
}

test("links lead to the web and to files, at their lines", () => {
    assert.deepEqual(linkTarget("https://a.example/b?c#d"), { kind: "web", href: "https://a.example/b?c#d" });
    assert.deepEqual(linkTarget("src/a.rs:12"), { kind: "file", path: "src/a.rs", line: 12 });
    assert.deepEqual(linkTarget("main.rs:12:4"), { kind: "file", path: "main.rs", line: 12, column: 4 });
    assert.deepEqual(linkTarget("a%20b.md#L3-L9"), { kind: "file", path: "a b.md", line: 3, endLine: 9 });
    assert.deepEqual(linkTarget("file:///tmp/x.rs#L2"), { kind: "file", path: "/tmp/x.rs", line: 2 });
});

test("code is a link only when it looks like a file with a place", () => {
    assert.deepEqual(codeTarget("src/a.rs"), { kind: "file", path: "src/a.rs" });
    assert.deepEqual(codeTarget("a.rs:10"), { kind: "file", path: "a.rs", line: 10 });
    for (const code of ["a.b", "foo()", "x: y", "1.5", "a.rs", "rm -rf /", "<b>", "https://a.example/x.js"]) {
        assert.equal(codeTarget(code), undefined, code);
    }
});

test("a file is opened where it lies, by a URI that nothing in its name can bend", () => {
    const target = { kind: "file", path: "a b/ü#?.rs", line: 3 } as const;
    assert.deepEqual(fileLocation(target, "file:///w"), {
        uri: "file:///w/a%20b/%C3%BC%23%3F.rs",
        range: { start: { line: 2, character: 0 }, end: { line: 2, character: 0 } },
    });
    assert.equal(fileLocation({ kind: "file", path: "a" }, undefined), undefined);
});

test("what could paint over a command or hide in it is visible", () => {
    assert.equal(exact("rm \u202etxt.exe"), "rm ⟨U+202E⟩txt.exe");
    assert.equal(exact("a\u200bb\u00adc\u{e0041}"), "a⟨U+200B⟩b⟨U+00AD⟩c⟨U+E0041⟩");
    assert.equal(exact("a\u001b[31mb\rc"), "a⟨U+001B⟩[31mb\nc");
    assert.equal(exactLine("a\nb"), "a ⏎ b");
});

test("prose keeps the letters of all scripts and loses what turns text around", () => {
    assert.equal(prose("שלום \u200f👩\u200d💻 नमस्\u200dते"), "שלום \u200f👩\u200d💻 नमस्\u200dते");
    assert.equal(prose("a\u202eb\u2066c"), "a⟨U+202E⟩b⟨U+2066⟩c");
});

test("figures are short", () => {
    assert.deepEqual([999, 1_000, 12_345, 345_678, 2_000_000].map(tokens), [
        "999",
        "1k",
        "12.3k",
        "346k",
        "2M",
    ]);
    assert.deepEqual([400, 59_000, 61_000, 3_700_000].map(span), ["0.4 s", "59 s", "1 min 1 s", "1 h 1 min"]);
});

test("the beginning of an answer is shown without the marks of Markdown", () => {
    const shown = {
        "`gross` rounds to **cents** now.": "gross rounds to cents now.",
        "## Result\n\n- one [file](src/a.rs)\n- two\n": "Result one file two",
        "```py\na = b * c * d\n```": "a = b * c * d",
        "2 * 3 * 4, __init__ and a_b_c": "2 * 3 * 4, init and a_b_c",
        "an ``a`b`` in it": "an a`b in it",
    };
    for (const [markdown, line] of Object.entries(shown)) assert.equal(plainLine(markdown), line);
});
