// Colors of code, read from a color theme of the editor.
//
// Rule: a theme is a file of others: values that are not hexadecimal colors are left out. A selector with several
// scopes behind one another is for grammars and is not used here.

/** A rule of a theme as its file has it. */
export interface ThemeRule {
    readonly scope?: string | readonly string[];
    readonly settings?: { readonly foreground?: unknown };
}

/** The scopes that a kind of token is colored by, the best first. */
const SCOPES = {
    comment: ["comment"],
    keyword: ["storage.type", "storage", "keyword"],
    control: ["keyword.control", "keyword"],
    string: ["string"],
    number: ["constant.numeric"],
    function: ["entity.name.function", "support.function"],
    type: ["entity.name.type", "support.type", "entity.name.class", "support.class"],
    variable: ["variable.other.readwrite", "variable"],
    property: ["variable.other.property", "variable.other.object.property", "variable"],
    constant: ["variable.other.constant", "constant.language", "constant"],
    tag: ["entity.name.tag"],
    attribute: ["entity.other.attribute-name"],
    regexp: ["string.regexp", "string"],
    meta: ["meta.preprocessor", "keyword.control"],
} as const;

/** A kind of token that the page has a color for. */
export type TokenKind = keyof typeof SCOPES;

/** Colors by the kind of token; kinds that the theme says nothing of are absent. */
export type TokenColors = Partial<Record<TokenKind, string>>;

const KINDS = Object.keys(SCOPES) as TokenKind[];

/** The colors of each kind by the rules of a theme and then of the user. */
export function tokenColors(rules: readonly ThemeRule[]): TokenColors {
    const colors: TokenColors = {};
    for (const kind of KINDS) {
        const color = SCOPES[kind].map((scope) => colorOf(rules, scope)).find((found) => found !== undefined);
        if (color !== undefined) colors[kind] = color;
    }
    return colors;
}

/** The color of a scope: the longest selector counts, and of those the last. */
function colorOf(rules: readonly ThemeRule[], scope: string): string | undefined {
    let best: { length: number; color: string } | undefined;
    for (const { scope: selectors, settings } of rules) {
        const color = hex(settings?.foreground);
        if (color === undefined || selectors === undefined) continue;
        for (const selector of selectorsOf(selectors)) {
            if (scope !== selector && !scope.startsWith(`${selector}.`)) continue;
            if (!best || selector.length >= best.length) best = { length: selector.length, color };
        }
    }
    return best?.color;
}

function selectorsOf(selectors: string | readonly string[]): string[] {
    const all = typeof selectors === "string" ? selectors.split(",") : selectors;
    return all.filter((one) => typeof one === "string").map((one) => one.trim()).filter((one) => one !== "" && !/\s/.test(one));
}

function hex(color: unknown): string | undefined {
    return typeof color === "string" && /^#(?:[\da-f]{3,4}|[\da-f]{6}|[\da-f]{8})$/i.test(color) ? color : undefined;
}

/** The words under which users set colors without scopes, and the kinds they mean. */
const SIMPLE: Record<string, readonly TokenKind[]> = {
    comments: ["comment"],
    strings: ["string"],
    numbers: ["number"],
    keywords: ["keyword", "control"],
    types: ["type"],
    functions: ["function"],
    variables: ["variable", "property"],
};

/** The same colors with those of `editor.tokenColorCustomizations`, those for the theme of this name last. */
export function customized(colors: TokenColors, custom: unknown, theme: string): TokenColors {
    const all = custom as Record<string, unknown> | undefined;
    if (typeof all !== "object" || all === null) return colors;
    const own = Object.entries(all).filter(([key]) => key.startsWith("[") && key.includes(`[${theme}]`));
    return [all, ...own.map(([, value]) => value as Record<string, unknown>)].reduce<TokenColors>(withCustom, colors);
}

function withCustom(colors: TokenColors, custom: Record<string, unknown>): TokenColors {
    const rules = Array.isArray(custom["textMateRules"]) ? (custom["textMateRules"] as ThemeRule[]) : [];
    const now: TokenColors = { ...colors, ...tokenColors(rules) };
    for (const [word, kinds] of Object.entries(SIMPLE)) {
        const value = custom[word];
        const color = hex(typeof value === "object" ? (value as { foreground?: unknown } | null)?.foreground : value);
        if (color !== undefined) for (const kind of kinds) now[kind] = color;
    }
    return now;
}
