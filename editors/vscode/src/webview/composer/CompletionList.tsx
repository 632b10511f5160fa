// The completions at the cursor of the prompt, as a list above it.
//
// Rule: the focus stays in the prompt; the list only shows what its keys choose.

import { Icon, type IconName } from "../panels/Icon.tsx";
import { exactLine } from "../text.ts";
import type { Completion, Suggestion } from "./completion.ts";

const ICONS: Partial<Record<Suggestion["kind"], IconName>> = {
    file: "file",
    folder: "folder",
    diagnostics: "warning",
    diff: "diff",
    session: "history",
    command: "command",
    skill: "think",
    symbol: "symbol",
};

interface Props {
    id: string;
    open: Completion;
    accept: (index: number) => void;
    point: (index: number) => void;
}

export function CompletionList({ id, open, accept, point }: Props) {
    return (
        <ul class="completion" role="listbox" id={`${id}-list`} aria-label="Suggestions">
            {open.result.items.map((item, index) => (
                <li
                    key={`${item.kind} ${item.insertText} ${item.detail}`}
                    id={`${id}-${index}`}
                    role="option"
                    aria-selected={index === open.chosen}
                    class="completion-item"
                    ref={index === open.chosen ? (element) => element?.scrollIntoView({ block: "nearest" }) : null}
                    onPointerDown={(event) => {
                        event.preventDefault();
                        accept(index);
                    }}
                    onPointerMove={() => {
                        if (index !== open.chosen) point(index);
                    }}
                >
                    <Icon name={ICONS[item.kind] ?? "file"} />
                    <bdi class="completion-label">{exactLine(item.label)}</bdi>
                    <bdi class="hint">{exactLine(item.detail)}</bdi>
                </li>
            ))}
        </ul>
    );
}
