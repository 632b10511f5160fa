// Where the rows of a long list are, of which only those in sight are on the page.
//
// Rule: pure arithmetic on heights. A height that was not measured yet is taken for the mean of those that were.

/** Pixels above and below what is seen that are on the page as well. */
export const OVERSCAN = 800;

/** The most rows on the page, whatever their heights. */
export const MAX_ROWS = 80;

/** What a row is taken for before any was measured. */
const GUESS = 64;

/** The heights of rows, by their keys. */
export class Heights {
    private readonly measured = new Map<string, number>();
    private sum = 0;

    /** Notes a height; answers whether it is another one. */
    set(key: string, height: number): boolean {
        const before = this.measured.get(key);
        if (before !== undefined && Math.abs(before - height) < 0.5) return false;
        this.measured.set(key, height);
        this.sum += height - (before ?? 0);
        return true;
    }

    /** The height of a row as far as it is known. */
    get(key: string): number {
        return this.measured.get(key) ?? (this.measured.size === 0 ? GUESS : this.sum / this.measured.size);
    }
}

/** The tops of all rows, and behind them the height of the whole. */
export function topsOf(keys: readonly string[], heights: Heights): Float64Array {
    const tops = new Float64Array(keys.length + 1);
    let top = 0;
    for (let index = 0; index < keys.length; index += 1) {
        tops[index] = top;
        top += heights.get(keys[index] ?? "");
    }
    tops[keys.length] = top;
    return tops;
}

/** The first row whose end is below a place; the last row where there is none. */
export function rowAt(tops: Float64Array, place: number): number {
    let low = 0;
    let high = Math.max(0, tops.length - 2);
    while (low < high) {
        const middle = (low + high) >> 1;
        if ((tops[middle + 1] ?? 0) > place) high = middle;
        else low = middle + 1;
    }
    return low;
}

/** The rows that are to be on the page: those in sight and some around them. */
export function rowsInSight(tops: Float64Array, top: number, height: number): { start: number; end: number } {
    const count = tops.length - 1;
    if (count <= 0) return { start: 0, end: 0 };
    const start = rowAt(tops, top - OVERSCAN);
    const end = Math.min(count, rowAt(tops, top + height + OVERSCAN) + 1);
    if (end - start <= MAX_ROWS) return { start, end };
    const first = Math.max(0, rowAt(tops, top) - Math.floor(MAX_ROWS / 4));
    return { start: first, end: Math.min(count, first + MAX_ROWS) };
}
