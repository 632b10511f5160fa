// Diagrams drawn by Mermaid, each shown as a picture.
//
// Rule: the page's policy takes no style attributes and no style elements without its nonce. While a diagram is laid out, styles are set
// the way the policy allows; what comes of it is sanitized, and shown as an image, in which nothing runs and nothing is loaded.

import DOMPurify from "dompurify";
import mermaid from "mermaid";

/** The longest source that is drawn, in characters. */
const LONGEST = 20_000;

/** Pictures that were drawn last, by the source and the colors. */
const pictures = new Map<string, string>();
const MOST_PICTURES = 60;

let queue: Promise<void> = Promise.resolve();
let count = 0;

/** Draws diagrams one after the other, above their sources. */
export function drawDiagrams(frames: readonly HTMLElement[]): Promise<void> {
    queue = queue.then(async () => {
        for (const frame of frames) await draw(frame);
    });
    return queue;
}

async function draw(frame: HTMLElement): Promise<void> {
    if (!frame.isConnected || frame.classList.contains("drawn")) return;
    const source = frame.querySelector("code")?.textContent ?? "";
    frame.classList.add("drawn");
    if (source.trim() === "" || source.length > LONGEST) return;
    const url = await pictureOf(source);
    frame.querySelector(".diagram")?.remove();
    if (url === undefined) return;
    const image = document.createElement("img");
    image.className = "diagram";
    image.alt = `Diagram: ${source.trim().split("\n", 1)[0] ?? ""}`;
    image.src = url;
    frame.querySelector("pre")?.before(image);
}

async function pictureOf(source: string): Promise<string | undefined> {
    const colors = colorsOfPage();
    const key = JSON.stringify([source, colors]);
    const known = pictures.get(key);
    if (known !== undefined) return known;
    try {
        const svg = await render(source, colors);
        const url = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
        pictures.set(key, url);
        const [oldest] = pictures.keys();
        if (pictures.size > MOST_PICTURES && oldest !== undefined) pictures.delete(oldest);
        return url;
    } catch {
        // It is no diagram that can be drawn: the source stays.
        return undefined;
    }
}

type Colors = ReturnType<typeof colorsOfPage>;

function colorsOfPage() {
    const style = getComputedStyle(document.body);
    const color = (name: string, other: string) => style.getPropertyValue(`--vscode-${name}`).trim() || other;
    return {
        background: color("editor-background", "#ffffff"),
        text: color("foreground", "#000000"),
        line: color("descriptionForeground", "#888888"),
        box: color("editorWidget-background", "#f3f3f3"),
        accent: color("focusBorder", "#0078d4"),
        font: style.fontFamily,
        isDark: /vscode-dark|vscode-high-contrast(?!-light)/.test(document.body.className),
    };
}

async function render(source: string, colors: Colors): Promise<string> {
    const { background, text, line, box, accent, font, isDark } = colors;
    mermaid.initialize({
        startOnLoad: false,
        securityLevel: "strict",
        suppressErrorRendering: true,
        htmlLabels: false,
        flowchart: { htmlLabels: false },
        maxTextSize: LONGEST,
        maxEdges: 500,
        theme: "base",
        fontFamily: font,
        themeVariables: {
            darkMode: isDark,
            background,
            fontFamily: font,
            fontSize: "14px",
            primaryColor: box,
            primaryTextColor: text,
            primaryBorderColor: accent,
            secondaryColor: background,
            tertiaryColor: background,
            lineColor: line,
            textColor: text,
            edgeLabelBackground: background,
            noteBkgColor: box,
            noteTextColor: text,
        },
    });
    const holder = document.createElement("div");
    holder.className = "diagram-holder";
    document.body.append(holder);
    const allowed = allowStyles();
    try {
        const { svg } = await mermaid.render(`diagram-${++count}`, source, holder);
        return sanitized(svg);
    } finally {
        allowed.end();
        holder.remove();
    }
}

/** Has style attributes set by script, and gives style elements the nonce, until it is ended. */
function allowStyles(): { end(): void } {
    const nonce = document.querySelector<HTMLScriptElement>("script[nonce]")?.nonce ?? "";
    const { setAttribute } = Element.prototype;
    const html = Object.getOwnPropertyDescriptor(Element.prototype, "innerHTML");
    const { createElement, createElementNS } = document;
    const { parseFromString } = DOMParser.prototype;
    const withNonce = <E extends Element>(element: E): E => {
        if (element.localName === "style") (element as unknown as HTMLStyleElement).nonce = nonce;
        return element;
    };
    Element.prototype.setAttribute = function (this: Element, name: string, value: string) {
        if (name === "style" && "style" in this) (this as HTMLElement).style.cssText = value;
        else setAttribute.call(this, name, value);
    };
    Object.defineProperty(Element.prototype, "innerHTML", {
        ...html,
        set(this: Element, text: string) {
            html?.set?.call(this, withoutStyle(String(text)));
            for (const styled of this.querySelectorAll<HTMLElement>("[data-style]")) {
                styled.style.cssText = styled.getAttribute("data-style") ?? "";
                styled.removeAttribute("data-style");
            }
        },
    });
    // Markup that is only parsed to be sanitized keeps its styles aside; they come back with the picture.
    DOMParser.prototype.parseFromString = function (this: DOMParser, text: string, type: DOMParserSupportedType) {
        return parseFromString.call(this, withoutStyle(String(text)).replace(/<style\b/gi, `<style nonce="${nonce}"`), type);
    };
    document.createElement = ((...args: Parameters<typeof createElement>) =>
        withNonce(createElement.apply(document, args))) as typeof createElement;
    document.createElementNS = ((...args: Parameters<typeof createElementNS>) =>
        withNonce(createElementNS.apply(document, args))) as typeof createElementNS;
    return {
        end() {
            Element.prototype.setAttribute = setAttribute;
            if (html) Object.defineProperty(Element.prototype, "innerHTML", html);
            DOMParser.prototype.parseFromString = parseFromString;
            document.createElement = createElement;
            document.createElementNS = createElementNS;
        },
    };
}

const STYLE_ATTRIBUTE = /(<[^<>]*?\s)style=/gi;

/** Markup with its style attributes under another name. */
function withoutStyle(text: string): string {
    return text.replace(STYLE_ATTRIBUTE, "$1data-style=");
}

/** The safe part of a drawing, as XML: an image is read strictly. */
function sanitized(svg: string): string {
    const safe = DOMPurify.sanitize(svg, {
        USE_PROFILES: { svg: true, svgFilters: true },
        ADD_TAGS: ["style"],
        FORBID_TAGS: ["foreignObject", "image", "a", "script"],
        FORBID_ATTR: ["href", "xlink:href"],
    });
    const drawn = new DOMParser().parseFromString(safe, "text/html").querySelector("svg");
    if (!drawn) throw new Error("Nothing is left of the diagram.");
    for (const style of drawn.querySelectorAll("style")) style.removeAttribute("nonce");
    return new XMLSerializer().serializeToString(drawn).replace(/(<[^<>]*?\s)data-style=/gi, "$1style=");
}
