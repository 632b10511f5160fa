// Colors of code as a theme has them.

import assert from "node:assert/strict";
import test from "node:test";

import { customized, tokenColors } from "../logic/themeColors.ts";

const RULES = [
    { scope: ["comment", "punctuation.definition.comment"], settings: { foreground: "#6A9955" } },
    { scope: "keyword", settings: { foreground: "#569cd6" } },
    { scope: "keyword.control, keyword.operator.new", settings: { foreground: "#C586C0" } },
    { scope: "source.css string", settings: { foreground: "#000000" } },
    { scope: "string", settings: { foreground: "#ce9178" } },
    { scope: "variable", settings: { foreground: "red; background: url(x)" } },
    { settings: { foreground: "#d4d4d4" } },
];

test("the longest selector of a theme counts, and what is no color is left out", () => {
    assert.deepEqual(tokenColors(RULES), {
        comment: "#6A9955",
        keyword: "#569cd6",
        control: "#C586C0",
        string: "#ce9178",
        regexp: "#ce9178",
        meta: "#C586C0",
    });
    const later = [...RULES, { scope: "comment", settings: { foreground: "#111111" } }];
    assert.equal(tokenColors(later).comment, "#111111");
});

test("colors of the user come behind those of the theme, and those for the theme last", () => {
    const custom = {
        comments: "#aaaaaa",
        functions: { foreground: "#bbbbbb" },
        "[Dark Modern][Other]": { comments: "#cccccc", textMateRules: [{ scope: "string", settings: { foreground: "#dddddd" } }] },
        "[Light]": { comments: "#eeeeee" },
    };
    const colors = customized(tokenColors(RULES), custom, "Other");
    assert.deepEqual([colors.comment, colors.function, colors.string], ["#cccccc", "#bbbbbb", "#dddddd"]);
    assert.equal(customized(colors, undefined, "Other"), colors);
});
