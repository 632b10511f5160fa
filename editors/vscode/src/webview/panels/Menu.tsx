// A button that opens a list to choose from.
//
// Rule: the keyboard does all of it: arrows and letters move, Enter and Space choose, Escape and Tab close, and the focus goes
// back to the button. It opens upward or downward by a class; nothing is placed by style attributes.

import type { ComponentChildren, RefObject } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";

import { Icon } from "./Icon.tsx";
import { entryByKey, useOutside } from "./popup.ts";

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
    /** The content below the choices. */
    footer?: ComponentChildren;
}

/** An open menu: the entry under the pointer or the keyboard, and what can be done. */
interface OpenMenu {
    readonly at: number | undefined;
    readonly button: RefObject<HTMLButtonElement | null>;
    /** Moves to an entry; to none, which closes the menu and leaves the focus where it is. */
    point(index: number | undefined): void;
    open(): void;
    close(): void;
    choose(choice: Choice | undefined): void;
}

function useMenu({ value, choices, onChoose, onOpen, disabled = false }: Props): OpenMenu {
    const [at, setAt] = useState<number>();
    const button = useRef<HTMLButtonElement>(null);
    const close = () => {
        setAt(undefined);
        button.current?.focus();
    };
    return {
        at,
        button,
        point: setAt,
        close,
        open: () => {
            if (disabled) return;
            onOpen?.();
            const index = choices.findIndex((choice) => choice.value === value);
            setAt(Math.max(0, index));
        },
        choose: (choice) => {
            if (!choice || choice.disabled) return;
            close();
            if (choice.value !== value) onChoose(choice.value);
        },
    };
}

export function Menu(props: Props) {
    const { label, side, children, opener, disabled = false } = props;
    const menu = useMenu(props);
    const box = useRef<HTMLDivElement>(null);
    const isOpen = menu.at !== undefined;
    useLayoutEffect(() => opener?.(menu.open));
    useOutside(box, isOpen, () => menu.point(undefined));
    return (
        <div class={`menu ${side}`} ref={box}>
            <button
                ref={menu.button}
                type="button"
                class="menu-button"
                aria-haspopup="listbox"
                aria-expanded={isOpen}
                aria-label={label}
                title={label}
                disabled={disabled}
                onClick={() => (isOpen ? menu.close() : menu.open())}
                onKeyDown={(event) => {
                    if (isOpen || (event.key !== "ArrowDown" && event.key !== "ArrowUp")) return;
                    event.preventDefault();
                    menu.open();
                }}
            >
                {children}
                <span class="menu-mark">
                    <Icon name="chevron" />
                </span>
            </button>
            {menu.at !== undefined && <Choices {...props} menu={menu} at={menu.at} />}
        </div>
    );
}

function Choices({ label, value, choices, footer, menu, at }: Props & { menu: OpenMenu; at: number }) {
    const id = useId();
    const list = useRef<HTMLUListElement>(null);
    useLayoutEffect(() => list.current?.focus(), []);
    useLayoutEffect(() => {
        list.current?.querySelector("[data-at='true']")?.scrollIntoView({ block: "nearest" });
    }, [at]);
    const onKey = (event: KeyboardEvent) => {
        const next = entryByKey(
            event.key,
            at,
            choices.map((choice) => choice.label),
        );
        if (next !== undefined) menu.point(next);
        else if (event.key === "Enter" || event.key === " ") menu.choose(choices[at]);
        else if (event.key === "Escape" || event.key === "Tab") menu.close();
        else return;
        event.preventDefault();
        event.stopPropagation();
    };
    return (
        <div class="menu-list">
            <ul
                ref={list}
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
                        onClick={() => menu.choose(choice)}
                        onPointerMove={() => menu.point(index)}
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
            {footer}
        </div>
    );
}
