// The decorations in the text of a changed file: added lines, changed words, the places of deletions, and of a proposal the lines
// that it would take out and, behind them, those that would come instead.
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
    readonly kind: "added" | "deleted" | "removed" | "inserted";
    /** The words that were added; of a proposal those that it would take out. */
    readonly words: readonly WordMark[];
    /** The lines that a proposal would add. */
    readonly ghosts: readonly GhostLine[];
    /** The summary of the diagnostics of a hunk in the text, shown behind its last line; empty for none. */
    readonly verdict: string;
}

/** Text that is not in the document, shown behind a line of it. */
export interface GhostLine {
    readonly line: number;
    readonly text: string;
}

/** The most lines whose words are compared, for all hunks of a file together. */
const MOST_LINES = 2_000;

/** The longest ghost text of a line, in characters. */
const LONGEST_GHOST = 160;

/** The most added lines that are shown behind one line. */
const MOST_BEHIND = 4;

/** The marks of a file's hunks; none for files that are not text. */
export function marksOf(hunks: readonly Hunk[], lineCount: number): HunkMarks[] {
    let compared = 0;
    const marks: HunkMarks[] = [];
    for (const hunk of hunks) {
        if (hunk.kind === "binary" || hunk.kind === "deleted") continue;
        const { start, end } = hunk.lineRange;
        if (start > lineCount) continue;
        if (!isApplied(hunk)) {
            marks.push(proposalOf(hunk, lineCount));
        } else if (start === end) {
            marks.push({ ...placeOf(hunk, lineCount), hunk, kind: "deleted", words: [], ghosts: [], verdict: verdictOf(hunk) });
        } else {
            compared += end - start;
            const words = hunk.amended || hunk.state === "conflict" || compared > MOST_LINES ? [] : wordsOf(hunk);
            marks.push({ hunk, first: start, end, kind: "added", words, ghosts: [], verdict: verdictOf(hunk) });
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

/** The marks of a proposal: lines that would go, and behind them lines that would come. */
function proposalOf(hunk: Hunk, lineCount: number): HunkMarks {
    const place = placeOf(hunk, lineCount);
    const { start, end } = hunk.lineRange;
    const [before, after] = [linesOf(hunk.oldText), linesOf(hunk.newText)];
    const isInsertion = start === end;
    const words = isInsertion ? [] : before.flatMap((line, index) => cutWords(line, after[index], start + index));
    // Lines that would come before a line are read behind the one above it.
    const first = isInsertion ? Math.max(0, Math.min(start, lineCount) - 1) : start;
    const last = isInsertion ? first : Math.max(start, Math.min(end, lineCount) - 1);
    const kind = isInsertion ? "inserted" : "removed";
    const ghosts = ghostsOf(before, after, { first, last, isInsertion }, verdictOf(hunk));
    return { ...place, hunk, kind, words, ghosts, verdict: "" };
}

/** The words of a line that would go where another one comes instead. */
function cutWords(old: string, comes: string | undefined, line: number): WordMark[] {
    if (comes === undefined) return [];
    return changedParts(old, comes).before.map(({ start, end }) => ({ line, start, end }));
}

/** The added lines of a proposal: each behind the line in whose place it comes, the others behind the last one. */
function ghostsOf(
    before: readonly string[],
    after: readonly string[],
    { first, last, isInsertion }: { first: number; last: number; isInsertion: boolean },
    verdict: string,
): GhostLine[] {
    const told = verdict === "" ? "" : `  (${verdict})`;
    const count = last - first + 1;
    const paired = isInsertion ? 0 : Math.min(count, after.length);
    const ghosts = after.slice(0, paired).flatMap((text, index) => {
        const isSame = text === before[index] && index < count - 1;
        return isSame ? [] : [{ line: first + index, text: `⟶ ${shortened(text)}` }];
    });
    const rest = after.slice(paired);
    const shown = rest.slice(0, MOST_BEHIND).map((text) => `⏎ ${shortened(text)}`);
    if (rest.length > shown.length) shown.push(`(+${rest.length - shown.length} more)`);
    if (shown.length === 0 && told === "") return ghosts;
    const behind = ghosts.at(-1)?.line === last ? ghosts.pop()?.text : undefined;
    const text = [...(behind === undefined ? [] : [behind]), ...shown].join("  ");
    return [...ghosts, { line: last, text: `${text}${told}` }];
}

function shortened(line: string): string {
    return line.trim().slice(0, LONGEST_GHOST);
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
