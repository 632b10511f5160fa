// The common parts of menus and popovers: they close when the user goes elsewhere.
//
// Rule: nothing outside of a popup is clicked by the click that closes it but what the user clicked.

import type { RefObject } from "preact";
import { useEffect } from "preact/hooks";

/** Calls `close` when the pointer or the focus goes outside of a box while a popup in it is open. */
export function useOutside(box: RefObject<HTMLElement | null>, isOpen: boolean, close: () => void): void {
    useEffect(() => {
        if (!isOpen) return undefined;
        const outside = (event: Event) => {
            if (!box.current?.contains(event.target as Node)) close();
        };
        document.addEventListener("pointerdown", outside);
        document.addEventListener("focusin", outside);
        return () => {
            document.removeEventListener("pointerdown", outside);
            document.removeEventListener("focusin", outside);
        };
    }, [isOpen]);
}

/** The entry that a key leads to from another one; undefined when the key leads nowhere. */
export function entryByKey(key: string, at: number, labels: readonly string[]): number | undefined {
    const { length } = labels;
    if (key === "ArrowDown") return (at + 1) % length;
    if (key === "ArrowUp") return (at - 1 + length) % length;
    if (key === "Home") return 0;
    if (key === "End") return length - 1;
    if (key.length !== 1 || key === " ") return undefined;
    const begins = (index: number) => labels[index]?.toLowerCase().startsWith(key.toLowerCase());
    const order = Array.from({ length }, (_, step) => (at + 1 + step) % length);
    return order.find(begins) ?? at;
}
