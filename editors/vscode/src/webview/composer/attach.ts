// Pasted and dropped parts of the prompt, and the labels of parts.
//
// Rule: only pictures of the four kinds that models take, within the server's bounds, become parts; everything that is too
// large is refused with a reason before it is sent anywhere.

import type { InputPart, Range, Uri } from "kode-protocol";

import { bytes, counted, exactLine } from "../text.ts";

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const MAX_PICTURE = 5 * 1_048_576;
const MAX_PICTURES = 20;

/** Pasted text that is longer becomes a part of its own. */
const LONG_TEXT = 4_000;
const MANY_LINES = 60;

/** The result of a paste or a drop. */
export interface Attached {
    parts: InputPart[];
    problems: string[];
}

/** Whether pasted text is to be a part instead of words. */
export function isLong(text: string): boolean {
    return text.length > LONG_TEXT || text.split("\n").length > MANY_LINES;
}

/** Whether pasted text may have been copied from an editor, so that the place is worth more than the words. */
export function isCode(text: string): boolean {
    return text.trim().includes("\n");
}

/** Reads pictures; `before` is how many the prompt has. */
export async function readPictures(files: readonly File[], before: number): Promise<Attached> {
    const result: Attached = { parts: [], problems: [] };
    for (const file of files) {
        if (!PICTURES.has(file.type)) {
            result.problems.push(
                `${exactLine(file.name)} was not attached: images must be PNG, JPEG, GIF or WebP.`,
            );
        } else if (file.size > MAX_PICTURE) {
            result.problems.push(`${exactLine(file.name)} was not attached: it has ${bytes(file.size)}, the limit is 5 MB.`);
        } else if (before + result.parts.length >= MAX_PICTURES) {
            result.problems.push(`A prompt can have at most ${MAX_PICTURES} images.`);
            break;
        } else {
            result.parts.push({ type: "image", mediaType: file.type, data: await base64(file) });
        }
    }
    return result;
}

/** Puts text in where the cursor of a field is, as typing would: it can be undone. */
export function insertAt(box: HTMLTextAreaElement, text: string): void {
    box.focus();
    if (document.execCommand("insertText", false, text)) return;
    box.setRangeText(text, box.selectionStart, box.selectionEnd, "end");
    box.dispatchEvent(new InputEvent("input", { bubbles: true }));
}

/** The files that a dropped list of URIs names. */
export function droppedFiles(list: string): InputPart[] {
    return list
        .split(/\r?\n/)
        .filter((line) => line.startsWith("file:") && URL.canParse(line))
        .slice(0, 50)
        .map((uri) => ({ type: "mention", uri }));
}

/** The label of a part. */
export function partLabel(part: InputPart): { label: string; size: string } {
    switch (part.type) {
        case "text":
            return { label: exactLine(part.text.slice(0, 40)), size: "" };
        case "mention":
            return { label: nameOf(part.uri), size: part.range ? linesOf(part.range) : "" };
        case "selection":
            return { label: nameOf(part.uri), size: linesOf(part.range) };
        case "symbol":
            return { label: exactLine(part.name), size: part.uri === undefined ? "symbol" : nameOf(part.uri) };
        case "diagnostics":
            return { label: part.uri === undefined ? "All problems" : nameOf(part.uri), size: "problems" };
        case "diff":
            return {
                label: part.staged ? "Staged changes" : `Changes ${exactLine(part.revision ?? "")}`.trim(),
                size: "",
            };
        case "session":
            return { label: exactLine(part.session), size: "session" };
        case "image":
            return { label: "Picture", size: bytes(Math.floor((part.data.length * 3) / 4)) };
        case "pasted":
            return { label: "Pasted text", size: counted(part.text.split("\n").length, "line") };
        default:
            return { label: "Part", size: "" };
    }
}

/** The lines of a range in words. */
export function linesOf(range: Range): string {
    const first = range.start.line + 1;
    const last = Math.max(first, range.end.line + (range.end.character > 0 ? 1 : 0));
    return first === last ? `line ${first}` : `lines ${first}–${last}`;
}

function nameOf(uri: Uri): string {
    const path = uri.replace(/^[a-z-]+:/i, "").replace(/\/$/, "");
    const name = path.slice(path.lastIndexOf("/") + 1);
    try {
        return exactLine(decodeURIComponent(name));
    } catch {
        // Not encoded as URIs are; shown as it is.
        return exactLine(name);
    }
}

async function base64(file: File): Promise<string> {
    const bytes = new Uint8Array(await file.arrayBuffer());
    let binary = "";
    for (let start = 0; start < bytes.length; start += 32_768) {
        binary += String.fromCharCode(...bytes.subarray(start, start + 32_768));
    }
    return btoa(binary);
}
