// A long list with bounded DOM: only the rows in sight are on the page, at places of their own.
//
// Rule: the viewport decides which rows are in sight. Styles are set by script, never as attributes.

import type { ComponentChildren } from "preact";
import { useCallback, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";

import { Icon } from "../panels/Icon.tsx";
import type { Sight } from "./layout.ts";
import { Viewport } from "./viewport.ts";

/** How near the beginning older rows are asked for, in pixels. */
const EARLY = 600;

/** A row that can be drawn. */
export interface Drawn {
    readonly key: string;
}

/** The interface of a list for its owner. */
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
    /** Name of a row in the outline. */
    label: (row: R) => string;
    handle: (handle: ListHandle) => void;
    empty: ComponentChildren;
}

/** The list. A key of its own for each conversation has it begin at the end. */
export function List<R extends Drawn>(props: Props<R>) {
    const { rows, more, onOlder, handle, empty } = props;
    const scroller = useRef<HTMLDivElement>(null);
    const body = useRef<HTMLDivElement>(null);
    const [away, setAway] = useState(false);
    const [, redraw] = useReducer((count: number) => count + 1, 0);
    const viewport = useMemo(() => new Viewport({ redraw: () => redraw(0), away: setAway }), []);

    const keys = useMemo(() => rows.map((row) => row.key), [rows]);
    viewport.layout.setKeys(keys);
    const sight = viewport.sight();

    useLayoutEffect(() => {
        const [box, inside] = [scroller.current, body.current];
        return box && inside ? viewport.open(box, inside) : undefined;
    }, []);
    useLayoutEffect(() => {
        viewport.arrange();
        if (more && viewport.isEarly(EARLY)) onOlder();
    });
    useLayoutEffect(
        () => handle({ follow: () => viewport.follow(), focusRow: (key) => viewport.reveal(key) }),
        [handle],
    );
    const onKey = (event: KeyboardEvent) => {
        if (!event.altKey || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
        const focused = focusedKey(body.current);
        const from = focused === undefined ? rows.length : viewport.layout.index(focused);
        const key = viewport.layout.key(from + (event.key === "ArrowUp" ? -1 : 1));
        if (key === undefined) return;
        event.preventDefault();
        viewport.reveal(key);
    };
    return (
        <div class="conversation">
            <div
                class="scroller"
                ref={scroller}
                onScroll={() => viewport.scrolled()}
                onKeyDown={onKey}
                tabIndex={0}
                role="region"
                aria-label="Conversation"
            >
                {rows.length === 0 && empty}
                <Rows {...props} viewport={viewport} sight={sight} body={body} />
            </div>
            {away && (
                <button type="button" class="to-latest" onClick={() => viewport.follow()}>
                    <Icon name="down" /> Jump to latest
                </button>
            )}
        </div>
    );
}

interface RowsProps<R extends Drawn> extends Props<R> {
    viewport: Viewport;
    sight: Sight;
    body: { current: HTMLDivElement | null };
}

/** The rows in sight. */
function Rows<R extends Drawn>({ rows, more, draw, label, viewport, sight, body }: RowsProps<R>) {
    const attach = useCallback((key: string, element: HTMLElement | null) => viewport.attach(key, element), []);
    const pin = viewport.layout.index(viewport.awaited ?? focusedKey(body.current));
    return (
        <div class="rows" ref={body} {...(rows.length > 0 ? { role: "feed", "aria-label": "Messages" } : {})}>
            {withPin(sight, pin).map((index) => {
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

/** The name of a row. A row whose name cannot be made is drawn all the same, and reports its own fault. */
function nameOf<R extends Drawn>(row: R, label: (row: R) => string): string {
    try {
        return label(row);
    } catch {
        return "A row without a name";
    }
}

function focusedKey(body: HTMLElement | null): string | undefined {
    const focused = document.activeElement;
    if (!body || !focused || !body.contains(focused)) return undefined;
    return focused.closest<HTMLElement>("[data-row]")?.dataset["row"];
}

/** The rows to draw; the pinned row, which has the focus or is to get it, stays on the page wherever it is. */
function withPin({ start, end }: Sight, pin: number): number[] {
    const indexes = Array.from({ length: end - start }, (_, index) => start + index);
    if (pin < 0 || (pin >= start && pin < end)) return indexes;
    return pin < start ? [pin, ...indexes] : [...indexes, pin];
}
