// The decorations in the text of a changed file: added lines, changed words, the places of deletions, and what a
// proposal would change.
//
// Rule: lines and characters count from 0, ends are exclusive. A hunk that the user has typed into is marked by whole lines alone,
// because its words are no longer those of the hunk.

import type { Hunk } from "kode-protocol";

import { changedParts } from "./intraline.ts";
import { isApplied } from "./hunks.ts";

/** Words of a line. */
export interface WordMark {
    readonly line: number;
    readonly start: number;
    readonly end: number;
}

/** The decorations of one hunk. */
export interface HunkMarks {
    readonly hunk: Hunk;
    /** The lines that carry the hover: those of the hunk, or the one at which lines are missing. */
    readonly first: number;
    readonly end: number;
    /** How these lines are drawn. */
    readonly kind: "added" | "deleted" | "proposed";
    readonly words: readonly WordMark[];
    /** Text that is not in the document, shown behind the last line: the first line that a proposal adds, and the diagnostics of the
     * hunk; empty for none. */
    readonly ghost: string;
}

/** The most lines whose words are compared, for all hunks of a file together. */
const MOST_LINES = 2_000;

/** The longest ghost text, in characters. */
const LONGEST_GHOST = 160;

/** The marks of a file's hunks; none for files that are not text. */
export function marksOf(hunks: readonly Hunk[], lineCount: number): HunkMarks[] {
    let compared = 0;
    const marks: HunkMarks[] = [];
    for (const hunk of hunks) {
        if (hunk.kind === "binary" || hunk.kind === "deleted") continue;
        const { start, end } = hunk.lineRange;
        if (start > lineCount) continue;
        if (!isApplied(hunk)) {
            marks.push({ ...placeOf(hunk, lineCount), hunk, kind: "proposed", words: [], ghost: ghostOf(hunk) });
        } else if (start === end) {
            marks.push({ ...placeOf(hunk, lineCount), hunk, kind: "deleted", words: [], ghost: verdictOf(hunk) });
        } else {
            compared += end - start;
            const words = hunk.amended || hunk.state === "conflict" || compared > MOST_LINES ? [] : wordsOf(hunk);
            marks.push({ hunk, first: start, end, kind: "added", words, ghost: verdictOf(hunk) });
        }
    }
    return marks;
}

/** The lines of a hunk, at least one: an empty place is the line that is there. */
function placeOf({ lineRange: { start, end } }: Hunk, lineCount: number): { first: number; end: number } {
    const first = Math.min(start, Math.max(0, lineCount - 1));
    return { first, end: Math.max(first + 1, Math.min(end, lineCount)) };
}

function wordsOf({ oldText, newText, lineRange: { start } }: Hunk): WordMark[] {
    const [before, after] = [linesOf(oldText), linesOf(newText)];
    return after.flatMap((line, index) => {
        const old = before[index];
        if (old === undefined) return [];
        return changedParts(old, line).after.map((part) => ({ line: start + index, start: part.start, end: part.end }));
    });
}

/** The first added line of a proposal, how many follow, and what language servers say to it. */
function ghostOf({ newText, oldText, diagnostics }: Hunk): string {
    const lines = linesOf(newText);
    const [first] = lines;
    const verdict = diagnostics ? `  (${diagnostics.summary})` : "";
    if (first === undefined) return `⟶ ${oldText === "" ? "" : "deleted"}${verdict}`;
    const more = lines.length > 1 ? `  (+${lines.length - 1} more)` : "";
    return `⟶ ${first.trim().slice(0, LONGEST_GHOST)}${more}${verdict}`;
}

/** The summary of the diagnostics of a hunk in the text. */
function verdictOf({ diagnostics }: Hunk): string {
    return diagnostics?.summary ?? "";
}

function linesOf(text: string): string[] {
    return text === "" ? [] : text.replace(/\r?\n$/, "").split(/\r?\n/);
}

/** The most lines of a hover's diff. */
const MOST_SHOWN = 40;

/** The diagnostics that a hunk adds and removes, in a Markdown fence; empty for none. */
export function diagnosticsBlock({ diagnostics }: Hunk): string {
    return diagnostics ? fenced("text", [`This change ${diagnostics.summary}.`, ...diagnostics.lines].join("\n")) : "";
}

/** The change as a diff in a Markdown fence. */
export function diffBlock({ oldText, newText }: Hunk): string {
    const lines = [...linesOf(oldText).map((line) => `-${line}`), ...linesOf(newText).map((line) => `+${line}`)];
    const shown = lines.slice(0, MOST_SHOWN);
    if (lines.length > shown.length) shown.push(`… ${lines.length - shown.length} more lines`);
    return fenced("diff", shown.join("\n"));
}

/** A text in a fence that nothing in it can close. */
function fenced(language: string, text: string): string {
    const longest = [...text.matchAll(/`+/g)].reduce((most, [run]) => Math.max(most, run.length), 2);
    const fence = "`".repeat(longest + 1);
    return `${fence}${language}\n${text}\n${fence}`;
}
