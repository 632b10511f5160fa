// Colors for finished code, in idle time.
//
// Rule: highlighting only wraps what is there into spans with classes; the text is the same before and after, and goes
// through the sanitizer as everything does. Long code stays plain.

import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import cpp from "highlight.js/lib/languages/cpp";
import csharp from "highlight.js/lib/languages/csharp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import kotlin from "highlight.js/lib/languages/kotlin";
import lua from "highlight.js/lib/languages/lua";
import makefile from "highlight.js/lib/languages/makefile";
import markdown from "highlight.js/lib/languages/markdown";
import php from "highlight.js/lib/languages/php";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

import { sanitized } from "./render.ts";

const LANGUAGES = {
    bash, cpp, csharp, css, diff, dockerfile, go, ini, java, javascript, json, kotlin, lua, makefile, markdown, php,
    python, ruby, rust, sql, typescript, xml, yaml,
};
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);
hljs.registerAliases(["c", "h"], { languageName: "cpp" });
hljs.registerAliases(["scss", "less"], { languageName: "css" });
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
    requestIdleCallback(colorSome, { timeout: 2_000 });
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
