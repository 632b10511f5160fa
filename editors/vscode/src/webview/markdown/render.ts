// Markdown of others as HTML of ours.
//
// Rule: two walls, each enough by itself. The renderer takes no HTML and makes links of nothing but what `linkTarget` knows;
// the sanitizer passes only the elements and attributes that the renderer makes. No style attribute, no image, no href.

import DOMPurify from "dompurify";
import MarkdownIt from "markdown-it";

import { exact, prose } from "../text.ts";
import { IMAGE_NAME } from "./images.ts";
import { codeTarget, linkTarget, type LinkTarget } from "./links.ts";
import { withMath } from "./math.ts";
import { withTasks } from "./tasks.ts";

const markdown = new MarkdownIt({ html: false, linkify: true, typographer: false, maxNesting: 40 });
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
markdown.validateLink = (href) => linkTarget(href) !== undefined;

const rules = markdown.renderer.rules;
const escapeHtml = markdown.utils.escapeHtml;

withMath(markdown, (tex) => escapeHtml(exact(tex)));
withTasks(markdown);

rules["link_open"] = (tokens, index) => openLink(linkTarget(String(tokens[index]?.attrGet("href") ?? "")));
rules["link_close"] = () => "</a>";
rules["code_inline"] = (tokens, index) => {
    const content = tokens[index]?.content ?? "";
    const code = `<code>${escapeHtml(exact(content))}</code>`;
    const target = codeTarget(content);
    return target ? `${openLink(target)}${code}</a>` : code;
};
// Nothing is fetched for a text: an image is a link, and one of the workspace is shown by the host.
rules["image"] = (tokens, index) => {
    const token = tokens[index];
    const target = linkTarget(String(token?.attrGet("src") ?? ""));
    const label = escapeHtml(exact(token?.content || "Image"));
    if (!target) return label;
    const isImage = target.kind === "file" && IMAGE_NAME.test(target.path);
    return `${openLink(target, isImage ? "image" : "")}${label}</a>`;
};
rules["fence"] = (tokens, index) => codeFrame(tokens[index]?.content ?? "", tokens[index]?.info ?? "");
rules["code_block"] = (tokens, index) => codeFrame(tokens[index]?.content ?? "", "");
rules["table_open"] = () => '<div class="table" tabindex="0" role="region" aria-label="Table"><table>';
rules["table_close"] = () => "</table></div>";
for (const name of ["th_open", "td_open"]) {
    // The alignment would be a style attribute, which the page's policy forbids.
    rules[name] = (tokens, index, options, _environment, self) => {
        const token = tokens[index];
        const align = /text-align: ?(left|right|center)/.exec(String(token?.attrGet("style") ?? ""))?.[1];
        if (token) token.attrs = align ? [["class", `align-${align}`]] : null;
        return self.renderToken(tokens, index, options);
    };
}
for (const name of ["heading_open", "heading_close"]) {
    // The messages are the headings of the page; those within one are below them.
    rules[name] = (tokens, index, options, _environment, self) => {
        const token = tokens[index];
        const level = Number(/^h([1-6])$/.exec(token?.tag ?? "")?.[1] ?? 3);
        if (token) token.tag = `h${Math.min(6, level + 2)}`;
        return self.renderToken(tokens, index, options);
    };
}

/** The name of a language unchanged behind the backquotes. */
export function languageOf(info: string): string {
    return exact(info.trim().split(/[\s,{]/, 1)[0] ?? "").slice(0, 30);
}

/** The frame around code: the language, and what can be done with it. */
export function codeFrame(code: string, info: string): string {
    const language = languageOf(info);
    const button = (act: string, label: string, title: string) =>
        `<button type="button" class="quiet" data-act="${act}" title="${title}" aria-label="${title}">${label}</button>`;
    return (
        `<div class="code" data-language="${escapeHtml(language)}"><div class="code-head"><span class="code-language">` +
        `${escapeHtml(language || "text")}</span>${button("copy", "Copy", "Copy this code")}` +
        (language === "mermaid" ? button("source", "Source", "Show the source of the diagram") : "") +
        `${button("insert", "Insert", "Insert this code at the cursor of the editor")}` +
        `${button("apply", "Apply", "Apply: replace the selection, or let the agent put the code where it belongs")}</div>` +
        `<pre tabindex="0" role="region" aria-label="Code${language ? `, ${escapeHtml(language)}` : ""}">` +
        `<code>${escapeHtml(exact(code.replace(/\n$/, "")))}</code></pre></div>`
    );
}

function openLink(target: LinkTarget | undefined, extra = ""): string {
    if (!target) return "<a>";
    if (target.kind === "web") {
        return `<a class="link" role="link" tabindex="0" data-web="${escapeHtml(target.href)}" title="${escapeHtml(exact(target.href))}">`;
    }
    const { path, line, endLine, column } = target;
    const place = `${path}${line === undefined ? "" : `:${line}`}`;
    const numbers = Object.entries({ line, "end-line": endLine, column })
        .map(([name, value]) => (value === undefined ? "" : ` data-${name}="${value}"`))
        .join("");
    return `<a class="${`link file ${extra}`.trim()}" role="link" tabindex="0" data-path="${escapeHtml(path)}"${numbers} title="${escapeHtml(exact(place))}">`;
}

const ELEMENTS =
    "a b blockquote br button code del div em h3 h4 h5 h6 hr i li ol p pre s span strong sub sup table tbody td th thead tr ul".split(
        " ",
    );
const ATTRIBUTES =
    "class title role tabindex start type aria-label data-act data-language data-web data-path data-line data-end-line data-column data-math".split(
        " ",
    );

/** Passes only markup that is made here. */
export function sanitized(html: string): string {
    return DOMPurify.sanitize(html, {
        ALLOWED_TAGS: ELEMENTS,
        ALLOWED_ATTR: ATTRIBUTES,
        // No browser takes these for addresses, and the words in them may have colons.
        ADD_URI_SAFE_ATTR: ["aria-label", "data-language", "data-path"],
        ALLOW_DATA_ATTR: false,
        ALLOW_ARIA_ATTR: false,
        ALLOW_UNKNOWN_PROTOCOLS: false,
        SANITIZE_NAMED_PROPS: true,
    });
}

/** The last rendered texts. Bounded by its characters, so that a long transcript does not keep all it ever showed. */
const cache = new Map<string, string>();
let cached = 0;
const CACHED_CHARACTERS = 2_000_000;

/** A block of Markdown as HTML that can be shown. */
export function renderBlock(source: string): string {
    const known = cache.get(source);
    if (known !== undefined) return known;
    const html = sanitized(markdown.render(prose(source)));
    cached += source.length + html.length;
    cache.set(source, html);
    for (const [oldest, value] of cache) {
        if (cached <= CACHED_CHARACTERS) break;
        cache.delete(oldest);
        cached -= oldest.length + value.length;
    }
    return html;
}

/** A block that still grows as HTML; it is different the next time, so it is not kept. */
export function renderOpenBlock(source: string): string {
    return sanitized(markdown.render(prose(source)));
}

/** The first lines of the top-level blocks of a text. */
export function blockStarts(source: string): number[] {
    const starts: number[] = [];
    for (const token of markdown.parse(source, {})) {
        if (token.level === 0 && token.map && token.nesting !== -1) starts.push(token.map[0]);
    }
    return starts;
}
