// Colors for finished code, in idle time. The languages are a script of their own, which is loaded when there is code.
//
// Rule: highlighting only wraps what is there into spans with classes; the text is the same before and after, and goes
// through the sanitizer as everything does. Long code stays plain.

import type { LanguageFn } from "highlight.js";
import hljs from "highlight.js/lib/core";

import { sanitized } from "./render.ts";

/** What the script of the languages leaves behind. */
declare global {
    var kodeLanguages: Record<string, LanguageFn> | undefined;
}

// The script that runs now has the nonce of the page's policy, and beside it lies that of the languages.
const own = document.currentScript as HTMLScriptElement | null;

let languages: Promise<boolean> | undefined;

/** Gets the languages, with the first code that is to be colored; answers whether they are here. */
function loadLanguages(): Promise<boolean> {
    languages ??= new Promise((resolve) => {
        if (!own) return resolve(false);
        const script = document.createElement("script");
        script.nonce = own.nonce;
        script.src = new URL("languages.js", own.src).href;
        script.onerror = () => resolve(false);
        script.onload = () => {
            for (const [name, language] of Object.entries(globalThis.kodeLanguages ?? {}))
                hljs.registerLanguage(name, language);
            hljs.registerAliases(["c", "h"], { languageName: "cpp" });
            hljs.registerAliases(["scss", "less"], { languageName: "css" });
            resolve(true);
        };
        document.head.append(script);
    });
    return languages;
}

hljs.configure({ throwUnescapedHTML: false });

/** The most characters that are colored. */
const LIMIT = 40_000;

/** The most characters of results that are kept. */
const KEPT = 1_000_000;

const known = new Map<string, string>();
let kept = 0;

/** Code in colors; undefined when its language is not known or there is too much of it. */
export function highlighted(code: string, language: string): string | undefined {
    if (code.length > LIMIT || !hljs.getLanguage(language)) return undefined;
    const key = `${language}\n${code}`;
    const before = known.get(key);
    if (before !== undefined) return before;
    const html = sanitized(hljs.highlight(code, { language, ignoreIllegals: true }).value);
    known.set(key, html);
    kept += key.length + html.length;
    for (const [oldest, value] of known) {
        if (kept <= KEPT) break;
        known.delete(oldest);
        kept -= oldest.length + value.length;
    }
    return html;
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
    // Where the languages cannot be had, code stays plain.
    void loadLanguages().then((here) => {
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
    if (!code) return;
    const html = highlighted(code.textContent ?? "", (frame.dataset["language"] ?? "").toLowerCase());
    if (html !== undefined) code.innerHTML = html;
}
