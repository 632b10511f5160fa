// The keys of the prompt, and pasted and dropped parts.
//
// Rule: keys are a table, the first entry that applies acts. No key does anything before text that is being composed is finished.

import type { SelectionPart } from "kode-protocol";
import { useRef } from "preact/hooks";

import type { App } from "../app/app.ts";
import { useApp, useSelect, useSession } from "../app/context.ts";
import { addPart, put, write } from "../app/drafts.ts";
import { nextMode } from "../app/modes.ts";
import { send, stopEditing } from "../app/prompt.ts";
import { activeSession } from "../app/state.ts";
import { isRunning } from "../store/session.ts";
import { itemsOf } from "../store/transcript.ts";
import { droppedFiles, insertAt, isCode, isLong, readPictures } from "./attach.ts";
import { completed, isWholeCommand, useCompletion, type CompletionState } from "./completion.ts";

/** The most prompts that the history goes back. */
const HISTORY = 100;

/** The prompt field. */
export interface PromptField {
    readonly field: { current: HTMLTextAreaElement | null };
    readonly completion: CompletionState;
    submit(delivery: "queue" | "steer"): void;
    accept(index: number): void;
    onInput(event: { currentTarget: HTMLTextAreaElement }): void;
    onKey(event: KeyboardEvent): void;
    onPaste(event: ClipboardEvent): void;
}

export function usePrompt(): PromptField {
    const app = useApp();
    const field = useRef<HTMLTextAreaElement>(null);
    const enterSends = useSelect((state) => state.host?.settings.enterSends ?? true);
    const running = useSession(isRunning) ?? false;
    const completion = useCompletion(app);
    const history = useHistory(app);
    /** Whether the keys of the paste that comes ask for words and nothing else. */
    const pastesPlain = useRef(false);
    const submit = (delivery: "queue" | "steer") => {
        completion.close();
        void send(app, delivery);
    };
    const accept = (index: number) => {
        const chosen = completion.open && completed(completion.open, index);
        if (!chosen) return;
        write(app, { text: chosen.text });
        if (chosen.part) addPart(app, chosen.part);
        completion.close();
        requestAnimationFrame(() => {
            field.current?.focus();
            field.current?.setSelectionRange(chosen.cursor, chosen.cursor);
            if (chosen.goesOn) completion.ask(chosen.text, chosen.cursor);
        });
    };
    return {
        field,
        completion,
        submit,
        accept,
        onInput: ({ currentTarget: { value, selectionStart } }) => {
            write(app, { text: value });
            completion.ask(value, selectionStart);
        },
        onKey: (event) => {
            if (event.isComposing) return;
            pastesPlain.current = isControl(event) && event.shiftKey && event.key.toLowerCase() === "v";
            const keys: KeyContext = { app, completion, history, enterSends, running, submit, accept };
            const entry = KEYS.find((each) => each.key === event.key && each.when(keys, event));
            if (!entry || entry.act(keys, event) === false) return;
            event.preventDefault();
            if (entry.keeps !== true) event.stopPropagation();
        },
        onPaste: (event) => paste(app, event, pastesPlain.current),
    };
}

/** The targets of the keys. */
interface KeyContext {
    readonly app: App;
    readonly completion: CompletionState;
    readonly history: History;
    readonly enterSends: boolean;
    readonly running: boolean;
    submit(delivery: "queue" | "steer"): void;
    accept(index: number): void;
}

interface KeyEntry {
    readonly key: string;
    when(keys: KeyContext, event: KeyboardEvent): boolean;
    /** Answers false where the key is the editor's after all. */
    act(keys: KeyContext, event: KeyboardEvent): unknown;
    /** Whether the page hears the key as well. */
    readonly keeps?: boolean;
}

const isControl = (event: KeyboardEvent) => event.ctrlKey || event.metaKey;
const isPlain = (event: KeyboardEvent) => !event.shiftKey && !isControl(event) && !event.altKey;
const completes = ({ completion }: KeyContext, event: KeyboardEvent) => completion.open !== undefined && !isControl(event);

/** The keys, in the order in which they are tried. */
const KEYS: readonly KeyEntry[] = [
    { key: "ArrowDown", when: completes, act: ({ completion }) => completion.move(1) },
    { key: "ArrowUp", when: completes, act: ({ completion }) => completion.move(-1) },
    { key: "Tab", when: completes, act: acceptChosen },
    { key: "Enter", when: (keys, event) => completes(keys, event) && !isWhole(keys), act: acceptChosen },
    { key: "Escape", when: completes, act: ({ completion }) => completion.close() },
    { key: "Tab", when: (_, event) => event.shiftKey && !isControl(event), act: ({ app }) => nextMode(app) },
    {
        key: "Enter",
        when: (_, event) => isControl(event),
        act: ({ enterSends, running, submit }, event) =>
            submit((enterSends || event.shiftKey) && running ? "steer" : "queue"),
    },
    {
        key: "Enter",
        when: ({ enterSends }, event) => enterSends && isPlain(event),
        act: ({ submit }) => submit("queue"),
    },
    { key: "Escape", when: ({ app }) => app.state.prompt.instead !== undefined, act: ({ app }) => stopEditing(app) },
    {
        key: "ArrowUp",
        when: ({ app, history }, event) => !event.shiftKey && (app.state.prompt.text === "" || history.isRecalled()),
        act: ({ history }) => history.recall(1),
        keeps: true,
    },
    {
        key: "ArrowDown",
        when: ({ history }, event) => !event.shiftKey && history.isRecalled(),
        act: ({ history }) => history.recall(-1),
        keeps: true,
    },
];

function acceptChosen({ completion, accept }: KeyContext): void {
    accept(completion.open?.chosen ?? 0);
}

/** A command that is there whole is sent and not completed. */
function isWhole({ completion }: KeyContext): boolean {
    if (!completion.open || !isWholeCommand(completion.open)) return false;
    completion.close();
    return true;
}

/** The prompts of the session, one after the other. */
interface History {
    /** Whether the prompt is one of the history, unchanged. */
    isRecalled(): boolean;
    /** Shows an older or newer one; answers false if absent. */
    recall(step: number): boolean;
}

function useHistory(app: App): History {
    const recalled = useRef<{ at: number; text: string } | undefined>(undefined);
    // Words that were recalled and then changed are words of one's own.
    const at = () => (recalled.current?.text === app.state.prompt.text ? recalled.current.at : undefined);
    return {
        isRecalled: () => at() !== undefined,
        recall: (step) => {
            const prompts = promptsOf(app);
            const next = (at() ?? -1) + step;
            if (next < -1 || next >= prompts.length) return false;
            const text = next === -1 ? "" : (prompts[next] ?? "");
            recalled.current = next === -1 ? undefined : { at: next, text };
            put(app, { text });
            return true;
        },
    };
}

/** The prompts of the user in this session, the newest first. */
function promptsOf(app: App): string[] {
    const view = activeSession(app.state);
    if (!view) return [];
    const prompts: string[] = [];
    for (const { body } of itemsOf(view.transcript).reverse()) {
        if (body.type !== "userMessage" || body.text === prompts.at(-1)) continue;
        prompts.push(body.text);
        if (prompts.length === HISTORY) break;
    }
    return prompts;
}

function paste(app: App, event: ClipboardEvent, plain: boolean): void {
    const data = event.clipboardData;
    const images = [...(data?.files ?? [])];
    const text = data?.getData("text/plain") ?? "";
    if (images.length > 0 && text === "") {
        event.preventDefault();
        void attachImages(app, images);
    } else if (isCode(text) && !plain) {
        event.preventDefault();
        void pasteCode(app, text, event.currentTarget as HTMLTextAreaElement);
    } else if (isLong(text)) {
        event.preventDefault();
        addPart(app, { type: "pasted", text });
    }
}

/** Code that was copied from a document goes along as the place that it is from. */
async function pasteCode(app: App, text: string, box: HTMLTextAreaElement): Promise<void> {
    const found: SelectionPart[] = [];
    await app.attempt(async () => {
        const part = await app.host.act("findCopied", { text });
        if (part) found.push(part);
    });
    const [part] = found;
    if (part) addPart(app, { type: "selection", ...part });
    else if (isLong(text)) addPart(app, { type: "pasted", text });
    else insertAt(box, text);
}

/** Takes dropped items: files that are named, or images. */
export function drop(app: App, event: DragEvent): void {
    event.preventDefault();
    const files = [...(event.dataTransfer?.files ?? [])];
    const named = droppedFiles(event.dataTransfer?.getData("text/uri-list") ?? "");
    for (const part of named) addPart(app, part);
    if (named.length === 0 && files.length > 0) void attachImages(app, files);
}

async function attachImages(app: App, files: readonly File[]): Promise<void> {
    const before = app.state.prompt.parts.filter((part) => part.type === "image").length;
    const { parts, problems } = await readPictures(files, before);
    for (const part of parts) addPart(app, part);
    if (problems.length > 0) app.set({ trouble: { message: problems.join(" "), hint: "" } });
}
