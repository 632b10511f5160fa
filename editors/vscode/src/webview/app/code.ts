// The actions on a piece of code in an answer.
//
// Rule: an answer changes no file by itself. Where something is selected in the editor, Apply shows what would become of it and
// the user says yes; where nothing is, it is a prompt: the agent puts the code where it belongs, under the mode that is in force.
// Either way every place that is changed is in the review.

import type { App } from "./app.ts";
import { ensureSession } from "./sessionStore.ts";

/** Does what the button in a frame around code says. */
export function codeAct(app: App, button: HTMLElement): void {
    const frame = button.closest<HTMLElement>(".code");
    if (frame && button.dataset["act"] === "source") frame.classList.toggle("source");
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
            case "apply": {
                const place = await app.host.act("selection", {});
                if (place) app.set({ applying: { place, code: ended(code, place.text) } });
                else await haveApplied(app, code);
                break;
            }
            default:
                break;
        }
    });
}

/** Puts the code that the user has approved into its place. */
export async function applyCode(app: App): Promise<boolean> {
    const { applying } = app.state;
    if (!applying) return false;
    return app.attempt(async () => {
        const sessionId = await ensureSession(app);
        await app.host.act("replace", { sessionId, place: applying.place, text: applying.code });
        app.set({ applying: undefined });
        app.announce("Applied. Find it among the changes to review.");
    });
}

/** Has the agent put code where it belongs. */
export async function haveApplied(app: App, code: string): Promise<void> {
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

/** Code that ends as what it replaces: lines stay lines. */
function ended(code: string, before: string): string {
    return before.endsWith("\n") && !code.endsWith("\n") ? `${code}\n` : code;
}
