// Code as lines of tokens: the kinds that the style sheet has a color for.
//
// Rule: only text and kinds of a fixed list leave this file; nothing that was highlighted is ever HTML. The text of all tokens
// together is the code.

import type { HLJSApi } from "highlight.js";

/** A piece of a line, with the classes that color it; without any it is plain. */
export interface Token {
    readonly text: string;
    readonly kind: string;
}

export type TokenLine = readonly Token[];

/** The kind of each scope of the highlighter. */
const KINDS: Record<string, string> = {
    addition: "t-added",
    attr: "t-property",
    attribute: "t-attribute",
    bullet: "t-keyword",
    char: "t-constant",
    code: "t-string",
    comment: "t-comment",
    deletion: "t-removed",
    doctag: "t-keyword",
    emphasis: "t-emphasis",
    formula: "t-string",
    keyword: "t-keyword",
    link: "t-string",
    literal: "t-keyword",
    meta: "t-meta",
    name: "t-tag",
    number: "t-number",
    property: "t-property",
    quote: "t-comment",
    regexp: "t-regexp",
    section: "t-keyword t-strong",
    "selector-attr": "t-attribute",
    "selector-class": "t-type",
    "selector-id": "t-type",
    "selector-pseudo": "t-type",
    "selector-tag": "t-tag",
    string: "t-string",
    strong: "t-strong",
    symbol: "t-constant",
    tag: "",
    "template-tag": "t-keyword",
    "template-variable": "t-variable",
    title: "t-function",
    type: "t-type",
    variable: "t-variable",
};

/** Languages whose built-in names are functions; elsewhere they are types. */
const CALLED = new Set(["bash", "python", "lua", "php", "sql", "makefile", "ruby"]);

/** Keywords that editors show as flow of control, apart from those that declare. */
const CONTROL = new Set(
    (
        "as async await break case catch continue default defer do else elif elsif ensure except export finally for foreach from " +
        "go goto if import in include loop match of package pass raise repeat require rescue retry return switch then throw try " +
        "unless until use when while with yield"
    ).split(" "),
);

/** The tokens of code, line by line. */
export function tokenLines(hljs: HLJSApi, code: string, language: string): TokenLine[] {
    const box = document.createElement("template");
    // The highlighter escapes what it is given; what it makes is read here and never shown.
    box.innerHTML = hljs.highlight(code, { language, ignoreIllegals: true }).value;
    const lines: Token[][] = [[]];
    const add = (text: string, kind: string) => {
        for (const [index, piece] of text.split("\n").entries()) {
            if (index > 0) lines.push([]);
            if (piece !== "") lines.at(-1)?.push({ text: piece, kind: kindOfWord(piece, kind) });
        }
    };
    const walk = (node: Node, kind: string) => {
        for (const child of node.childNodes) {
            if (child.nodeType === Node.TEXT_NODE) add(child.textContent ?? "", kind);
            else walk(child, kindOf((child as Element).classList, language) ?? kind);
        }
    };
    walk(box.content, "");
    return lines;
}

function kindOf(classes: DOMTokenList, language: string): string | undefined {
    const scope = [...classes].find((name) => name.startsWith("hljs-"))?.slice(5);
    if (scope === undefined) return undefined;
    if (scope === "title" && classes.contains("class_")) return "t-type";
    if (scope === "variable" && classes.contains("language_")) return "t-keyword";
    if (scope === "variable" && classes.contains("constant_")) return "t-constant";
    if (scope === "built_in") return CALLED.has(language) ? "t-function" : "t-type";
    if (scope === "subst" || scope === "params") return "";
    return KINDS[scope];
}

function kindOfWord(text: string, kind: string): string {
    return kind === "t-keyword" && CONTROL.has(text) ? "t-control" : kind;
}

/** The language of a file, by its name; undefined where none is known. */
export function languageOfFile(path: string): string | undefined {
    const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
    return NAMES[name] ?? EXTENSIONS[name.slice(name.lastIndexOf(".") + 1)];
}

const NAMES: Record<string, string> = { dockerfile: "dockerfile", makefile: "makefile", gemfile: "ruby", rakefile: "ruby" };

const EXTENSIONS: Record<string, string> = {
    ...named("bash", "sh bash zsh"),
    ...named("cpp", "c h cc cpp cxx hh hpp"),
    ...named("csharp", "cs"),
    ...named("css", "css scss less"),
    ...named("diff", "diff patch"),
    ...named("go", "go"),
    ...named("ini", "ini toml cfg conf properties"),
    ...named("java", "java"),
    ...named("javascript", "js jsx mjs cjs"),
    ...named("json", "json jsonc"),
    ...named("kotlin", "kt kts"),
    ...named("lua", "lua"),
    ...named("makefile", "mk"),
    ...named("markdown", "md markdown"),
    ...named("php", "php"),
    ...named("python", "py pyi"),
    ...named("ruby", "rb"),
    ...named("rust", "rs"),
    ...named("sql", "sql"),
    ...named("typescript", "ts tsx mts cts"),
    ...named("xml", "xml html htm svg vue svelte xhtml"),
    ...named("yaml", "yaml yml"),
};

function named(language: string, extensions: string): Record<string, string> {
    return Object.fromEntries(extensions.split(" ").map((extension) => [extension, language]));
}
