// A unified diff, read into files, hunks and lines.
//
// Rule: what cannot be read is shown as it is; no line of a diff is ever left out without saying how many.

/** A line of a hunk. */
export interface DiffLine {
    readonly kind: "added" | "removed" | "same" | "note";
    readonly text: string;
    /** Its number before and after; absent where it does not stand. */
    readonly before?: number;
    readonly after?: number;
}

/** A hunk. */
export interface DiffHunk {
    readonly header: string;
    /** The first line of it in the text as it is before, from 1; 0 where that text is empty. */
    readonly from: number;
    /** The first line of it in the text as it is after. */
    readonly line: number;
    readonly lines: readonly DiffLine[];
}

/** A diff, perhaps of several files. */
export interface DiffFile {
    readonly path: string;
    readonly hunks: readonly DiffHunk[];
    readonly added: number;
    readonly removed: number;
    /** A remark about lines that the diff does not have; absent where it is whole. */
    readonly cut?: string;
}

/** The remark on a last line without an end, which is no lack of the diff. */
const NO_END = "No newline at end of file";

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/;

/** Reads a unified diff. */
export function readDiff(unified: string): DiffFile[] {
    const files: {
        path: string;
        hunks: { header: string; from: number; line: number; lines: DiffLine[] }[];
        added: number;
        removed: number;
        cut?: string;
    }[] = [];
    let [before, after] = [0, 0];
    let left = { before: 0, after: 0 };
    for (const line of unified.replace(/\n$/, "").split("\n")) {
        const file = files.at(-1);
        const hunk = file?.hunks.at(-1);
        const inHunk = hunk !== undefined && (left.before > 0 || left.after > 0);
        if (!inHunk && line.startsWith("--- ")) {
            files.push({ path: pathOf(line), hunks: [], added: 0, removed: 0 });
        } else if (!inHunk && line.startsWith("+++ ") && file) {
            const path = pathOf(line);
            if (path !== "/dev/null") file.path = path;
        } else if (HUNK.test(line)) {
            const [, from = "1", to = "1"] = HUNK.exec(line) ?? [];
            [before, after] = [Number(from), Number(to)];
            left = lengthsOf(line);
            (file ?? added(files)).hunks.push({ header: line, from: before, line: after, lines: [] });
        } else if (file && hunk) {
            const text = line.slice(1);
            if (line.startsWith("+")) {
                hunk.lines.push({ kind: "added", text, after: after++ });
                file.added += 1;
                left.after -= 1;
            } else if (line.startsWith("-")) {
                hunk.lines.push({ kind: "removed", text, before: before++ });
                file.removed += 1;
                left.before -= 1;
            } else if (line.startsWith("\\")) {
                const note = line.slice(2);
                hunk.lines.push({ kind: "note", text: note });
                if (note !== NO_END) file.cut = note;
            } else {
                hunk.lines.push({ kind: "same", text, before: before++, after: after++ });
                left.before -= 1;
                left.after -= 1;
            }
        }
    }
    return files;
}

function added<T>(files: T[]): T {
    const file = { path: "", hunks: [], added: 0, removed: 0 } as T;
    files.push(file);
    return file;
}

function lengthsOf(header: string): { before: number; after: number } {
    const [, before = "1", after = "1"] = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(header) ?? [];
    return { before: Number(before), after: Number(after) };
}

function pathOf(line: string): string {
    const path = line.slice(4).replace(/\t.*$/, "");
    return path === "/dev/null" ? path : path.replace(/^[ab]\//, "");
}
