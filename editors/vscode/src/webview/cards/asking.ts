// The common parts of cards that ask: the way to them by the keyboard, and whether what they ask about was in sight.
//
// Rule: nothing is allowed that was not in sight. An element that is clipped, scrolled away or squeezed to nothing is not.

import type { RefObject } from "preact";
import { useCallback, useLayoutEffect, useRef, useState } from "preact/hooks";

import { useApp } from "../app/context.ts";
import { SETTLE_MS } from "../app/relay.ts";

/** Makes a card the target of the command that leads to what waits; returns whether it takes the answering keys yet. */
export function useAskingCard(card: RefObject<HTMLElement | null>): () => boolean {
    const app = useApp();
    const settles = useRef(0);
    useLayoutEffect(() => {
        const element = card.current;
        app.focus.set("waiting", () => element?.focus());
        if (app.relay.takes) {
            settles.current = performance.now() + SETTLE_MS;
            element?.focus({ preventScroll: true });
        }
        return () => {
            app.focus.delete("waiting");
            if (element?.contains(document.activeElement)) app.relay.leave();
        };
    }, [app]);
    return useCallback(() => performance.now() >= settles.current, []);
}

/** The marks at both ends of what has to be in sight, and whether both were. */
export interface Sight {
    readonly seen: boolean;
    readonly first: (element: Element | null) => void;
    readonly last: (element: Element | null) => void;
}

/** Watches two marks; `what` is a key of what they stand around. */
export function useSight(what: string): Sight {
    const [seen, setSeen] = useState<{ what: string; ends: number }>({ what, ends: 0 });
    const observers = useRef(new Map<number, IntersectionObserver>());
    const watch = (end: number) => (element: Element | null) => {
        observers.current.get(end)?.disconnect();
        observers.current.delete(end);
        if (!element) return;
        const observer = new IntersectionObserver((entries) => {
            if (!entries.some((entry) => entry.isIntersecting)) return;
            observer.disconnect();
            setSeen((now) => ({ what, ends: (now.what === what ? now.ends : 0) | end }));
        });
        observer.observe(element);
        observers.current.set(end, observer);
    };
    return {
        seen: seen.what === what && seen.ends === 3,
        first: useCallback(watch(1), [what]),
        last: useCallback(watch(2), [what]),
    };
}
