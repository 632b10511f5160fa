// The prompt: words, what goes with them, and what becomes of them.
//
// Rule: everything works by the keyboard. Enter queues or sends, Ctrl+Enter sends to the running turn, Escape twice stops.

import { useId, useLayoutEffect, useState } from "preact/hooks";

import { useApp, useSelect, useSession } from "../app/context.ts";
import { write } from "../app/drafts.ts";
import { isHandedIn, stopEditing } from "../app/prompt.ts";
import { Icon } from "../panels/Icon.tsx";
import { isRunning } from "../store/session.ts";
import { Chips } from "./Chips.tsx";
import { CompletionList } from "./CompletionList.tsx";
import { ComposerFoot } from "./ComposerFoot.tsx";
import { drop, type PromptField, usePrompt } from "./usePrompt.ts";

export function Composer() {
    const app = useApp();
    const prompt = usePrompt();
    const editing = useSelect((state) => state.prompt.instead !== undefined);
    const [over, setOver] = useState(false);
    return (
        <div
            class={`composer${over ? " over" : ""}${editing ? " instead" : ""}`}
            onDragOver={(event) => {
                event.preventDefault();
                setOver(true);
            }}
            onDragLeave={() => setOver(false)}
            onDrop={(event) => {
                setOver(false);
                drop(app, event);
            }}
        >
            <Notes />
            <Chips />
            <Field prompt={prompt} />
            <ComposerFoot submit={prompt.submit} />
        </div>
    );
}

/** The handling of the prompt, if it is not sent at once as a new one. */
function Notes() {
    const app = useApp();
    const instead = useSelect((state) => state.prompt.instead);
    const handedIn = useSelect(isHandedIn);
    return (
        <>
            {instead && (
                <div class="editing-note">
                    <Icon name="edit" />
                    <span>Replaces that message and everything after it.</span>
                    <label>
                        <input
                            type="checkbox"
                            checked={instead.files === "restore"}
                            onChange={(event) => {
                                const files = event.currentTarget.checked ? "restore" : "keep";
                                write(app, { instead: { ...instead, files } });
                            }}
                        />
                        Restore files too
                    </label>
                    <button type="button" class="quiet" onClick={() => stopEditing(app)}>
                        Cancel
                    </button>
                </div>
            )}
            {handedIn && (
                <div class="editing-note">
                    <Icon name="send" />
                    <span>Will be sent when the server is ready.</span>
                    <button type="button" class="quiet" onClick={() => app.set({ handedIn: undefined })}>
                        Cancel
                    </button>
                </div>
            )}
        </>
    );
}

function Field({ prompt }: { prompt: PromptField }) {
    const app = useApp();
    const id = useId();
    const { field, completion } = prompt;
    const { text, revision } = useSelect((state) => state.prompt);
    const placeholder = usePlaceholder();
    useLayoutEffect(() => {
        app.focus.set("prompt", () => field.current?.focus());
        return () => app.focus.delete("prompt");
    }, [app]);
    // Changes that did not come from typing leave the cursor at the end.
    useLayoutEffect(() => {
        const element = field.current;
        if (!element || element.value !== text) return;
        element.setSelectionRange(text.length, text.length);
    }, [revision]);
    const { open } = completion;
    return (
        <>
            {open && <CompletionList id={id} open={open} accept={prompt.accept} point={completion.point} />}
            <textarea
                ref={field}
                class="prompt"
                rows={1}
                value={text}
                placeholder={placeholder}
                aria-label="Prompt"
                aria-autocomplete="list"
                aria-haspopup="listbox"
                {...(open ? { "aria-controls": `${id}-list`, "aria-activedescendant": `${id}-${open.chosen}` } : {})}
                onInput={prompt.onInput}
                onKeyDown={prompt.onKey}
                onPaste={prompt.onPaste}
                onBlur={completion.close}
            />
        </>
    );
}

function usePlaceholder(): string {
    const running = useSession(isRunning) ?? false;
    const follows = useSession((view) => view.following?.by !== undefined) ?? false;
    if (follows) return "Another window is using this session";
    return running ? "Enter queues, Ctrl+Enter steers" : "Ask, or @ to name files, / for commands";
}
