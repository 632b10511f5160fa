// The prompt: words, what goes with them, and what becomes of them.
//
// Rule: everything works by the keyboard, and no key does anything before text that is being composed is finished. Enter
// queues or sends, Ctrl+Enter tells the running turn, Escape twice stops.

import type { SelectionPart } from "kode-protocol";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";

import type { App } from "../app/app.ts";
import { useApp, useSelect, useSession } from "../app/context.ts";
import { addPart, isHandedIn, put, send, stop, stopEditing, write } from "../app/prompt.ts";
import { activeSession } from "../app/state.ts";
import { Icon } from "../panels/Icon.tsx";
import { Meter } from "../panels/Meter.tsx";
import { EffortPicker, ModelPicker, ModePicker } from "../panels/Pickers.tsx";
import { isRunning } from "../store/session.ts";
import { itemsOf } from "../store/transcript.ts";
import { exactLine } from "../text.ts";
import { droppedFiles, insertAt, isCode, isLong, readPictures } from "./attach.ts";
import { Chips } from "./Chips.tsx";
import { completed, isWholeCommand, useCompletion } from "./completion.ts";

/** The most prompts that the history goes back. */
const HISTORY = 100;

export function Composer() {
    const app = useApp();
    const id = useId();
    const field = useRef<HTMLTextAreaElement>(null);
    const prompt = useSelect((state) => state.prompt);
    const enterSends = useSelect((state) => state.host?.settings.enterSends ?? true);
    const isStopped = useSelect((state) => state.host?.connection.state === "stopped");
    const handedIn = useSelect(isHandedIn);
    const running = useSession(isRunning) ?? false;
    const following = useSession((view) => view.following);
    const completion = useCompletion(app);
    const [over, setOver] = useState(false);
    /** Whether the keys of the paste that comes ask for words and nothing else. */
    const pastesPlain = useRef(false);
    const recalled = useRef<{ at: number; text: string } | undefined>(undefined);
    // Words that were recalled and then changed are words of one's own.
    const back = recalled.current?.text === prompt.text ? recalled.current.at : undefined;
    const isBlank = prompt.text.trim() === "" && prompt.parts.length === 0;

    useLayoutEffect(() => {
        app.focus.set("prompt", () => field.current?.focus());
        return () => app.focus.delete("prompt");
    }, [app]);

    // What did not come from typing leaves the cursor at the end.
    useLayoutEffect(() => {
        const element = field.current;
        if (!element || element.value !== prompt.text) return;
        element.setSelectionRange(prompt.text.length, prompt.text.length);
    }, [prompt.revision]);

    const submit = (delivery: "queue" | "steer") => {
        completion.close();
        void send(app, delivery);
    };

    const accept = (index: number) => {
        const chosen = completion.open && completed(completion.open, index);
        if (!chosen) return;
        write(app, { text: chosen.text });
        completion.close();
        requestAnimationFrame(() => {
            field.current?.focus();
            field.current?.setSelectionRange(chosen.cursor, chosen.cursor);
            if (chosen.goesOn) completion.ask(chosen.text, chosen.cursor);
        });
    };

    const onInput = (event: { currentTarget: HTMLTextAreaElement }) => {
        const { value, selectionStart } = event.currentTarget;
        write(app, { text: value });
        completion.ask(value, selectionStart);
    };

    const recall = (step: number): boolean => {
        const said = promptsOf(app);
        const at = (back ?? -1) + step;
        if (at < -1 || at >= said.length) return false;
        const text = at === -1 ? "" : (said[at] ?? "");
        recalled.current = at === -1 ? undefined : { at, text };
        put(app, { text });
        return true;
    };

    const onKey = (event: KeyboardEvent) => {
        if (event.isComposing) return;
        const control = event.ctrlKey || event.metaKey;
        pastesPlain.current = control && event.shiftKey && event.key.toLowerCase() === "v";
        if (event.key === "Enter" && completion.open && isWholeCommand(completion.open)) completion.close();
        else if (completion.open && !control) {
            if (event.key === "ArrowDown" || event.key === "ArrowUp")
                completion.move(event.key === "ArrowDown" ? 1 : -1);
            else if (event.key === "Enter" || event.key === "Tab") accept(completion.open.chosen);
            else if (event.key === "Escape") completion.close();
            else return;
            event.preventDefault();
            event.stopPropagation();
            return;
        }
        const plainEnter = event.key === "Enter" && !event.shiftKey && !control && !event.altKey;
        if (event.key === "Enter" && control) {
            event.preventDefault();
            const steers = enterSends || event.shiftKey;
            submit(steers && running ? "steer" : "queue");
        } else if (plainEnter && enterSends) {
            event.preventDefault();
            submit("queue");
        } else if (event.key === "Escape" && prompt.instead) {
            event.preventDefault();
            event.stopPropagation();
            stopEditing(app);
        } else if (event.key === "ArrowUp" && (prompt.text === "" || back !== undefined) && !event.shiftKey) {
            if (recall(1)) event.preventDefault();
        } else if (event.key === "ArrowDown" && back !== undefined && !event.shiftKey) {
            if (recall(-1)) event.preventDefault();
        }
    };

    const onPaste = (event: ClipboardEvent) => {
        const data = event.clipboardData;
        const pictures = [...(data?.files ?? [])];
        const text = data?.getData("text/plain") ?? "";
        if (pictures.length > 0 && text === "") {
            event.preventDefault();
            void attachPictures(app, pictures);
        } else if (isCode(text) && !pastesPlain.current) {
            event.preventDefault();
            void pasteCode(text, event.currentTarget as HTMLTextAreaElement);
        } else if (isLong(text)) {
            event.preventDefault();
            addPart(app, { type: "pasted", text });
        }
    };

    // Code that was copied from a document goes along as the place that it is from.
    const pasteCode = async (text: string, box: HTMLTextAreaElement) => {
        const found: SelectionPart[] = [];
        await app.attempt(async () => {
            const part = await app.host.act("findCopied", { text });
            if (part) found.push(part);
        });
        const [part] = found;
        if (part) addPart(app, { type: "selection", ...part });
        else if (isLong(text)) addPart(app, { type: "pasted", text });
        else insertAt(box, text);
    };

    const onDrop = (event: DragEvent) => {
        event.preventDefault();
        setOver(false);
        const files = [...(event.dataTransfer?.files ?? [])];
        const named = droppedFiles(event.dataTransfer?.getData("text/uri-list") ?? "");
        for (const part of named) addPart(app, part);
        if (named.length === 0 && files.length > 0) void attachPictures(app, files);
    };

    const open = completion.open;
    return (
        <div
            class={`composer${over ? " over" : ""}${prompt.instead ? " instead" : ""}`}
            onDragOver={(event) => {
                event.preventDefault();
                setOver(true);
            }}
            onDragLeave={() => setOver(false)}
            onDrop={onDrop}
        >
            {prompt.instead && (
                <div class="editing-note">
                    <Icon name="edit" />
                    <span>Takes the place of that message and all after it.</span>
                    <label>
                        <input
                            type="checkbox"
                            checked={prompt.instead.files === "restore"}
                            onChange={(event) => {
                                if (!prompt.instead) return;
                                const files = event.currentTarget.checked ? "restore" : "keep";
                                write(app, { instead: { ...prompt.instead, files } });
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
                    <span>Is sent when the server is ready.</span>
                    <button type="button" class="quiet" onClick={() => app.set({ handedIn: undefined })}>
                        Cancel
                    </button>
                </div>
            )}
            <Chips />
            {open && (
                <ul class="completion" role="listbox" id={`${id}-list`} aria-label="Suggestions">
                    {open.result.items.map((item, index) => (
                        <li
                            key={`${item.kind} ${item.insertText}`}
                            id={`${id}-${index}`}
                            role="option"
                            aria-selected={index === open.chosen}
                            class="completion-item"
                            ref={
                                index === open.chosen
                                    ? (element) => element?.scrollIntoView({ block: "nearest" })
                                    : null
                            }
                            onPointerDown={(event) => {
                                event.preventDefault();
                                accept(index);
                            }}
                            onPointerMove={() => {
                                if (index !== open.chosen) completion.point(index);
                            }}
                        >
                            <Icon name={COMPLETION_ICONS[item.kind] ?? "file"} />
                            <bdi class="completion-label">{exactLine(item.label)}</bdi>
                            <bdi class="hint">{exactLine(item.detail)}</bdi>
                        </li>
                    ))}
                </ul>
            )}
            <textarea
                ref={field}
                class="prompt"
                rows={1}
                value={prompt.text}
                placeholder={
                    following
                        ? "Another window writes this session"
                        : running
                          ? "Say more: Enter queues, Ctrl+Enter tells it now"
                          : "Ask, or @ to name files, / for commands"
                }
                aria-label="Prompt"
                aria-autocomplete="list"
                aria-haspopup="listbox"
                {...(open
                    ? { "aria-controls": `${id}-list`, "aria-activedescendant": `${id}-${open.chosen}` }
                    : {})}
                onInput={onInput}
                onKeyDown={onKey}
                onPaste={onPaste}
                onBlur={completion.close}
            />
            <div class="composer-foot">
                <button
                    type="button"
                    class="icon-button"
                    title="Attach files"
                    aria-label="Attach files"
                    onClick={() => void pickFiles(app)}
                >
                    <Icon name="attach" />
                </button>
                <ModePicker />
                <ModelPicker />
                <EffortPicker />
                <span class="composer-end">
                    <Meter />
                    {running && !isBlank && (
                        <button
                            type="button"
                            class="icon-button"
                            title="Tell the running turn now (Ctrl+Enter)"
                            aria-label="Tell the running turn now"
                            onClick={() => submit("steer")}
                        >
                            <Icon name="steer" />
                        </button>
                    )}
                    {running && (
                        <button
                            type="button"
                            class="icon-button stop"
                            title="Stop (Esc Esc)"
                            aria-label="Stop"
                            onClick={() => void stop(app)}
                        >
                            <Icon name="stop" />
                        </button>
                    )}
                    <button
                        type="button"
                        class="icon-button send"
                        title={running ? "Queue (Enter)" : "Send (Enter)"}
                        aria-label={running ? "Queue" : "Send"}
                        disabled={isBlank || isStopped}
                        onClick={() => submit("queue")}
                    >
                        <Icon name="send" />
                    </button>
                </span>
            </div>
        </div>
    );
}

const COMPLETION_ICONS = {
    file: "file",
    folder: "folder",
    diagnostics: "warning",
    diff: "diff",
    session: "history",
    command: "command",
    skill: "think",
} as const;

/** What the user has said in this session, the newest first. */
function promptsOf(app: App): string[] {
    const view = activeSession(app.state);
    if (!view) return [];
    const said: string[] = [];
    for (const { body } of itemsOf(view.transcript).reverse()) {
        if (body.type !== "userMessage" || body.text === said.at(-1)) continue;
        said.push(body.text);
        if (said.length === HISTORY) break;
    }
    return said;
}

async function attachPictures(app: App, files: readonly File[]): Promise<void> {
    const before = app.state.prompt.parts.filter((part) => part.type === "image").length;
    const { parts, problems } = await readPictures(files, before);
    for (const part of parts) addPart(app, part);
    if (problems.length > 0) app.set({ trouble: { message: problems.join(" "), hint: "" } });
}

async function pickFiles(app: App): Promise<void> {
    await app.attempt(async () => {
        const { uris } = await app.host.act("pickFiles", {});
        for (const uri of uris) addPart(app, { type: "mention", uri });
    });
    app.focus.get("prompt")?.();
}
