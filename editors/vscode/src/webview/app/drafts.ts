// The prompt that is being written, and its draft: kept with the session, and taken over when another session is shown.
//
// Rule: nothing that was typed is lost. The server has the draft soon after typing rests.

import type { Draft, InputPart } from "kode-protocol";

import type { App } from "./app.ts";
import { ensureSession, isArriving } from "./sessionStore.ts";
import { BLANK, type AppState, type Prompt } from "./state.ts";

/** How long typing rests before the draft is sent. */
const REST_MS = 400;

/** The draft that the server has. */
let stored = "";

/** Drafts on their way to the server. */
let sending: { readonly draft: string } | undefined;

let timer: ReturnType<typeof setTimeout> | undefined;

/** Takes the typed text. */
export function write(app: App, change: Partial<Prompt>): void {
    app.set({ prompt: { ...app.state.prompt, ...change } });
    clearTimeout(timer);
    timer = setTimeout(() => saveDraft(app), REST_MS);
}

/** Puts text or parts into the prompt that were not typed. */
export function put(app: App, change: Partial<Prompt>): void {
    write(app, { ...change, revision: app.state.prompt.revision + 1 });
}

/** Adds a part to the prompt. */
export function addPart(app: App, part: InputPart): void {
    const { parts } = app.state.prompt;
    const same = JSON.stringify(part);
    if (parts.some((known) => JSON.stringify(known) === same)) return;
    write(app, { parts: [...parts, part] });
}

/** The part of a prompt that is kept as a draft: pictures are too large for that, they stay on the page. */
function draftOf(prompt: Prompt): { text: string; parts: InputPart[] } {
    return { text: prompt.text, parts: prompt.parts.filter((part) => part.type !== "image") };
}

/** A prompt that the editor keeps when the page is thrown away, and the draft that it was written over. */
export interface KeptPrompt {
    readonly draft: Draft;
    /** The draft that the server had, as {@link written} gives it. */
    readonly over: string;
    /** An older draft of this page that was on its way to the server, in the same form: the server may have it by now. */
    readonly sent?: string;
}

/** The drafts that a restored prompt was written over, until its session is there. */
let restored: Pick<KeptPrompt, "over" | "sent"> | undefined;

/** The prompt for the editor to keep; undefined once the server has it. */
export function unsaved({ prompt }: AppState): KeptPrompt | undefined {
    const draft = draftOf(prompt);
    const before = restored ?? { over: stored, ...(sending ? { sent: sending.draft } : {}) };
    if (prompt.instead || (written(draft) === before.over && before.sent === undefined)) return undefined;
    return { draft, ...before };
}

/** Shows a prompt that the editor has kept. */
export function restore(app: App, { draft, ...before }: KeptPrompt): void {
    restored = before;
    put(app, { text: draft.text, parts: draft.parts ?? [] });
}

/** Shows a session that was on its way. A restored prompt replaces the draft that it was written over; text that was typed while
 * the session loaded comes behind its draft. */
export function arriveWith(app: App, draft: Draft | undefined): void {
    const { text, parts } = app.state.prompt;
    const words = written(draftOf(app.state.prompt));
    const current = written(draft);
    const replaces = restored !== undefined && (current === restored.over || current === restored.sent);
    restored = undefined;
    takeDraft(app, draft);
    const { prompt } = app.state;
    if (replaces || words === stored) {
        put(app, { text, parts });
        return;
    }
    if (text === "" && parts.length === 0) return;
    const lines = [prompt.text, text].filter((line) => line !== "");
    put(app, { text: lines.join("\n"), parts: [...prompt.parts, ...parts] });
}

/** Sends the draft of the session that is shown, if the server has another one. */
export function saveDraft(app: App): void {
    clearTimeout(timer);
    const { prompt, active } = app.state;
    // Words that are to replace others are no draft of the session. While there is no server, or it has not loaded
    // the session, the draft waits: it is sent when the session is there.
    if (prompt.instead || app.state.host?.connection.state !== "ready") return;
    if (active !== undefined && isArriving(active)) return;
    const draft = draftOf(prompt);
    const words = written(draft);
    if (words === (sending?.draft ?? stored) || (active === undefined && words === "")) return;
    const mine = { draft: words };
    sending = mine;
    void app
        .attempt(async () => {
            const sessionId = active ?? (await ensureSession(app));
            await app.host.request("agent/draft/set", { sessionId, ...draft });
            if (sending === mine) stored = words;
        })
        .then(() => {
            if (sending === mine) sending = undefined;
        });
}

/** Shows the draft of another session. */
export function takeDraft(app: App, draft: Draft | undefined): void {
    clearTimeout(timer);
    stored = written(draft);
    sending = undefined;
    const { revision } = app.state.prompt;
    app.set({
        prompt: { ...BLANK, text: draft?.text ?? "", parts: draft?.parts ?? [], revision: revision + 1 },
    });
}

/** Takes a draft that was written elsewhere, unless something is being typed here. */
export function adoptDraft(app: App, draft: Draft | undefined): void {
    const { prompt } = app.state;
    const told = written(draft);
    if (prompt.instead || told === stored || told === sending?.draft) return;
    if (written(draftOf(prompt)) !== stored) return;
    takeDraft(app, draft);
}

/** The draft that the server is known to have, once it has taken the prompt. */
export function draftTaken(): void {
    stored = "";
    sending = undefined;
}

/** Stops the wait for typing to rest: the prompt is submitted. */
export function stopWaiting(): void {
    clearTimeout(timer);
}

/** A draft as text that can be compared; empty for none. */
export function written(draft: { text: string; parts?: readonly InputPart[] } | undefined): string {
    return draft && (draft.text !== "" || (draft.parts?.length ?? 0) > 0)
        ? JSON.stringify([draft.text, draft.parts ?? []])
        : "";
}
