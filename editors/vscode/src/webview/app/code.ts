// What can be done with a piece of code in an answer.
//
// Rule: an answer changes no file by itself. Apply is a prompt: the agent puts the code where it belongs, under the mode that is
// in force, and every place it changes stands in the review.

import type { App } from "./app.ts";
import { ensureSession } from "./sessions.ts";

/** Does what the button in a frame around code says. */
export function codeAct(app: App, button: HTMLElement): void {
    const frame = button.closest<HTMLElement>(".code");
    const code = frame?.querySelector("code")?.textContent;
    if (!frame || code === null || code === undefined) return;
    void app.attempt(async () => {
        switch (button.dataset["act"]) {
            case "copy":
                await app.host.act("copy", { text: code });
                app.announce("Copied.");
                break;
            case "insert":
                await app.host.act("insert", { text: code });
                break;
            case "apply":
                await apply(app, code);
                break;
            default:
                break;
        }
    });
}

async function apply(app: App, code: string): Promise<void> {
    const sessionId = await ensureSession(app);
    const file = app.state.host?.editor?.path;
    const where =
        file === undefined
            ? "the file it belongs to"
            : `the file it belongs to (I am looking at \`${file.replaceAll("`", "")}\`)`;
    await app.host.request("agent/turn/start", {
        sessionId,
        input: [
            { type: "text", text: `Put this code from your answer into ${where}. Change nothing else.` },
            { type: "pasted", text: code },
        ],
        delivery: "queue",
    });
}
