// The lines of a hunk as they are drawn: one below the other, or side by side.
//
// Rule: each line of the diff is drawn once in either layout.

import { changedParts, type Part } from "../../logic/intraline.ts";
import type { DiffHunk, DiffLine } from "./readDiff.ts";

/** A line with what changed within it, and its place among the lines of its side. */
export interface DrawnLine {
    readonly line: DiffLine;
    readonly changed: readonly Part[];
    /** Index of the line in the text before, or after, of the hunk; for its colors. */
    readonly at: number;
}

/** A line of either side, beside each other. */
export interface Pair {
    readonly before?: DrawnLine;
    readonly after?: DrawnLine;
}

/** The texts of a hunk on both sides, to be colored as a whole. */
export function sidesOf({ lines }: DiffHunk): { before: string; after: string } {
    const text = (kinds: readonly DiffLine["kind"][]) =>
        lines.flatMap((line) => (kinds.includes(line.kind) ? [line.text] : [])).join("\n");
    return { before: text(["same", "removed"]), after: text(["same", "added"]) };
}

/** The lines one below the other. */
export function drawnLines(hunk: DiffHunk): DrawnLine[] {
    return pairsOf(hunk.lines).flatMap((run) => [
        ...run.flatMap(({ before }) => (before ? [before] : [])),
        ...run.flatMap(({ after }) => (after && after.line.kind !== "same" && after.line.kind !== "note" ? [after] : [])),
    ]);
}

/** The lines side by side. */
export function pairs(hunk: DiffHunk): Pair[] {
    return pairsOf(hunk.lines).flat();
}

/** Runs of lines: of one that is the same, or of those that took the place of others. */
function pairsOf(lines: readonly DiffLine[]): Pair[][] {
    const runs: Pair[][] = [];
    const counts = { before: 0, after: 0 };
    for (let index = 0; index < lines.length; ) {
        const line = lines[index];
        if (!line) break;
        if (line.kind === "same" || line.kind === "note") {
            const both = line.kind === "same";
            const before = { line, changed: [], at: both ? counts.before++ : -1 };
            const after = { line, changed: [], at: both ? counts.after++ : -1 };
            runs.push([{ before, after }]);
            index += 1;
            continue;
        }
        const removed = takeRun(lines, index, "removed");
        const added = takeRun(lines, index + removed.length, "added");
        runs.push(changedRun(removed, added, counts));
        index += removed.length + added.length;
    }
    return runs;
}

function takeRun(lines: readonly DiffLine[], from: number, kind: DiffLine["kind"]): DiffLine[] {
    const rest = lines.slice(from);
    const end = rest.findIndex((line) => line.kind !== kind);
    return end < 0 ? rest : rest.slice(0, end);
}

function changedRun(
    removed: readonly DiffLine[],
    added: readonly DiffLine[],
    counts: { before: number; after: number },
): Pair[] {
    const length = Math.max(removed.length, added.length);
    return Array.from({ length }, (_, index): Pair => {
        const [old, now] = [removed[index], added[index]];
        const changed = old && now ? changedParts(old.text, now.text) : { before: [], after: [] };
        return {
            ...(old ? { before: { line: old, changed: changed.before, at: counts.before++ } } : {}),
            ...(now ? { after: { line: now, changed: changed.after, at: counts.after++ } } : {}),
        };
    });
}
