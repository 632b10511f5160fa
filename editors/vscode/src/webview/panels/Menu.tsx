// A button that opens a list to choose from.
//
// Rule: the keyboard does all of it: arrows and letters move, Enter and Space choose, Escape and Tab close, and the focus goes
// back to the button. It opens upward or downward by a class; nothing is placed by style attributes.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";

import { Icon } from "./Icon.tsx";

export interface Choice {
    readonly value: string;
    readonly label: string;
    readonly detail?: string;
    readonly disabled?: boolean;
}

interface Props {
    label: string;
    value: string;
    choices: readonly Choice[];
    onChoose: (value: string) => void;
    onOpen?: () => void;
    /** Receives what opens the menu. */
    opener?: (open: () => void) => void;
    side: "up" | "down";
    children: ComponentChildren;
    disabled?: boolean;
}

export function Menu({
    label,
    value,
    choices,
    onChoose,
    onOpen,
    opener,
    side,
    children,
    disabled = false,
}: Props) {
    const id = useId();
    const [at, setAt] = useState<number>();
    const box = useRef<HTMLDivElement>(null);
    const button = useRef<HTMLButtonElement>(null);
    const list = useRef<HTMLUListElement>(null);
    const isOpen = at !== undefined;

    const open = () => {
        if (disabled) return;
        onOpen?.();
        setAt(
            Math.max(
                0,
                choices.findIndex((choice) => choice.value === value),
            ),
        );
    };
    const close = () => {
        setAt(undefined);
        button.current?.focus();
    };
    const choose = (choice: Choice | undefined) => {
        if (!choice || choice.disabled) return;
        close();
        if (choice.value !== value) onChoose(choice.value);
    };

    useLayoutEffect(() => opener?.(open));
    useLayoutEffect(() => {
        if (isOpen) list.current?.focus();
    }, [isOpen]);
    useLayoutEffect(() => {
        list.current?.querySelector("[data-at='true']")?.scrollIntoView({ block: "nearest" });
    }, [at]);
    useEffect(() => {
        if (!isOpen) return undefined;
        const outside = (event: Event) => {
            if (!box.current?.contains(event.target as Node)) setAt(undefined);
        };
        document.addEventListener("pointerdown", outside);
        document.addEventListener("focusin", outside);
        return () => {
            document.removeEventListener("pointerdown", outside);
            document.removeEventListener("focusin", outside);
        };
    }, [isOpen]);

    const onKey = (event: KeyboardEvent) => {
        if (at === undefined) return;
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (step !== undefined) setAt((at + step + choices.length) % choices.length);
        else if (event.key === "Home") setAt(0);
        else if (event.key === "End") setAt(choices.length - 1);
        else if (event.key === "Enter" || event.key === " ") choose(choices[at]);
        else if (event.key === "Escape" || event.key === "Tab") close();
        else if (event.key.length === 1) {
            const letter = event.key.toLowerCase();
            const after = choices.findIndex(
                (choice, index) => index > at && choice.label.toLowerCase().startsWith(letter),
            );
            const found =
                after >= 0
                    ? after
                    : choices.findIndex((choice) => choice.label.toLowerCase().startsWith(letter));
            if (found >= 0) setAt(found);
        } else return;
        event.preventDefault();
        event.stopPropagation();
    };

    return (
        <div class={`menu ${side}`} ref={box}>
            <button
                ref={button}
                type="button"
                class="menu-button"
                aria-haspopup="listbox"
                aria-expanded={isOpen}
                aria-label={label}
                title={label}
                disabled={disabled}
                onClick={() => (isOpen ? close() : open())}
                onKeyDown={(event) => {
                    if (isOpen || (event.key !== "ArrowDown" && event.key !== "ArrowUp")) return;
                    event.preventDefault();
                    open();
                }}
            >
                {children}
                <span class="menu-mark">
                    <Icon name="chevron" />
                </span>
            </button>
            {isOpen && (
                <ul
                    ref={list}
                    class="menu-list"
                    role="listbox"
                    tabIndex={0}
                    aria-label={label}
                    aria-activedescendant={`${id}-${at}`}
                    onKeyDown={onKey}
                >
                    {choices.map((choice, index) => (
                        <li
                            key={choice.value}
                            id={`${id}-${index}`}
                            role="option"
                            aria-selected={choice.value === value}
                            aria-disabled={choice.disabled ?? false}
                            class="menu-item"
                            data-at={index === at}
                            onClick={() => choose(choice)}
                            onPointerMove={() => setAt(index)}
                        >
                            <span class="menu-check">{choice.value === value && <Icon name="check" />}</span>
                            <span class="menu-text">
                                <span>{choice.label}</span>
                                {choice.detail !== undefined && choice.detail !== "" && (
                                    <span class="hint">{choice.detail}</span>
                                )}
                            </span>
                        </li>
                    ))}
                </ul>
            )}
        </div>
    );
}
