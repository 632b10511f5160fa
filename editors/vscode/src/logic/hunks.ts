// Which hunks are meant by a change of the editor's diff, by a cursor, or by “next” and “previous”.
//
// Rule: lines count from 0 and ends are exclusive, as in the protocol; what the editor counts otherwise is converted
// here. Hunks are found in a list that is as new as the text.

import type { Hunk, LineRange } from "kode-protocol";

/** A change as the editor's quick diff gives it: lines from 1, ends inclusive, an end of 0 where one side has no lines. */
export interface LineChange {
    readonly originalStartLineNumber: number;
    readonly originalEndLineNumber: number;
    readonly modifiedStartLineNumber: number;
    readonly modifiedEndLineNumber: number;
}

/** The lines of the document that a change refers to; empty where lines were taken out. */
function linesOf(change: LineChange): LineRange {
    if (change.modifiedEndLineNumber === 0) {
        // Taken out behind this line, which is the first one below it from 0.
        return { start: change.modifiedStartLineNumber, end: change.modifiedStartLineNumber };
    }
    return { start: change.modifiedStartLineNumber - 1, end: change.modifiedEndLineNumber };
}

/** Whether two ranges share a line; an empty one is at its place and touches what begins or ends there. */
function meet(a: LineRange, b: LineRange): boolean {
    if (a.start === a.end || b.start === b.end) return a.start <= b.end && b.start <= a.end;
    return a.start < b.end && b.start < a.end;
}

/** Whether the hunk can be kept or undone: it is in the text. */
export function isApplied(hunk: Hunk): boolean {
    return hunk.state === "applied" || hunk.state === "conflict";
}

/** The hunks that a change of the quick diff is made of. */
export function hunksOfChange(hunks: readonly Hunk[], change: LineChange): Hunk[] {
    const lines = linesOf(change);
    return hunks.filter((hunk) => isApplied(hunk) && meet(hunk.lineRange, lines));
}

/** The hunks at a line; if none exist, the one hunk of the file if it has only one. */
export function hunksAtLine(hunks: readonly Hunk[], line: number): Hunk[] {
    const at = hunks.filter(
        ({ lineRange: { start, end } }) => start <= line && (line < end || (start === end && line <= end)),
    );
    return at.length > 0 || hunks.length !== 1 ? at : [...hunks];
}

/** A place to go to. */
export interface Stop {
    uri: string;
    line: number;
}

/** Which way to go. */
export type Direction = "next" | "previous";

/**
 * The hunk to go to from a place, over all files in their order and around their end; absent when there are no hunks.
 * Without a place, or in a file without hunks, it begins at the first or last one.
 */
export function step(
    files: readonly { uri: string; hunks: readonly Hunk[] }[],
    from: Stop | undefined,
    direction: Direction,
): Stop | undefined {
    const stops = files.flatMap(({ uri, hunks }) => hunks.map((hunk) => ({ uri, line: hunk.lineRange.start })));
    const forward = direction === "next";
    const edge = forward ? stops[0] : stops.at(-1);
    if (from === undefined) return edge;
    const here = stops.map((stop, index) => ({ stop, index })).filter(({ stop }) => stop.uri === from.uri);
    if (here.length === 0) return edge;
    const further = forward
        ? here.find(({ stop }) => stop.line > from.line)
        : here.findLast(({ stop }) => stop.line < from.line);
    if (further) return further.stop;
    const last = forward ? here.at(-1) : here[0];
    const index = (last?.index ?? 0) + (forward ? 1 : -1);
    return stops[index] ?? edge;
}
