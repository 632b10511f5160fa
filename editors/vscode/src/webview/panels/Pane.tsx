// A page in the place of the conversation: a heading, a way back, and what it is about.
//
// Rule: it is closed by Escape as by its button, and the keyboard goes back to the prompt.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

import { useApp } from "../app/context.ts";
import { Icon } from "./Icon.tsx";

export function PaneFrame({ title, children }: { title: string; children: ComponentChildren }) {
    const app = useApp();
    const heading = useRef<HTMLHeadingElement>(null);
    // It was opened by an act of the user: reading begins at its heading, and continues there when what had the
    // keyboard is gone, before the next key can come.
    useLayoutEffect(() => heading.current?.focus(), []);
    useLayoutEffect(() => {
        if (document.hasFocus() && document.activeElement === document.body)
            heading.current?.focus({ preventScroll: true });
    });
    const close = () => {
        app.set({ pane: undefined });
        app.focus.get("prompt")?.();
    };
    return (
        <section
            class="pane"
            aria-label={title}
            onKeyDown={(event) => {
                if (event.key !== "Escape" || event.defaultPrevented) return;
                event.preventDefault();
                event.stopPropagation();
                close();
            }}
        >
            <header class="pane-head">
                <h2 ref={heading} tabIndex={-1}>
                    {title}
                </h2>
                <button type="button" class="icon-button" title="Close" aria-label={`Close ${title}`} onClick={close}>
                    <Icon name="close" />
                </button>
            </header>
            {children}
        </section>
    );
}
