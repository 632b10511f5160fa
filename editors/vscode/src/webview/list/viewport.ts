// The scrolled box of a long list: measures rows, puts them to their places and keeps the read text in place.
//
// Rule: at the end the list follows what comes; anywhere else the first row in sight stays. The scroll position is computed from
// the layout and read back only after the user scrolled. A row is measured when it is mounted and when the observer names it.
// Redraws are bounded per frame, so that no sequence of heights can hold the page.

import { type Position, RowLayout, type Sight, type View } from "./layout.ts";

/** Distance from the end that counts as the end, in pixels. */
const NEAR = 8;

/** Space above a row that the keyboard goes to, in pixels. */
const ABOVE = 8;

/** The most redraws before the next frame. */
export const MAX_PASSES = 4;

/** Height of the box before it was measured, in pixels. */
const FIRST_HEIGHT = 800;

/** The receiver of what a viewport finds. */
export interface ViewportListener {
    /** Other rows are in sight: draw. */
    redraw(): void;
    /** The end came into sight or left it. */
    away(away: boolean): void;
}

/** The box and the rows in it. */
export class Viewport {
    readonly layout = new RowLayout();
    private readonly position: Position = { following: true, anchor: undefined, offset: 0, top: 0 };
    private readonly mounted = new Map<string, HTMLElement>();
    private readonly fresh = new Map<string, HTMLElement>();
    private readonly placed = new WeakMap<HTMLElement, number>();
    private box: HTMLElement | undefined;
    private body: HTMLElement | undefined;
    private observer: ResizeObserver | undefined;
    private height = FIRST_HEIGHT;
    private bodyHeight = -1;
    private drawn: Sight = { start: 0, end: 0 };
    private passes = 0;
    private later = false;
    private isAway = false;
    private wanted: string | undefined;

    constructor(private readonly listener: ViewportListener) {}

    /** Takes the elements of the list; returns how to let go of them. */
    open(box: HTMLElement, body: HTMLElement): () => void {
        this.box = box;
        this.body = body;
        this.height = box.clientHeight;
        this.observer = new ResizeObserver((entries) => this.resized(entries));
        this.observer.observe(box);
        for (const row of this.mounted.values()) this.observer.observe(row);
        return () => this.observer?.disconnect();
    }

    /** Takes the element of a row, or that it is gone. */
    attach(key: string, element: HTMLElement | null): void {
        const before = this.mounted.get(key);
        if (before && before !== element) this.observer?.unobserve(before);
        if (element) {
            this.mounted.set(key, element);
            this.fresh.set(key, element);
            this.observer?.observe(element);
        } else {
            this.mounted.delete(key);
            this.fresh.delete(key);
        }
    }

    /** The rows to draw. */
    sight(): View {
        const view = this.layout.view(this.position, this.height);
        this.drawn = view;
        return view;
    }

    /** Whether the beginning of the list is nearer than this many pixels, or in sight. */
    isEarly(pixels: number): boolean {
        return this.layout.total < this.height || this.layout.view(this.position, this.height).top < pixels;
    }

    /** Key of the row that is to get the focus and may not be on the page yet. */
    get awaited(): string | undefined {
        return this.wanted;
    }

    /** Puts everything to its place; call it after each drawing. */
    arrange(): void {
        const { box, body } = this;
        if (!box || !body) return;
        for (const [key, element] of this.fresh) this.layout.measure(key, element.getBoundingClientRect().height);
        this.fresh.clear();
        const { total } = this.layout;
        if (total !== this.bodyHeight) {
            this.bodyHeight = total;
            body.style.height = `${total}px`;
        }
        for (const [key, element] of this.mounted) {
            const top = this.layout.top(Math.max(0, this.layout.index(key)));
            if (this.placed.get(element) === top) continue;
            this.placed.set(element, top);
            element.style.transform = `translateY(${top}px)`;
        }
        const view = this.layout.view(this.position, this.height);
        if (Math.abs(box.scrollTop - view.top) >= 1) box.scrollTop = view.top;
        this.position.top = view.top;
        this.noteAway();
        this.focusWanted();
        if (view.start !== this.drawn.start || view.end !== this.drawn.end) this.drawAgain();
    }

    /** Takes where the user scrolled to. */
    scrolled(): void {
        const { box, position } = this;
        if (!box || Math.abs(box.scrollTop - position.top) < 1) return;
        const top = Math.round(box.scrollTop);
        // A box that grows is scrolled up by the browser before the observer names it: it is at its end all the same.
        const distance = box.scrollHeight - box.clientHeight - box.scrollTop;
        const up = top < position.top;
        if (!up && distance <= NEAR) position.following = true;
        else if (up) position.following = distance <= 1;
        const index = this.layout.rowAt(top);
        position.anchor = this.layout.key(index);
        position.offset = top - this.layout.top(index);
        position.top = top;
        this.noteAway();
        this.listener.redraw();
    }

    /** Scrolls to the end and follows it. */
    follow(): void {
        this.position.following = true;
        this.arrange();
    }

    /** Gives a row the focus, scrolling to it. */
    reveal(key: string): void {
        const index = this.layout.index(key);
        if (index < 0) return;
        const { top } = this.layout.view(this.position, this.height);
        const isSeen = this.layout.top(index) >= top && this.layout.top(index + 1) <= top + this.height;
        if (!isSeen) {
            const following = index === this.layout.count - 1;
            Object.assign(this.position, { following, anchor: key, offset: -ABOVE });
        }
        this.wanted = key;
        this.listener.redraw();
    }

    private resized(entries: readonly ResizeObserverEntry[]): void {
        let changed = false;
        for (const { target, borderBoxSize } of entries) {
            const key = (target as HTMLElement).dataset["row"];
            if (target === this.box) {
                changed ||= this.height !== target.clientHeight;
                this.height = target.clientHeight;
            } else if (key !== undefined && this.mounted.get(key) === target) {
                changed = this.layout.measure(key, borderBoxSize[0]?.blockSize ?? 0) || changed;
            }
        }
        if (changed) this.arrange();
    }

    private drawAgain(): void {
        if (this.passes === 0) requestAnimationFrame(() => this.nextFrame());
        this.passes += 1;
        if (this.passes <= MAX_PASSES) this.listener.redraw();
        else this.later = true;
    }

    private nextFrame(): void {
        this.passes = 0;
        if (!this.later) return;
        this.later = false;
        this.listener.redraw();
    }

    private noteAway(): void {
        const { following, top } = this.position;
        const away = !following && this.layout.total - this.height - top > NEAR;
        if (away === this.isAway) return;
        this.isAway = away;
        this.listener.away(away);
    }

    private focusWanted(): void {
        const element = this.wanted === undefined ? undefined : this.mounted.get(this.wanted);
        if (!element) return;
        this.wanted = undefined;
        element.focus({ preventScroll: true });
    }
}
