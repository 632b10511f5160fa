// Where a link may lead: to the web by http, https or mailto, or to a file, perhaps at a line. Nowhere else.
//
// Rule: a link is data until the user clicks it. Any other target is no link at all; no command, script
// or data URI ever is.

import type { Range, Uri } from "kode-protocol";

/** Where a link leads. */
export type LinkTarget =
    | { kind: "web"; href: string }
    | { kind: "file"; path: string; line?: number; column?: number; endLine?: number };

const SCHEME = /^([a-z][a-z0-9+.-]*):/i;
const PLACE = /(?:#L(\d+)(?:-L?(\d+))?|:(\d+)(?:-(\d+)|:(\d+))?)$/;
const NAME_WITH_LINE = /^[\w@.-]+\.\w+:\d+(?:[:-]\d+)?$/;

/** Reads a link; undefined when it may not be followed. */
export function linkTarget(raw: string): LinkTarget | undefined {
    const href = raw.trim();
    if (href === "" || href.length > 2_000 || /[\u0000-\u0020]/.test(href)) return undefined;
    const scheme = NAME_WITH_LINE.test(href) ? undefined : SCHEME.exec(href)?.[1]?.toLowerCase();
    switch (scheme) {
        case "http":
        case "https":
        case "mailto":
            return URL.canParse(href) ? { kind: "web", href } : undefined;
        case "file":
            return fileTarget(decoded(href.slice("file://".length)));
        case undefined:
            return href.startsWith("#") || href.startsWith("//") || href.startsWith("?")
                ? undefined
                : fileTarget(decoded(href));
        default:
            return undefined;
    }
}

/** Reads code between backquotes as the name of a file with a line, which is what people click. */
export function codeTarget(code: string): LinkTarget | undefined {
    if (code.length > 300 || /[\s`'"<>|*?()[\]{}]/.test(code)) return undefined;
    const looksLikeFile =
        /^(?:~|\.{0,2})?\/?(?:[\w@.+-]+\/)*[\w@+-][\w@.+-]*\.[a-z][a-z0-9]{0,7}(?:[:#]L?\d+(?:[:-]L?\d+)?)?$/i;
    const hasPlaceOrFolder = /[:#]L?\d/.test(code) || code.includes("/");
    return looksLikeFile.test(code) && hasPlaceOrFolder ? fileTarget(code) : undefined;
}

/** The target of a rendered link. */
export function targetOf(link: HTMLElement): LinkTarget | undefined {
    const { web, path, line, endLine, column } = link.dataset;
    if (web !== undefined) return linkTarget(web);
    if (path === undefined) return undefined;
    return {
        kind: "file",
        path,
        ...(line === undefined ? {} : { line: Number(line) }),
        ...(endLine === undefined ? {} : { endLine: Number(endLine) }),
        ...(column === undefined ? {} : { column: Number(column) }),
    };
}

/** The document and the lines that a link to a file means. */
export function fileLocation(
    target: LinkTarget & { kind: "file" },
    folder: Uri | undefined,
): { uri: Uri; range?: Range } | undefined {
    const path = target.path.replaceAll("\\", "/");
    const absolute = path.startsWith("/") || /^[a-z]:\//i.test(path);
    if (!absolute && folder === undefined) return undefined;
    const encoded = path.split("/").map(encodeURIComponent).join("/");
    const uri = absolute
        ? `file://${path.startsWith("/") ? "" : "/"}${encoded}`
        : `${folder?.replace(/\/$/, "") ?? ""}/${encoded.replace(/^(?:\.\/)+/, "")}`;
    if (target.line === undefined) return { uri };
    const line = Math.max(0, target.line - 1);
    const character = Math.max(0, (target.column ?? 1) - 1);
    const end =
        target.endLine === undefined
            ? { line, character }
            : { line: Math.max(line, target.endLine), character: 0 };
    return { uri, range: { start: { line, character }, end } };
}

function fileTarget(raw: string | undefined): LinkTarget | undefined {
    if (raw === undefined || raw === "" || raw.includes("\0")) return undefined;
    const place = PLACE.exec(raw);
    const path = place ? raw.slice(0, place.index) : raw.replace(/#.*$/, "");
    if (path === "") return undefined;
    const line = number(place?.[1] ?? place?.[3]);
    const endLine = number(place?.[2] ?? place?.[4]);
    const column = number(place?.[5]);
    return {
        kind: "file",
        path,
        ...(line === undefined ? {} : { line }),
        ...(endLine === undefined ? {} : { endLine }),
        ...(column === undefined ? {} : { column }),
    };
}

function number(digits: string | undefined): number | undefined {
    return digits === undefined ? undefined : Number.parseInt(digits, 10);
}

function decoded(path: string): string | undefined {
    try {
        return decodeURIComponent(path);
    } catch {
        // A percent sign that encodes nothing: a name that cannot be told is no link.
        return undefined;
    }
}
