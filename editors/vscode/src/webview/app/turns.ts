// The actions on an ended turn: ask again, continue, copy its answer, compact, remove the goal, merge the worktree.
//
// Rule: nothing that was done is undone by asking again: the files stay. A prompt that came to nothing is taken back before it is
// asked again, so that it is in the conversation once.

import type { Item } from "kode-protocol";

import type { TurnItems } from "../store/rows.ts";
import type { App } from "./app.ts";
import { goBackTo } from "./prompt.ts";

/** Has the model continue where a turn broke off. */
export function continueTurn(app: App): void {
    void app.attempt(() => start(app, "continue"));
}

/** Asks a prompt again; where the turn has already done something, the model continues instead. */
export function retryTurn(app: App, { prompt, hasCalls }: Pick<TurnItems, "prompt" | "hasCalls">): void {
    void app.attempt(async () => {
        const text = prompt && repeatable(prompt);
        if (!prompt || text === undefined || hasCalls) {
            await start(app, "continue");
            return;
        }
        await goBackTo(app, { itemId: prompt.itemId, files: "keep" });
        await start(app, text);
    });
}

/** The words of a prompt that had nothing with it but what the editor showed. */
function repeatable({ body }: Item): string | undefined {
    if (body.type !== "userMessage") return undefined;
    const alone = (body.attachments ?? []).every(({ kind }) => kind === "editor");
    return alone && body.text.trim() !== "" ? body.text : undefined;
}

async function start(app: App, text: string): Promise<void> {
    const { sessionId } = app.session();
    await app.host.request("agent/turn/start", { sessionId, input: [{ type: "text", text }], delivery: "queue" });
}

/** Copies an answer as Markdown. */
export function copyAnswer(app: App, text: string): void {
    void app.attempt(async () => {
        await app.host.act("copy", { text });
        app.announce("Copied.");
    });
}

/** Removes the goal of the session, also while a turn works for it. */
export function removeGoal(app: App): void {
    void app.attempt(() => start(app, "/goal clear"));
}

/** Takes the changes in the session's worktree over into the workspace, once no turn runs. */
export function mergeWorktree(app: App): void {
    void app.attempt(() => start(app, "/worktree merge"));
}

/** Compacts the conversation now. */
export function compact(app: App): void {
    void app.attempt(() => app.host.request("agent/session/compact", { sessionId: app.session().sessionId }));
}
