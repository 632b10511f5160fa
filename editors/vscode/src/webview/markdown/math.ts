// Formulas in Markdown: `$…$` and `\(…\)` in a line, `$$…$$` and `\[…\]` as blocks.
//
// Rule: the rules are those of Pandoc, so that amounts of money are no formulas: an opening `$` precedes a character, a
// closing one behind one and not before a digit. The TeX is kept as text, and drawn when the block is complete.

import type markdownIt from "markdown-it";

type MarkdownIt = ReturnType<typeof markdownIt>;

/** The longest formula, in characters. */
const LONGEST = 4_000;

const DOLLAR = 0x24;
const BACKSLASH = 0x5c;

/** Has the renderer take formulas. */
export function withMath(markdown: MarkdownIt, toHtml: (tex: string) => string): void {
    markdown.inline.ruler.before("escape", "math", inlineMath);
    markdown.block.ruler.before("fence", "math", blockMath, { alt: ["paragraph", "blockquote", "list"] });
    markdown.renderer.rules["math_inline"] = (tokens, index) =>
        `<span class="math" data-math="inline">${toHtml(tokens[index]?.content ?? "")}</span>`;
    markdown.renderer.rules["math_block"] = (tokens, index) =>
        `<div class="math" data-math="block">${toHtml(tokens[index]?.content ?? "")}</div>`;
}

type InlineRule = Parameters<MarkdownIt["inline"]["ruler"]["push"]>[1];
type BlockRule = Parameters<MarkdownIt["block"]["ruler"]["push"]>[1];

const inlineMath: InlineRule = (state, silent) => {
    const { src, pos } = state;
    const first = src.charCodeAt(pos);
    if (first !== DOLLAR && first !== BACKSLASH) return false;
    const found = formulaAt(src.slice(pos, pos + LONGEST));
    if (!found) return false;
    if (!silent) {
        const token = state.push(found.block ? "math_block" : "math_inline", "math", 0);
        token.content = found.tex;
    }
    state.pos = pos + found.length;
    return true;
};

interface Formula {
    tex: string;
    /** How long it is with its marks. */
    length: number;
    block: boolean;
}

/** The formula that a text begins with. */
export function formulaAt(text: string): Formula | undefined {
    for (const [pattern, block] of PATTERNS) {
        const found = pattern.exec(text);
        const tex = found?.[1]?.trim() ?? "";
        if (found && tex !== "") return { tex, length: found[0].length, block };
    }
    return undefined;
}

const PATTERNS: readonly (readonly [RegExp, boolean])[] = [
    [/^\$\$((?:[^$\\]|\\[\s\S])+?)\$\$/, true],
    [/^\$(?!\s|\$)((?:[^$\\\n]|\\[^\n])*?(?:[^\s$\\]|\\[^\n]))\$(?!\d)/, false],
    [/^\\\(([\s\S]+?)\\\)/, false],
    [/^\\\[([\s\S]+?)\\\]/, true],
];

/** A formula on lines of its own. */
const blockMath: BlockRule = (state, startLine, endLine, silent) => {
    const lineAt = (line: number) => state.src.slice((state.bMarks[line] ?? 0) + (state.tShift[line] ?? 0), state.eMarks[line]);
    const head = lineAt(startLine);
    const mark = head.startsWith("$$") ? "$$" : head.startsWith("\\[") ? "\\[" : undefined;
    if (mark === undefined) return false;
    const close = mark === "$$" ? "$$" : "\\]";
    const lines: string[] = [];
    for (let line = startLine; line < endLine; line += 1) {
        const text = line === startLine ? head.slice(mark.length) : lineAt(line);
        const end = text.indexOf(close);
        lines.push(end < 0 ? text : text.slice(0, end));
        if (end >= 0) {
            const tex = lines.join("\n").trim();
            if (tex === "" || tex.length > LONGEST || text.slice(end + close.length).trim() !== "") return false;
            if (silent) return true;
            const token = state.push("math_block", "math", 0);
            token.block = true;
            token.content = tex;
            token.map = [startLine, line + 1];
            state.line = line + 1;
            return true;
        }
    }
    return false;
};
