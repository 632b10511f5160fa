// Where the rows of a long list are, of which only those in sight are on the page.
//
// Rule: `view` alone decides which rows are in sight and how far the list is scrolled; drawing and arranging both ask
// it, with the same arguments. All lengths are whole pixels, because a browser rounds the scroll position it is given.
// Work follows what changed: the tops above the first changed row are kept.

/** Pixels above and below the visible part that are on the page as well. */
export const OVERSCAN = 800;

/** The most rows on the page, whatever their heights. */
export const MAX_ROWS = 80;

/** The estimated height of a row before the first measurement, in pixels. */
const GUESS = 64;

/** Heights of rows that left the list are dropped when there are this many more heights than rows. */
const SPARE_HEIGHTS = 1_000;

/** The rows to draw, the end exclusive. */
export interface Sight {
    readonly start: number;
    readonly end: number;
}

/** The visible part, and the scroll position that shows it, in pixels. */
export interface View extends Sight {
    readonly top: number;
}

/** The anchor while heights change. */
export interface Position {
    /** Whether the end of the list stays in sight. */
    following: boolean;
    /** The key of the row that stays; absent before the first scroll. */
    anchor: string | undefined;
    /** The scroll position, counted from the top of the anchor. */
    offset: number;
    /** The last scroll position; used when the anchor has left the list. */
    top: number;
}

/** Keys, heights and places of the rows of one list. */
export class RowLayout {
    private keys: readonly string[] = [];
    private readonly indexes = new Map<string, number>();
    private readonly heights = new Map<string, number>();
    private tops = new Float64Array(1);
    /** Tops at and before this index are right. */
    private valid = 0;
    private sum = 0;
    private samples = 0;
    private estimate = GUESS;

    /** Number of rows. */
    get count(): number {
        return this.keys.length;
    }

    /** Height of all rows together, in pixels. */
    get total(): number {
        return this.top(this.count);
    }

    /** Takes the rows as they are now, in order. */
    setKeys(keys: readonly string[]): void {
        const before = this.keys;
        if (keys === before) return;
        let same = 0;
        while (same < keys.length && same < before.length && keys[same] === before[same]) same += 1;
        this.keys = keys;
        for (const key of before.slice(same)) this.indexes.delete(key);
        for (let index = same; index < keys.length; index += 1) this.indexes.set(keys[index] ?? "", index);
        this.valid = Math.min(this.valid, same);
        if (this.heights.size > keys.length + SPARE_HEIGHTS) this.dropHeights();
    }

    /** Key of the row at an index; undefined outside of the list. */
    key(index: number): string | undefined {
        return this.keys[index];
    }

    /** Index of a row; -1 when it is not in the list. */
    index(key: string | undefined): number {
        return (key === undefined ? undefined : this.indexes.get(key)) ?? -1;
    }

    /** Takes the measured height of a row in pixels, rounded up; returns whether the height changed. */
    measure(key: string, measured: number): boolean {
        const height = Math.ceil(measured - 0.01);
        const before = this.heights.get(key);
        if (before === height) return false;
        this.heights.set(key, height);
        const index = this.index(key);
        if (index >= 0) this.valid = Math.min(this.valid, index);
        if (before === undefined) this.sample(height);
        return true;
    }

    /** Top of the row at an index; at `count`, the height of the whole. */
    top(index: number): number {
        if (this.valid < index) this.place(index);
        return this.tops[index] ?? 0;
    }

    /** First row whose end is below a scroll position; the last row if absent. */
    rowAt(place: number): number {
        let low = 0;
        let high = Math.max(0, this.count - 1);
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.top(middle + 1) > place) high = middle;
            else low = middle + 1;
        }
        return low;
    }

    /** The visible part in a box of this height, in pixels. */
    view(position: Readonly<Position>, height: number): View {
        const top = this.scrollTop(position, height);
        return { top, ...this.sight(top, height) };
    }

    private scrollTop({ following, anchor, offset, top }: Readonly<Position>, height: number): number {
        const end = Math.max(0, this.total - height);
        if (following) return end;
        const index = this.index(anchor);
        const wanted = index < 0 ? Math.round(top) : this.top(index) + offset;
        return Math.min(end, Math.max(0, wanted));
    }

    private sight(top: number, height: number): Sight {
        if (this.count === 0) return { start: 0, end: 0 };
        const start = this.rowAt(top - OVERSCAN);
        const end = Math.min(this.count, this.rowAt(top + height + OVERSCAN) + 1);
        if (end - start <= MAX_ROWS) return { start, end };
        const first = Math.max(0, this.rowAt(top) - Math.floor(MAX_ROWS / 4));
        return { start: first, end: Math.min(this.count, first + MAX_ROWS) };
    }

    private place(wanted: number): void {
        const length = this.count + 1;
        if (this.tops.length < length) {
            const longer = new Float64Array(length + (length >> 1));
            longer.set(this.tops);
            this.tops = longer;
        }
        const to = Math.min(wanted, this.count);
        for (let index = this.valid; index < to; index += 1) {
            const height = this.heights.get(this.keys[index] ?? "") ?? this.estimate;
            this.tops[index + 1] = (this.tops[index] ?? 0) + height;
        }
        this.valid = Math.max(this.valid, to);
    }

    /** Rows that were never drawn count as the mean. It moves at powers of two only, because each move places all rows again. */
    private sample(height: number): void {
        this.sum += height;
        this.samples += 1;
        if ((this.samples & (this.samples - 1)) !== 0) return;
        const mean = Math.round(this.sum / this.samples);
        if (mean === this.estimate) return;
        this.estimate = mean;
        this.valid = 0;
    }

    private dropHeights(): void {
        for (const key of this.heights.keys()) if (!this.indexes.has(key)) this.heights.delete(key);
    }
}
