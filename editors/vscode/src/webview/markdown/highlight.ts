// Colors for finished code, in idle time. The highlighter is a chunk of its own, which is read when there is code.
//
// Rule: coloring only wraps the existing text into spans with classes; the text is the same before and after. Long code
// stays plain. The last colored text is kept, bounded by its characters.

import type { HLJSApi } from "highlight.js";
import { useEffect, useState } from "preact/hooks";

import { tokenLines, type TokenLine } from "./tokens.ts";

/** The most characters that are colored. */
const LIMIT = 40_000;

/** The most characters of code whose tokens are kept. */
const KEPT = 400_000;

let hljs: HLJSApi | undefined;
let loading: Promise<boolean> | undefined;

/** Reads the highlighter, with the first code that is to be colored; returns whether it is here. */
function loadHighlighter(): Promise<boolean> {
    loading ??= import("./languages.ts").then(
        (found) => {
            hljs = found.hljs;
            return true;
        },
        // Where it cannot be read, code stays plain; the next code tries again.
        () => {
            loading = undefined;
            return false;
        },
    );
    return loading;
}

const known = new Map<string, readonly TokenLine[]>();
let kept = 0;

/** The tokens of code; undefined while the highlighter is not here, for an unknown language, and for long code. */
function tokensOf(code: string, language: string): readonly TokenLine[] | undefined {
    if (!hljs || code.length > LIMIT || !hljs.getLanguage(language)) return undefined;
    const key = `${language}\n${code}`;
    const before = known.get(key);
    if (before) return before;
    const lines = tokenLines(hljs, code, language);
    known.set(key, lines);
    kept += key.length;
    for (const oldest of known.keys()) {
        if (kept <= KEPT) break;
        known.delete(oldest);
        kept -= oldest.length;
    }
    return lines;
}

/** The tokens of code that is drawn; undefined until there was time for them. */
export function useTokens(code: string, language: string | undefined): readonly TokenLine[] | undefined {
    const [, redraw] = useState<object>();
    const isHere = hljs !== undefined;
    useEffect(() => {
        if (language === undefined || isHere) return undefined;
        let gone = false;
        void loadHighlighter().then((here) => {
            if (here && !gone) requestIdleCallback(() => gone || redraw({}), { timeout: 1_000 });
        });
        return () => {
            gone = true;
        };
    }, [language, isHere]);
    return language === undefined ? undefined : tokensOf(code, language);
}

const waiting = new Set<HTMLElement>();
let asked = false;

/** Colors the code in an element when there is time for it. */
export function highlightLater(root: HTMLElement): void {
    for (const frame of root.querySelectorAll<HTMLElement>(".code[data-language]:not([data-language=''])")) {
        if (!frame.classList.contains("colored")) waiting.add(frame);
    }
    if (waiting.size === 0 || asked) return;
    asked = true;
    void loadHighlighter().then((here) => {
        if (here) requestIdleCallback(colorSome, { timeout: 2_000 });
        else waiting.clear();
    });
}

function colorSome(deadline: IdleDeadline): void {
    asked = false;
    for (const frame of waiting) {
        waiting.delete(frame);
        if (frame.isConnected) color(frame);
        if (deadline.timeRemaining() < 4) break;
    }
    if (waiting.size === 0) return;
    asked = true;
    requestIdleCallback(colorSome, { timeout: 2_000 });
}

function color(frame: HTMLElement): void {
    frame.classList.add("colored");
    const code = frame.querySelector("code");
    const lines = code && tokensOf(code.textContent ?? "", (frame.dataset["language"] ?? "").toLowerCase());
    if (!lines) return;
    const nodes = lines.flatMap((line, index) => [...(index > 0 ? ["\n"] : []), ...line.map(spanOf)]);
    code.replaceChildren(...nodes);
}

function spanOf({ text, kind }: { text: string; kind: string }): Node | string {
    if (kind === "") return text;
    const span = document.createElement("span");
    span.className = kind;
    span.textContent = text;
    return span;
}
