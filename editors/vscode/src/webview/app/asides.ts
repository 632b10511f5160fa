// Side questions: `/btw` in the prompt, answered beside the conversation.
//
// Rule: a question and its answer are on this page alone, as cards of the session that was asked, until they are closed. A card
// that is closed before its answer is here cancels the question.

import type { AgentEventParams } from "kode-protocol";

import { HostError } from "../host.ts";
import type { App } from "./app.ts";
import { put, saveDraft, stopWaiting } from "./drafts.ts";
import { ensureSession } from "./sessionStore.ts";
import { BLANK, type SideQuestion } from "./state.ts";

/** The most cards; the oldest answered one goes for a new one. */
const MAX_ASIDES = 6;

/** The questions that wait for their answers, by id. */
const asking = new Map<string, AbortController>();

/** The side question in a prompt, which may be empty; undefined for any other prompt. */
export function sideQuestion(text: string): string | undefined {
    const typed = text.trim();
    return /^\/btw(?:\s|$)/.test(typed) ? typed.slice("/btw".length).trim() : undefined;
}

/** Asks the side question that the prompt holds. What goes with the prompt stays for the next one. */
export async function askAside(app: App, question: string): Promise<void> {
    const { prompt } = app.state;
    if (question === "") {
        app.set({ trouble: { message: "The side question is empty.", hint: "Write it behind /btw." } });
        return;
    }
    stopWaiting();
    app.set({ prompt: { ...BLANK, parts: prompt.parts, revision: prompt.revision + 1 }, trouble: undefined });
    await ask(app, question);
}

/** Asks a side question; the prompt stays as it is. */
async function ask(app: App, question: string): Promise<void> {
    // Another page may ask the same session.
    const askId = crypto.getRandomValues(new Uint32Array(4)).join("-");
    const controller = new AbortController();
    asking.set(askId, controller);
    let sessionId = app.state.active;
    try {
        sessionId ??= await ensureSession(app);
        add(app, { askId, sessionId, question, text: "", state: "asking" });
        app.announce("Asked beside the conversation.");
        // The saved draft may be the question.
        saveDraft(app);
        const result = await app.host.request(
            "agent/session/ask",
            { sessionId, question, askId },
            controller.signal,
        );
        change(app, askId, { text: result.answer, state: result.isWhole ? "answered" : "cut" });
        app.announce("The side question is answered.");
    } catch (error) {
        if (controller.signal.aborted) return;
        if (sessionId === undefined) {
            // Nothing that was typed is lost.
            const text = [`/btw ${question}`, app.state.prompt.text].filter((line) => line !== "").join("\n");
            put(app, { text });
            app.fail(error);
            return;
        }
        const message = error instanceof Error ? error.message : String(error);
        change(app, askId, { state: "failed", problem: { message, hint: error instanceof HostError ? error.hint : "" } });
        app.announce(`The side question failed: ${message}`);
    } finally {
        asking.delete(askId);
    }
}

/** Takes a piece of an answer. */
export function takeAside(app: App, { event }: AgentEventParams): void {
    if (event.type !== "side_answer") return;
    const aside = app.state.asides.find(({ askId }) => askId === event.askId);
    if (aside?.state === "asking") change(app, event.askId, { text: aside.text + event.text });
}

/** Closes a card, and cancels its question where it still waits. */
export function closeAside(app: App, askId: string): void {
    asking.get(askId)?.abort();
    app.set({ asides: app.state.asides.filter((aside) => aside.askId !== askId) });
    app.focus.get("prompt")?.();
}

/** Asks a question again that failed. */
export function askAgain(app: App, { askId, question }: SideQuestion): void {
    closeAside(app, askId);
    void ask(app, question);
}

function add(app: App, aside: SideQuestion): void {
    const all = [...app.state.asides, aside];
    const oldest = all.length > MAX_ASIDES ? all.find(({ state }) => state !== "asking") : undefined;
    app.set({ asides: all.filter((known) => known !== oldest) });
}

function change(app: App, askId: string, now: Partial<SideQuestion>): void {
    app.set({ asides: app.state.asides.map((aside) => (aside.askId === askId ? { ...aside, ...now } : aside)) });
}
