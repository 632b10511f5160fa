// The attachments of the prompt: one chip for each part, and one for what the editor shows.
//
// Rule: nothing goes along unseen. The chip of the editor's context is there whether it is on or off, and says which.

import type { InputPart } from "kode-protocol";

import { useApp, useSelect } from "../app/context.ts";
import { write } from "../app/drafts.ts";
import { Icon, type IconName } from "../panels/Icon.tsx";
import { exactLine } from "../text.ts";
import { linesOf, partLabel } from "./attach.ts";

const ICONS: Partial<Record<InputPart["type"], IconName>> = {
    selection: "edit",
    diagnostics: "warning",
    diff: "diff",
    session: "history",
    image: "image",
    pasted: "copy",
    symbol: "symbol",
};

export function Chips() {
    const app = useApp();
    const parts = useSelect((state) => state.prompt.parts);
    const editor = useSelect((state) => state.host?.editor);
    const on = useSelect((state) => state.editorContext);
    if (parts.length === 0 && !editor) return null;
    const remove = (index: number) => {
        write(app, { parts: parts.filter((_part, at) => at !== index) });
        app.focus.get("prompt")?.();
    };
    const isSelection =
        editor &&
        (editor.range.start.line !== editor.range.end.line ||
            editor.range.start.character !== editor.range.end.character);
    return (
        <div class="chips" role="group" aria-label="Context">
            {editor && (
                <button
                    type="button"
                    class={on ? "chip" : "chip off"}
                    aria-pressed={on}
                    title={
                        on
                            ? "Goes with the prompt; click to leave it out"
                            : "Does not go with the prompt; click to add it"
                    }
                    onClick={() => app.set({ editorContext: !on })}
                >
                    <Icon name="file" />
                    <bdi>{exactLine(editor.path)}</bdi>
                    {isSelection && <span class="chip-size">{linesOf(editor.range)}</span>}
                </button>
            )}
            {parts.map((part, index) => {
                const { label, size } = partLabel(part);
                return (
                    <span key={index} class="chip">
                        {part.type === "image" ? (
                            <img class="thumb" alt="" src={`data:${part.mediaType};base64,${part.data}`} />
                        ) : (
                            <Icon name={ICONS[part.type] ?? "file"} />
                        )}
                        <bdi>{label}</bdi>
                        {size !== "" && <span class="chip-size">{size}</span>}
                        <button
                            type="button"
                            class="chip-close"
                            aria-label={`Remove ${label}`}
                            title="Remove"
                            onClick={() => remove(index)}
                        >
                            <Icon name="close" />
                        </button>
                    </span>
                );
            })}
        </div>
    );
}
