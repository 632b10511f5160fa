// Notifications of permission prompts and questions, for a user who looks elsewhere.
//
// Rule: one for each prompt, only while it really waits, gone when it is answered anywhere. It never takes the focus. The
// editor cannot take back a message with buttons, but it can end a progress: so it is one, with its answers as links.

import * as vscode from "vscode";
import { named, type Waiting } from "../logic/attention.ts";
import { plain, told } from "../logic/words.ts";
import type { Chat } from "./chat/chat.ts";
import { notifies } from "./settings.ts";
import type { Sessions } from "./sessions.ts";

/** The most notifications at a time; the rest is in the badge. */
const MOST = 5;

/** Reports what waits. */
export class Notifications implements vscode.Disposable {
    private readonly open = new Map<string, () => void>();
    private readonly subscriptions: vscode.Disposable[];

    constructor(
        private readonly sessions: Sessions,
        private readonly chat: Chat,
    ) {
        this.subscriptions = [
            sessions.onStep(({ asked, answered }) => {
                for (const id of answered) this.withdraw(id);
                for (const waiting of asked) this.tell(waiting);
            }),
            vscode.window.onDidChangeWindowState(({ focused }) => {
                if (!focused) for (const waiting of sessions.attention.waiting()) this.tell(waiting);
            }),
        ];
    }

    /** Answers a prompt with a yes for this once. */
    async allowOnce(sessionId: string, permissionId: string): Promise<void> {
        // A closed prompt, or one that is not the server's, is not answered.
        const waiting = this.sessions.attention.sessions.get(sessionId)?.waiting.get(permissionId);
        if (waiting?.kind !== "permission") return;
        try {
            const answer = { sessionId, permissionId, decision: "allow", scope: "once" } as const;
            await this.sessions.request("agent/permission/respond", answer);
        } catch (error) {
            void vscode.window.showErrorMessage(`Kode: ${told(error)}`);
        }
    }

    dispose(): void {
        for (const id of [...this.open.keys()]) this.withdraw(id);
        for (const subscription of this.subscriptions) subscription.dispose();
    }

    private tell(waiting: Waiting): void {
        const { id, sessionId } = named(waiting);
        const wanted = notifies();
        const isSeen = vscode.window.state.focused && this.chat.isVisible;
        if (wanted === "never" || (wanted === "auto" && isSeen)) return;
        if (this.open.has(id) || this.open.size >= MOST) return;

        const link = (label: string, command: string, ...args: string[]) =>
            `[${label}](command:${command}?${encodeURIComponent(JSON.stringify(args))})`;
        const answers = [link("Open", "kode.chat.focusWaiting", sessionId)];
        if (waiting.kind === "permission") answers.unshift(link("Allow Once", "kode.permission.allowOnce", sessionId, id));
        const options = { location: vscode.ProgressLocation.Notification, cancellable: false };
        // Known before it is shown: an answer may come first.
        const gone = new Promise<void>((resolve) => this.open.set(id, resolve));
        void vscode.window.withProgress({ ...options, title: `Kode: ${text(waiting)}` }, async (progress) => {
            progress.report({ message: answers.join(" · ") });
            await gone;
        });
    }

    private withdraw(id: string): void {
        this.open.get(id)?.();
        this.open.delete(id);
    }
}

function text(waiting: Waiting): string {
    if (waiting.kind === "permission") return plain(waiting.prompt.title, 160);
    return plain(waiting.question.questions[0]?.question ?? "Kode has a question.", 160);
}
