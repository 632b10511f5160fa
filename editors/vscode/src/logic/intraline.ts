// Changes within replaced lines.
//
// Rule: lines are paired in their order. Where more than half of a line is another one, nothing in it is marked: the line itself
// is what changed.

/** A part of a line by the places of its first character and the one behind its last. */
export interface Part {
    readonly start: number;
    readonly end: number;
}

/** The parts of two lines that are not in the other one. */
export interface Changed {
    readonly before: readonly Part[];
    readonly after: readonly Part[];
}

const NOTHING: Changed = { before: [], after: [] };

/** Words, runs of blanks and single signs. */
const WORDS = /[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu;

/** Lines with more words than this are compared by their ends alone. */
const MANY_WORDS = 200;

/** The share of a line above which nothing in it is marked. */
const MOST = 0.6;

/** The changes between two lines. */
export function changedParts(before: string, after: string): Changed {
    if (before === after) return NOTHING;
    const [old, now] = [before.match(WORDS) ?? [], after.match(WORDS) ?? []];
    const same = old.length > MANY_WORDS || now.length > MANY_WORDS ? sameEnds(old, now) : sameWords(old, now);
    const changed = { before: partsOf(old, same.before), after: partsOf(now, same.after) };
    return isMost(changed.before, before) || isMost(changed.after, after) ? NOTHING : changed;
}

/** The words that are in both, by their indexes. */
interface Same {
    readonly before: ReadonlySet<number>;
    readonly after: ReadonlySet<number>;
}

/** The longest run of words, in order, that both lines have. */
function sameWords(old: readonly string[], now: readonly string[]): Same {
    const width = now.length + 1;
    const lengths = new Uint16Array((old.length + 1) * width);
    const at = (row: number, column: number) => lengths[row * width + column] ?? 0;
    for (let row = old.length - 1; row >= 0; row -= 1) {
        for (let column = now.length - 1; column >= 0; column -= 1) {
            lengths[row * width + column] =
                old[row] === now[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1));
        }
    }
    const [before, after] = [new Set<number>(), new Set<number>()];
    for (let row = 0, column = 0; row < old.length && column < now.length; ) {
        if (old[row] === now[column]) {
            before.add(row++);
            after.add(column++);
        } else if (at(row + 1, column) >= at(row, column + 1)) row += 1;
        else column += 1;
    }
    return { before, after };
}

function sameEnds(old: readonly string[], now: readonly string[]): Same {
    const [before, after] = [new Set<number>(), new Set<number>()];
    const shorter = Math.min(old.length, now.length);
    let head = 0;
    while (head < shorter && old[head] === now[head]) {
        before.add(head);
        after.add(head++);
    }
    for (let tail = 1; tail <= shorter - head && old.at(-tail) === now.at(-tail); tail += 1) {
        before.add(old.length - tail);
        after.add(now.length - tail);
    }
    return { before, after };
}

/** The runs of words that are not the same, blanks between two of them included. */
function partsOf(words: readonly string[], same: ReadonlySet<number>): Part[] {
    const parts: { start: number; end: number }[] = [];
    let place = 0;
    for (const [index, word] of words.entries()) {
        const end = place + word.length;
        const last = parts.at(-1);
        const joins = word.trim() === "" && last?.end === place && index + 1 < words.length && !same.has(index + 1);
        if (!same.has(index) || joins) {
            if (last?.end === place) last.end = end;
            else parts.push({ start: place, end });
        }
        place = end;
    }
    return parts.filter(({ start, end }) => words.join("").slice(start, end).trim() !== "");
}

function isMost(parts: readonly Part[], line: string): boolean {
    const changed = parts.reduce((sum, { start, end }) => sum + end - start, 0);
    return changed > MOST * line.trim().length;
}
