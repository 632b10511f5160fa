// A long list with bounded DOM: only the rows in sight are on the page, at places of their own.
//
// Rule: what is being read does not move. At the end the list follows what comes; anywhere else the first row in sight
// stays where it is, whatever grows, comes or goes above it. Styles are set by script, never as attributes.

import type { ComponentChildren } from "preact";
import { useCallback, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";

import { Icon } from "../panels/Icon.tsx";
import { Heights, rowAt, rowsInSight, topsOf } from "./layout.ts";

/** How near the end counts as the end, in pixels. */
const NEAR = 8;

/** How near the beginning older rows are asked for, in pixels. */
const EARLY = 600;

/** A row that can be drawn. */
export interface Drawn {
    readonly key: string;
}

/** What can be done with a list from outside. */
export interface ListHandle {
    /** Scrolls to the end and follows it. */
    follow(): void;
    /** Gives a row the focus, scrolling to it. */
    focusRow(key: string): void;
}

interface Props<R extends Drawn> {
    rows: readonly R[];
    /** Whether there are older rows that are not here. */
    more: boolean;
    onOlder: () => void;
    draw: (row: R, index: number) => ComponentChildren;
    /** What a row is called in the outline. */
    label: (row: R) => string;
    handle: (handle: ListHandle) => void;
    empty: ComponentChildren;
}

/** The list. A key of its own for each conversation has it begin at the end. */
export function List<R extends Drawn>({ rows, more, onOlder, draw, label, handle, empty }: Props<R>) {
    const scroller = useRef<HTMLDivElement>(null);
    const inner = useRef<HTMLDivElement>(null);
    const mounted = useRef(new Map<string, HTMLElement>());
    const heights = useMemo(() => new Heights(), []);
    const place = useRef({
        top: 0,
        height: 0,
        following: true,
        anchor: undefined as string | undefined,
        offset: 0,
    });
    const wanted = useRef<string | undefined>(undefined);
    const [away, setAway] = useState(false);
    const [, redraw] = useReducer((count: number) => count + 1, 0);

    const keys = useMemo(() => rows.map((row) => row.key), [rows]);
    const tops = topsOf(keys, heights);
    const now = place.current;
    const total = tops[keys.length] ?? 0;
    const top = now.following ? Math.max(0, total - now.height) : now.top;
    const sight = rowsInSight(tops, top, now.height || 800);
    const shown = pinned(sight, keys, wanted.current ?? focusedKey(inner.current));
    const drawn = useRef({ keys, sight });
    drawn.current = { keys, sight };

    /** Puts all rows to their places and keeps what is seen where it is. */
    const arrange = useCallback(() => {
        const [box, body] = [scroller.current, inner.current];
        if (!box || !body) return;
        const { keys } = drawn.current;
        for (const [key, element] of mounted.current) heights.set(key, element.offsetHeight);
        const tops = topsOf(keys, heights);
        const total = tops[keys.length] ?? 0;
        body.style.height = `${total}px`;
        for (const element of mounted.current.values()) {
            element.style.transform = `translateY(${tops[Number(element.dataset["index"])] ?? 0}px)`;
        }
        const at = place.current;
        at.height = box.clientHeight;
        const end = Math.max(0, total - at.height);
        const anchor = at.anchor === undefined ? -1 : keys.indexOf(at.anchor);
        const goal = at.following ? end : anchor < 0 ? box.scrollTop : (tops[anchor] ?? 0) + at.offset;
        if (Math.abs(box.scrollTop - goal) > 0.5) box.scrollTop = goal;
        at.top = box.scrollTop;
        const sight = rowsInSight(tops, at.top, at.height);
        if (sight.start !== drawn.current.sight.start || sight.end !== drawn.current.sight.end) redraw(0);
    }, []);

    const noteAnchor = useCallback(() => {
        const box = scroller.current;
        if (!box) return;
        const tops = topsOf(drawn.current.keys, heights);
        const index = rowAt(tops, box.scrollTop);
        place.current.anchor = drawn.current.keys[index];
        place.current.offset = box.scrollTop - (tops[index] ?? 0);
    }, []);

    const onScroll = useCallback(() => {
        const box = scroller.current;
        if (!box) return;
        const at = place.current;
        const distance = box.scrollHeight - box.clientHeight - box.scrollTop;
        const up = box.scrollTop < at.top - 1;
        if (distance <= NEAR && !up) at.following = true;
        else if (up) at.following = distance <= 1;
        at.top = box.scrollTop;
        noteAnchor();
        setAway(!at.following);
        redraw(0);
    }, []);

    useLayoutEffect(() => {
        const observer = new ResizeObserver(arrange);
        observers.set(mounted.current, observer);
        if (scroller.current) observer.observe(scroller.current);
        for (const element of mounted.current.values()) observer.observe(element);
        return () => observer.disconnect();
    }, []);

    useLayoutEffect(() => {
        arrange();
        const key = wanted.current;
        const element = key === undefined ? undefined : mounted.current.get(key);
        if (!element) return;
        wanted.current = undefined;
        element.focus({ preventScroll: true });
    });

    useLayoutEffect(() => {
        if (more && (top < EARLY || total < now.height)) onOlder();
    });

    const follow = useCallback(() => {
        place.current.following = true;
        setAway(false);
        arrange();
        redraw(0);
    }, []);

    const focusRow = useCallback((key: string) => {
        const { keys } = drawn.current;
        const index = keys.indexOf(key);
        const box = scroller.current;
        if (index < 0 || !box) return;
        const tops = topsOf(keys, heights);
        const [begin, end] = [tops[index] ?? 0, tops[index + 1] ?? 0];
        const isSeen = begin >= box.scrollTop && end <= box.scrollTop + box.clientHeight;
        if (!isSeen) {
            const last = index === keys.length - 1;
            Object.assign(place.current, { following: last, anchor: key, offset: -8 });
            setAway(!last);
        }
        wanted.current = key;
        arrange();
        redraw(0);
    }, []);

    useLayoutEffect(() => handle({ follow, focusRow }), [handle]);

    const onKey = (event: KeyboardEvent) => {
        if (!event.altKey || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
        const focused = focusedKey(inner.current);
        const from = focused === undefined ? keys.length : keys.indexOf(focused);
        const key = keys[from + (event.key === "ArrowUp" ? -1 : 1)];
        if (key === undefined) return;
        event.preventDefault();
        focusRow(key);
    };

    const attach = useCallback((key: string, element: HTMLElement | null) => {
        const observer = observers.get(mounted.current);
        const before = mounted.current.get(key);
        if (before && before !== element) observer?.unobserve(before);
        if (element) {
            mounted.current.set(key, element);
            observer?.observe(element);
        } else {
            mounted.current.delete(key);
        }
    }, []);

    return (
        <div class="conversation">
            <div
                class="scroller"
                ref={scroller}
                onScroll={onScroll}
                onKeyDown={onKey}
                tabIndex={0}
                role="region"
                aria-label="Conversation"
            >
                {rows.length === 0 && empty}
                <div
                    class="rows"
                    ref={inner}
                    {...(rows.length > 0 ? { role: "feed", "aria-label": "Messages" } : {})}
                >
                    {shown.map((index) => {
                        const row = rows[index];
                        if (!row) return null;
                        return (
                            <Slot
                                key={row.key}
                                name={row.key}
                                index={index}
                                count={more ? -1 : rows.length}
                                label={nameOf(row, label)}
                                attach={attach}
                            >
                                {draw(row, index)}
                            </Slot>
                        );
                    })}
                </div>
            </div>
            {away && (
                <button type="button" class="to-latest" onClick={follow}>
                    <Icon name="down" /> Jump to latest
                </button>
            )}
        </div>
    );
}

interface SlotProps {
    name: string;
    index: number;
    count: number;
    label: string;
    attach: (key: string, element: HTMLElement | null) => void;
    children: ComponentChildren;
}

/** The place of a row. */
function Slot({ name, index, count, label, attach, children }: SlotProps) {
    const element = useRef<HTMLElement>(null);
    useLayoutEffect(() => {
        attach(name, element.current);
        return () => attach(name, null);
    }, [name, attach]);
    return (
        <article
            class="row"
            data-row={name}
            data-index={index}
            tabIndex={-1}
            aria-posinset={index + 1}
            aria-setsize={count}
            aria-label={label}
            ref={element}
        >
            {children}
        </article>
    );
}

/** The name of a row. One that cannot be named is drawn all the same, and says itself what is wrong with it. */
function nameOf<R extends Drawn>(row: R, label: (row: R) => string): string {
    try {
        return label(row);
    } catch {
        return "A row without a name";
    }
}

const observers = new WeakMap<Map<string, HTMLElement>, ResizeObserver>();

function focusedKey(body: HTMLElement | null): string | undefined {
    const focused = document.activeElement;
    if (!body || !focused || !body.contains(focused)) return undefined;
    return focused.closest<HTMLElement>("[data-row]")?.dataset["row"];
}

/** The rows to draw; one that has the focus, or is to get it, stays on the page wherever it is. */
function pinned(
    sight: { start: number; end: number },
    keys: readonly string[],
    pin: string | undefined,
): number[] {
    const indexes = Array.from({ length: sight.end - sight.start }, (_, index) => sight.start + index);
    const pinned = pin === undefined ? -1 : keys.indexOf(pin);
    if (pinned < 0 || (pinned >= sight.start && pinned < sight.end)) return indexes;
    return pinned < sight.start ? [pinned, ...indexes] : [...indexes, pinned];
}
