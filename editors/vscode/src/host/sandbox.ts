// The choice of the sandbox profile of a session, by a list of the editor.
//
// Rule: the profiles are those of the server; what it has taken is shown by the page.

import * as vscode from "vscode";
import type { Chat } from "./chat/chat.ts";
import type { Sessions } from "./sessions.ts";

/** Lets the user choose the profile for the commands of the session that is shown. */
export async function chooseSandbox(sessions: Sessions, chat: Chat): Promise<void> {
    const { sessionId } = chat;
    if (sessionId === undefined) throw new Error("No session is shown. Begin one first, then choose its sandbox profile.");
    const { sandbox = "default", sandboxProfiles = [] } = await sessions.request("agent/session/configure", { sessionId });
    const items = sandboxProfiles.map(({ name, description }) => ({
        label: name,
        description: name === sandbox ? "in use" : "",
        detail: description,
    }));
    const chosen = await vscode.window.showQuickPick(items, {
        title: "Sandbox for the Commands of This Session",
        matchOnDetail: true,
    });
    if (chosen) await sessions.request("agent/session/configure", { sessionId, sandbox: chosen.label });
}
