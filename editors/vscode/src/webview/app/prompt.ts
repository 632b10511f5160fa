// The prompt submitted, and put back when that fails.
//
// Rule: nothing that was typed is lost. What the server was handed stays in the prompt until it has taken it.

import type { Delivery, InputPart, Item, ItemId } from "kode-protocol";

import { isRunning } from "../store/session.ts";
import type { App } from "./app.ts";
import { askAside, sideQuestion } from "./asides.ts";
import { draftTaken, put, saveDraft, stopWaiting, takeDraft, written } from "./drafts.ts";
import { offerUndo, unresolved } from "./edits.ts";
import { ensureSession } from "./sessionStore.ts";
import { activeSession, BLANK, type AppState } from "./state.ts";

/** Hands the prompt in. */
export async function send(app: App, delivery: Delivery): Promise<void> {
    const { prompt } = app.state;
    const input: InputPart[] = [
        ...(prompt.text.trim() === "" ? [] : [{ type: "text" as const, text: prompt.text }]),
        ...prompt.parts,
    ];
    if (input.length === 0) return;
    const question = sideQuestion(prompt.text);
    if (question !== undefined && !prompt.instead) return askAside(app, question);
    const state = app.state.host?.connection.state;
    if (state !== "ready" && state !== "stopped") {
        app.set({ handedIn: { prompt, delivery } });
        app.announce("It will be sent when the server is ready.");
        return;
    }
    stopWaiting();
    app.set({ prompt: { ...BLANK, revision: prompt.revision + 1 }, trouble: undefined });
    // One after the other, so that prompts arrive in the order in which they were written.
    const before = handing;
    const work = async () => {
        await before;
        if (prompt.instead) await goBackTo(app, prompt.instead);
        const sessionId = await ensureSession(app);
        const context = app.state.editorContext ? await app.host.act("editorContext", {}) : undefined;
        await app.host.request("agent/turn/start", {
            sessionId,
            input,
            delivery,
            ...(context ? { context } : {}),
        });
        draftTaken();
    };
    const done = app.attempt(work);
    handing = done;
    if (!(await done)) {
        const now = app.state.prompt;
        const text = [prompt.text, now.text].filter((words) => words !== "").join("\n");
        put(app, { ...prompt, text, parts: [...prompt.parts, ...now.parts], revision: now.revision });
    } else if (app.state.prompt.text !== "") {
        saveDraft(app);
    }
}

/** Whether the prompt waits for the server as it was submitted. */
export function isHandedIn({ handedIn, prompt }: AppState): boolean {
    if (!handedIn || handedIn.prompt.instead !== prompt.instead) return false;
    return written(handedIn.prompt) === written(prompt);
}

/** Submits the prompt that has waited for the server. A changed one is left to the user. */
export function handInWaiting(app: App): void {
    const { handedIn } = app.state;
    const holds = isHandedIn(app.state);
    app.set({ handedIn: undefined });
    if (handedIn && holds) void send(app, handedIn.delivery);
    else saveDraft(app);
}

let handing: Promise<unknown> = Promise.resolve();

/** Submits a request from elsewhere than the prompt; where that fails, it is in the prompt. */
export async function ask(app: App, input: readonly InputPart[]): Promise<void> {
    const before = handing;
    const done = app.attempt(async () => {
        await before;
        const sessionId = await ensureSession(app);
        await app.host.request("agent/turn/start", { sessionId, input: [...input], delivery: "queue" });
    });
    handing = done;
    app.set({ listOpen: false, pane: undefined });
    if (await done) return;
    const now = app.state.prompt;
    const words = input.flatMap((part) => (part.type === "text" ? [part.text] : []));
    const text = [...words, now.text].filter((line) => line !== "").join("\n");
    put(app, { text, parts: [...input.filter(({ type }) => type !== "text"), ...now.parts] });
}

/** Begins to write a message again. */
export function editMessage(app: App, item: Item): void {
    if (item.body.type !== "userMessage") return;
    saveDraft(app);
    put(app, { text: item.body.text, parts: [], instead: { itemId: item.itemId, files: "keep" } });
    app.focus.get("prompt")?.();
}

/** Leaves a message as it is after all. */
export function stopEditing(app: App): void {
    takeDraft(app, activeSession(app.state)?.draft);
    app.focus.get("prompt")?.();
}

/** Stops what runs; answers whether anything did. */
export async function stop(app: App): Promise<boolean> {
    const view = activeSession(app.state);
    if (!view || !isRunning(view)) return false;
    return app.attempt(() => app.host.request("agent/turn/cancel", { sessionId: view.sessionId }));
}

/** Restores what stood before a message, and waits until that is done. */
export async function goBackTo(app: App, instead: { itemId: ItemId; files: "keep" | "restore" }): Promise<void> {
    const { sessionId } = app.session();
    const { checkpoints } = await app.host.request("agent/checkpoint/list", { sessionId });
    const checkpoint = checkpoints.find(({ itemId }) => itemId === instead.itemId);
    if (!checkpoint)
        throw new Error("The checkpoint before this message is gone. Send it as a new message.");
    const what = instead.files === "restore" ? "both" : "conversation";
    const { checkpointId } = checkpoint;
    const begun = await app.host.request("agent/checkpoint/restore", {
        sessionId,
        checkpointId,
        what,
        userEdits: "keep",
    });
    if (begun.type !== "started") return;
    await restored(app, begun.resolutionId);
    offerUndo(app, "The conversation went back.", begun.resolutionId);
}

/** Resolves when an act on a checkpoint was reported as done; fails when the report cannot come any more. */
function restored(app: App, resolutionId: string): Promise<void> {
    return new Promise((resolve, reject) => {
        let leave: (() => void) | undefined;
        const look = () => {
            const told = activeSession(app.state)?.resolved;
            if (told?.resolutionId === resolutionId) {
                leave?.();
                const problem = unresolved(told);
                if (problem === undefined) resolve();
                else reject(new Error(problem));
            } else if (app.state.host?.connection.state !== "ready") {
                leave?.();
                reject(new Error("The server ended before the conversation was restored."));
            }
        };
        leave = app.store.subscribe(look);
        look();
    });
}
