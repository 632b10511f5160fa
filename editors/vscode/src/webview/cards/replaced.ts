// Lines and their replacement, as a diff.
//
// Rule: common text at both ends is unchanged; the rest goes and comes as a whole, so that nothing depends on a
// guess which lines belong together.

import type { DiffFile, DiffLine } from "./readDiff.ts";

/** The most lines shown around a change. */
const AROUND = 3;

/** A text in the place of another one, whose first line has this number, from 1. */
export function replaced(path: string, before: string, after: string, line: number): DiffFile {
    const [old, now] = [linesOf(before), linesOf(after)];
    const shorter = Math.min(old.length, now.length);
    let head = 0;
    while (head < shorter && old[head] === now[head]) head += 1;
    let tail = 0;
    while (tail < shorter - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
    const first = Math.max(0, head - AROUND);
    const rest = Math.max(0, tail - AROUND);
    const number = (index: number) => line + index;
    const same = (index: number, moved: number): DiffLine => ({
        kind: "same",
        text: old[index] ?? "",
        before: number(index),
        after: number(index + moved),
    });
    const lines: DiffLine[] = [];
    for (let index = first; index < head; index += 1) lines.push(same(index, 0));
    for (let index = head; index < old.length - tail; index += 1)
        lines.push({ kind: "removed", text: old[index] ?? "", before: number(index) });
    for (let index = head; index < now.length - tail; index += 1)
        lines.push({ kind: "added", text: now[index] ?? "", after: number(index) });
    for (let index = old.length - tail; index < old.length - rest; index += 1)
        lines.push(same(index, now.length - old.length));
    const from = number(first);
    const [removed, added] = [old.length - head - tail, now.length - head - tail];
    const header = `@@ -${from},${old.length - rest - first} +${from},${now.length - rest - first} @@`;
    return { path, hunks: [{ header, from, line: from, lines }], added, removed };
}

function linesOf(text: string): string[] {
    return text === "" ? [] : text.replace(/\r?\n$/, "").split(/\r?\n/);
}
