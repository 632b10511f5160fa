// A row that says what happened in one line and more when it is opened.
//
// Rule: the line is one button; whether it is open is remembered by key, so that a row that left the page and came back is
// as it was.

import type { ComponentChildren } from "preact";

import { useToggle } from "../app/context.ts";
import { Icon, type IconName, Spinner } from "../panels/Icon.tsx";

interface Props {
    name: string;
    icon: IconName;
    title: ComponentChildren;
    /** The end of the line. */
    aside?: ComponentChildren;
    tone?: "plain" | "failed" | "warning" | "running" | "quiet";
    habit?: boolean;
    /** The content when it is open; nothing can be opened without. */
    children?: ComponentChildren | (() => ComponentChildren);
    onOpen?: () => void;
}

export function Card({ name, icon, title, aside, tone = "plain", habit = false, children, onOpen }: Props) {
    const [open, toggle] = useToggle(name, habit);
    const line = (
        <>
            <span class="card-icon">{tone === "running" ? <Spinner /> : <Icon name={icon} />}</span>
            <span class="card-title">{title}</span>
            {aside !== undefined && <span class="card-aside">{aside}</span>}
        </>
    );
    if (children === undefined || children === null) {
        return (
            <div class={`card ${tone}`}>
                <div class="card-line">{line}</div>
            </div>
        );
    }
    const onClick = () => {
        if (!open) onOpen?.();
        toggle();
    };
    return (
        <div class={`card ${tone}${open ? " open" : ""}`}>
            <button type="button" class="card-line" aria-expanded={open} onClick={onClick}>
                {line}
                <span class="card-chevron">
                    <Icon name="chevron" />
                </span>
            </button>
            {open && <div class="card-body">{typeof children === "function" ? children() : children}</div>}
        </div>
    );
}
