// The places of the rows of a long list, in a box that rounds as browsers do.
//
// Rule: heights are random and fractional, and every run has its seed in the message. Drawing and arranging agree after every
// event, within a bounded number of redraws, and nothing that is read moves.

import assert from "node:assert/strict";
import test from "node:test";

import {
    MAX_ROWS,
    type Position,
    RowLayout,
    type Sight,
} from "../../../../editors/vscode/src/webview/list/layout";
import { MAX_PASSES, Viewport } from "../../../../editors/vscode/src/webview/list/viewport";

const at = (top: number): Position => ({ following: false, anchor: undefined, offset: 0, top });

test("the rows on the page cover what is seen, and are bounded", () => {
    for (const height of [1, 7, 64, 900, 5_000]) {
        const layout = new RowLayout();
        layout.setKeys(Array.from({ length: 5_000 }, (_, index) => String(index)));
        for (let index = 0; index < 5_000; index += 1) layout.measure(String(index), height);
        for (const top of [0, height * 2_500, layout.total]) {
            const view = layout.view(at(top), 800);
            assert.ok(view.end - view.start <= MAX_ROWS, `${view.end - view.start} rows of ${height}`);
            assert.ok(view.start <= layout.rowAt(view.top));
            if (height >= 20) assert.ok(view.end === 5_000 || layout.top(view.end) >= view.top + 800);
        }
    }
});

test("a row that was never measured counts as the rounded mean of the others", () => {
    const layout = new RowLayout();
    layout.setKeys(["a", "b", "c"]);
    layout.measure("a", 100);
    layout.measure("b", 51);
    assert.deepEqual([layout.top(1), layout.top(2), layout.total], [100, 151, 227]);
    assert.equal(layout.measure("a", 99.4), false, "a part of a pixel is the same height");
    assert.equal(layout.measure("a", 130), true);
    assert.equal(layout.total, 257);
});

test("rows that come before others push them down, and rows that go leave no height behind", () => {
    const layout = new RowLayout();
    layout.setKeys(["c", "d"]);
    layout.measure("c", 40);
    layout.measure("d", 60);
    layout.setKeys(["a", "b", "c", "d"]);
    layout.measure("a", 10);
    layout.measure("b", 20);
    assert.deepEqual([0, 1, 2, 3, 4].map((index) => layout.top(index)), [0, 10, 30, 70, 130]);
    layout.setKeys(["a", "b"]);
    assert.equal(layout.total, 30);
    assert.equal(layout.index("c"), -1);
});

/** A generator of random numbers between 0 and 1, the same for the same seed. */
function randomOf(seed: number): () => number {
    let state = seed;
    return () => {
        state = (state + 0x6d2b79f5) | 0;
        let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
        mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
        return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
    };
}

/** A row of the fake page. */
interface Row {
    readonly dataset: { row: string };
    readonly style: { transform: string };
    getBoundingClientRect(): { height: number };
    focus(): void;
}

/** A browser with one list: it rounds the scroll position, and draws in microtasks as the page does. */
class Page {
    readonly heights = new Map<string, number>();
    keys: string[] = [];
    wants = false;
    drawn: Sight = { start: 0, end: 0 };
    readonly viewport = new Viewport({ redraw: () => (this.wants = true), away: () => undefined });
    private readonly rows = new Map<string, Row>();
    private place = 0;
    private notify: (entries: readonly ResizeObserverEntry[]) => void = () => undefined;
    private readonly frames: (() => void)[] = [];
    private readonly body = { style: { height: "" } };
    private readonly box: { dataset: object; clientHeight: number; scrollHeight: number; scrollTop: number };

    constructor(
        private height: number,
        private readonly step: number,
    ) {
        const page = this;
        this.box = {
            dataset: {},
            get clientHeight() {
                return Math.round(page.height);
            },
            get scrollHeight() {
                return page.scrollHeight;
            },
            get scrollTop() {
                return page.place;
            },
            set scrollTop(top: number) {
                const most = Math.max(0, page.scrollHeight - page.height);
                page.place = Math.round(Math.min(most, Math.max(0, top)) / page.step) * page.step;
            },
        };
        const scope = globalThis as unknown as Record<string, unknown>;
        scope["ResizeObserver"] = class {
            constructor(notify: Page["notify"]) {
                page.notify = notify;
            }
            observe = () => undefined;
            unobserve = () => undefined;
            disconnect = () => undefined;
        };
        scope["requestAnimationFrame"] = (run: () => void) => this.frames.push(run);
        this.viewport.open(this.box as unknown as HTMLElement, this.body as unknown as HTMLElement);
    }

    get scrollHeight(): number {
        return Number.parseFloat(this.body.style.height || "0");
    }

    get scrollTop(): number {
        return this.place;
    }

    /** Draws until nothing asks for it, and runs the frames that were asked for. */
    settle(): void {
        this.wants = true;
        this.task();
        for (let count = 0; this.frames.length > 0; count += 1) {
            assert.ok(count < 20, "the frames end");
            this.frame();
        }
    }

    /** A task with its microtasks. */
    task(): void {
        for (let redraws = 0; this.wants; redraws += 1) {
            assert.ok(redraws <= MAX_PASSES + 1, "a task ends");
            this.draw();
        }
    }

    /** The next frame. */
    frame(): void {
        for (const run of this.frames.splice(0)) run();
        this.task();
    }

    scrollTo(top: number): void {
        this.box.scrollTop = top;
        this.viewport.scrolled();
        this.settle();
    }

    /** The box has another height: the browser keeps within the new bounds and says so before the observer does. */
    resize(height: number): void {
        this.height = height;
        const before = this.place;
        this.box.scrollTop = before;
        if (this.place !== before) this.viewport.scrolled();
        this.notify([{ target: this.box } as unknown as ResizeObserverEntry]);
        this.settle();
    }

    /** A row on the page has another height: the observer names it and no other. */
    grow(key: string, height: number): void {
        this.heights.set(key, height);
        const target = this.rows.get(key);
        if (target) this.notify([{ target, borderBoxSize: [{ blockSize: height }] } as unknown as ResizeObserverEntry]);
        this.settle();
    }

    /** Where the top of a row is seen, from the top of the box. */
    seen(key: string): number {
        return this.viewport.layout.top(this.viewport.layout.index(key)) - this.place;
    }

    firstSeen(): string {
        return this.viewport.layout.key(this.viewport.layout.rowAt(Math.round(this.place))) ?? "";
    }

    private draw(): void {
        this.wants = false;
        this.viewport.layout.setKeys(this.keys.slice());
        const { start, end } = this.viewport.sight();
        this.drawn = { start, end };
        const shown = new Set(this.keys.slice(start, end));
        for (const key of [...this.rows.keys()]) {
            if (shown.has(key)) continue;
            this.rows.delete(key);
            this.viewport.attach(key, null);
        }
        for (const key of shown) if (!this.rows.has(key)) this.mount(key);
        this.viewport.arrange();
    }

    private mount(key: string): void {
        const row: Row = {
            dataset: { row: key },
            style: { transform: "" },
            getBoundingClientRect: () => ({ height: this.heights.get(key) ?? 0 }),
            focus: () => undefined,
        };
        this.rows.set(key, row);
        this.viewport.attach(key, row as unknown as HTMLElement);
    }
}

function agree(page: Page, seed: number, what: string): void {
    const { start, end } = page.viewport.sight();
    assert.deepEqual(page.drawn, { start, end }, `seed ${seed}: drawn and arranged agree after ${what}`);
    assert.ok(Number.isInteger(page.scrollHeight), `seed ${seed}: whole pixels`);
    const { layout } = page.viewport;
    const [first, last] = [layout.rowAt(Math.round(page.scrollTop)), layout.rowAt(Math.round(page.scrollTop) + 400)];
    if (page.keys.length > 0) assert.ok(first >= start && last < end, `seed ${seed}: what is seen is drawn after ${what}`);
}

for (const step of [1, 1 / 1.5, 1 / 3]) {
    test(`drawing and arranging agree for random heights where the browser rounds to ${step.toFixed(2)} pixels`, () => {
        for (let seed = 1; seed <= 60; seed += 1) {
            const random = randomOf(seed);
            const page = new Page(300 + random() * 600, step);
            let newest = 0;
            let oldest = 0;
            const height = () => 12 + random() ** 3 * 900;
            const append = () => {
                const key = `n${newest++}`;
                page.heights.set(key, height());
                page.keys.push(key);
            };
            for (let count = 0; count < 100 + random() * 200; count += 1) append();
            page.settle();
            agree(page, seed, "opening");
            for (let event = 0; event < 60; event += 1) {
                const kind = random();
                if (kind < 0.5) {
                    const key = page.keys.at(-1) ?? "";
                    page.grow(key, (page.heights.get(key) ?? 0) + 0.1 + random() * 60);
                } else if (kind < 0.65) {
                    append();
                    page.settle();
                } else if (kind < 0.75) {
                    const before = page.firstSeen();
                    const seen = page.seen(before);
                    for (let count = 0; count < 30; count += 1) {
                        const key = `o${oldest++}`;
                        page.heights.set(key, height());
                        page.keys.unshift(key);
                    }
                    page.settle();
                    assert.ok(Math.abs(page.seen(before) - seen) <= 1, `seed ${seed}: older rows move nothing`);
                } else if (kind < 0.95) {
                    page.scrollTo(random() * page.scrollHeight);
                } else {
                    page.resize(300 + random() * 600);
                }
                agree(page, seed, `event ${event}`);
            }
        }
    });
}

test("the end stays in sight while an answer grows by parts of a pixel", () => {
    const page = new Page(607.6, 1);
    page.keys = Array.from({ length: 121 }, (_, index) => `r${index}`);
    for (const [index, key] of page.keys.entries()) page.heights.set(key, 19.5 * (1 + (index % 23)));
    page.settle();
    for (let piece = 0; piece < 2_000; piece += 1) {
        page.grow("r120", 19.5 + piece * 0.7);
        assert.ok(page.scrollHeight - 608 - page.scrollTop <= 1, `piece ${piece}`);
        agree(page, 0, `piece ${piece}`);
    }
});

test("the end stays in sight while the box grows and shrinks", () => {
    const page = new Page(600, 1);
    page.keys = Array.from({ length: 60 }, (_, index) => `r${index}`);
    for (const [index, key] of page.keys.entries()) page.heights.set(key, 20.3 * (1 + (index % 7)));
    page.settle();
    for (const height of [200, 580.5, 120, 900, 600]) {
        page.resize(height);
        page.grow("r59", 100 + height);
        assert.ok(page.scrollHeight - height - page.scrollTop <= 1, `in a box of ${height}`);
    }
});

test("what is read stays where it is while an answer grows at the end", () => {
    const page = new Page(600, 1);
    page.keys = Array.from({ length: 300 }, (_, index) => `r${index}`);
    for (const [index, key] of page.keys.entries()) page.heights.set(key, 20.3 * (1 + (index % 7)));
    page.settle();
    page.scrollTo(page.scrollHeight / 2);
    const read = page.firstSeen();
    const seen = page.seen(read);
    for (let piece = 0; piece < 200; piece += 1) page.grow("r299", 30 + piece * 11.3);
    assert.equal(page.firstSeen(), read);
    assert.equal(page.seen(read), seen);
});

test("a list whose heights never come to rest gives the page back before each frame", () => {
    const page = new Page(600, 1);
    page.keys = Array.from({ length: 400 }, (_, index) => `r${index}`);
    // A row has another height each time it is mounted.
    let turn = 0;
    page.heights.get = () => 20 + ((turn++ * 7_919) % 1_000);
    page.wants = true;
    page.task();
    for (let frame = 0; frame < 50; frame += 1) page.frame();
});
