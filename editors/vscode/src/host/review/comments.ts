// Rounds of comments: the user writes on changed lines, sends all of it at once, and the agent's answers come back to where they
// were asked.
//
// Rule: nothing is sent before the user says so. Answers of the model are shown as plain text. Unsent comments are kept
// for the next window.

import type { AgentEventParams, SessionId, TurnId } from "kode-protocol";
import * as vscode from "vscode";
import { answersOf, promptOf, type ReviewComment } from "../../logic/comments.ts";
import type { Sessions } from "../sessions.ts";
import type { Ledger } from "./ledger.ts";
import type { Since } from "./since.ts";

/** Where comments that were not sent are kept. */
const KEPT = "kode.comments";

/** The most of them. */
const MOST = 100;

/** The longest answer that is shown at a comment; all of it is in the chat. */
const LONGEST = 4_000;

const CONTROLS = /[\p{Cf}\p{Zl}\p{Zp}]|(?!\n)\p{Cc}/gu;

/** A comment and the session whose change it is on. */
interface Draft {
    thread: vscode.CommentThread;
    sessionId: SessionId;
}

/** Comments that were sent together. */
interface Round {
    drafts: Draft[];
    text: string;
    turnId: TurnId | undefined;
    /** The last text of the agent. */
    said: string;
}

/** A comment as it is kept. */
interface KeptComment {
    sessionId: SessionId;
    uri: string;
    first: number;
    last: number;
    words: string;
}

/** The comments of this window. */
export class Comments implements vscode.Disposable {
    private readonly controller = vscode.comments.createCommentController("kode.review", "Kode");
    private readonly drafts = new Set<Draft>();
    private readonly rounds = new Map<SessionId, Round[]>();
    private readonly subscriptions: vscode.Disposable[];
    /** Comments that are being sent: a second press of the button sends nothing twice. */
    private sending: Promise<number> | undefined;

    constructor(
        private readonly ledger: Ledger,
        private readonly sessions: Sessions,
        private readonly since: Since,
        private readonly memory: vscode.Memento,
    ) {
        this.controller.options = { prompt: "Comment on this change", placeHolder: "What should change?" };
        const ranges = { provideCommentingRanges: (document: vscode.TextDocument) => this.rangesOf(document.uri) };
        // The editor asks again only when it is given a provider.
        const offer = () => {
            this.controller.commentingRangeProvider = ranges;
        };
        offer();
        this.subscriptions = [sessions.onEvent((params) => this.fold(params)), ledger.onChange(offer), this.controller];
        this.bringBack();
    }

    /** Opens an empty comment at lines of a file. */
    begin(uri: string, first: number, end: number): void {
        const range = new vscode.Range(first, 0, Math.max(first, end - 1), 0);
        const thread = this.controller.createCommentThread(vscode.Uri.parse(uri), range, []);
        thread.canReply = true;
        thread.collapsibleState = vscode.CommentThreadCollapsibleState.Expanded;
    }

    /** Keeps what the user wrote into a thread, unsent. */
    add({ thread, text }: vscode.CommentReply): void {
        if (text.trim() === "") throw new Error("The comment is empty.");
        const known = [...this.drafts].find((draft) => draft.thread === thread);
        const sessionId = known?.sessionId ?? this.ledger.ofFile(thread.uri).at(-1)?.sessionId;
        if (sessionId === undefined) throw new Error("The comment was not added: the file has no change by Kode any more.");
        if (!known) this.drafts.add({ thread, sessionId });
        thread.comments = [...thread.comments, said("You", text)];
        mark(thread, "unsent");
        this.keep();
    }

    /** Takes a thread away, sent or not. */
    remove(thread: vscode.CommentThread): void {
        for (const draft of this.drafts) if (draft.thread === thread) this.drafts.delete(draft);
        thread.dispose();
        this.keep();
    }

    /** Sends all that was not sent; answers how many that were. */
    send(): Promise<number> {
        this.sending ??= this.sendAll().finally(() => {
            this.sending = undefined;
        });
        return this.sending;
    }

    dispose(): void {
        for (const subscription of this.subscriptions) subscription.dispose();
    }

    private async sendAll(): Promise<number> {
        const drafts = [...this.drafts];
        if (drafts.length === 0) throw new Error("No comments to send. Add one at a changed line first.");
        for (const sessionId of new Set(drafts.map((draft) => draft.sessionId))) {
            await this.sendTo(
                sessionId,
                drafts.filter((draft) => draft.sessionId === sessionId),
            );
        }
        return drafts.length;
    }

    private async sendTo(sessionId: SessionId, drafts: Draft[]): Promise<void> {
        const comments = await Promise.all(drafts.map(({ thread }) => commentOf(thread)));
        const text = promptOf(comments);
        const before = await this.since.look(sessionId);
        const round: Round = { drafts, text, turnId: undefined, said: "" };
        this.rounds.set(sessionId, [...(this.rounds.get(sessionId) ?? []), round]);
        try {
            const input = [{ type: "text" as const, text }];
            await this.sessions.request("agent/turn/start", { sessionId, input, delivery: "queue" });
        } catch (error) {
            this.drop(sessionId, round);
            throw error;
        }
        this.since.remember(sessionId, before);
        for (const draft of drafts) {
            this.drafts.delete(draft);
            mark(draft.thread, "sent");
        }
        this.keep();
    }

    /** Hears which turn a round is, its text, and its end. */
    private fold({ sessionId, event }: AgentEventParams): void {
        const rounds = this.rounds.get(sessionId);
        if (!rounds) return;
        if (event.type === "item_added" || event.type === "item_updated") {
            const { body, turnId, agentId } = event.item;
            if (body.type === "userMessage" && event.type === "item_added") {
                const begun = rounds.find((round) => round.turnId === undefined && round.text === body.text);
                if (begun) begun.turnId = turnId;
            } else if (body.type === "agentMessage" && body.complete && agentId === undefined) {
                const running = rounds.find((round) => round.turnId === turnId);
                if (running) running.said = body.text;
            }
        } else if (event.type === "done") {
            const ended = rounds.find((round) => round.turnId === event.turnId);
            if (ended) this.answer(sessionId, ended, event.stopReason === "end_turn");
        }
    }

    private answer(sessionId: SessionId, round: Round, whole: boolean): void {
        this.drop(sessionId, round);
        const answers = answersOf(round.said, round.drafts.length);
        for (const [index, { thread }] of round.drafts.entries()) {
            const answer = answers[index];
            thread.comments = [...thread.comments, said("Kode", answer ?? "See the chat for the result.")];
            mark(thread, whole && answer !== undefined ? "answered" : "open");
        }
    }

    private drop(sessionId: SessionId, round: Round): void {
        const left = (this.rounds.get(sessionId) ?? []).filter((other) => other !== round);
        if (left.length > 0) this.rounds.set(sessionId, left);
        else this.rounds.delete(sessionId);
    }

    private rangesOf(uri: vscode.Uri): vscode.Range[] {
        return this.ledger
            .ofFile(uri)
            .flatMap(({ file }) => file.hunks)
            .map(({ lineRange: { start, end } }) => new vscode.Range(start, 0, Math.max(start, end - 1), 0));
    }

    private keep(): void {
        const kept = [...this.drafts].slice(0, MOST).map(({ thread, sessionId }): KeptComment => ({
            sessionId,
            uri: thread.uri.toString(),
            first: thread.range?.start.line ?? 0,
            last: thread.range?.end.line ?? 0,
            words: wordsOf(thread),
        }));
        void this.memory.update(KEPT, kept.length > 0 ? kept : undefined);
        void vscode.commands.executeCommand("setContext", "kode.hasComments", this.drafts.size > 0);
    }

    private bringBack(): void {
        for (const { sessionId, uri, first, last, words } of this.memory.get<KeptComment[]>(KEPT, [])) {
            const range = new vscode.Range(first, 0, last, 0);
            const thread = this.controller.createCommentThread(vscode.Uri.parse(uri), range, [said("You", words)]);
            this.drafts.add({ thread, sessionId });
            mark(thread, "unsent");
        }
        void vscode.commands.executeCommand("setContext", "kode.hasComments", this.drafts.size > 0);
    }
}

async function commentOf(thread: vscode.CommentThread): Promise<ReviewComment> {
    const document = await vscode.workspace.openTextDocument(thread.uri);
    const first = Math.min(thread.range?.start.line ?? 0, document.lineCount - 1);
    const last = Math.min(thread.range?.end.line ?? first, document.lineCount - 1);
    const range = new vscode.Range(first, 0, last, document.lineAt(last).text.length);
    return {
        path: vscode.workspace.asRelativePath(thread.uri),
        first: first + 1,
        last: last + 1,
        lines: document.getText(range),
        words: wordsOf(thread),
    };
}

/** The user's text in a thread since the agent's last one. */
function wordsOf(thread: vscode.CommentThread): string {
    const answered = thread.comments.findLastIndex(({ author }) => author.name !== "You");
    return thread.comments
        .slice(answered + 1)
        .map(({ body }) => (typeof body === "string" ? body : body.value))
        .join("\n\n");
}

/** A comment; its text is no Markdown, so that nothing in it is a link or a picture. */
function said(name: "You" | "Kode", text: string): vscode.Comment {
    const body = text.replace(CONTROLS, " ").slice(0, LONGEST);
    return { body, mode: vscode.CommentMode.Preview, author: { name }, contextValue: name };
}

function mark(thread: vscode.CommentThread, state: "unsent" | "sent" | "answered" | "open"): void {
    const labels = {
        unsent: "Not sent yet",
        sent: "Sent to Kode",
        answered: "Answered by Kode",
        open: "Not answered here",
    };
    thread.contextValue = state;
    thread.label = labels[state];
    thread.canReply = state !== "sent";
    thread.state =
        state === "answered" ? vscode.CommentThreadState.Resolved : vscode.CommentThreadState.Unresolved;
    // An answer opens nothing: the lines under the user's eyes stay where they are.
    if (state === "sent") thread.collapsibleState = vscode.CommentThreadCollapsibleState.Collapsed;
    if (state === "unsent") thread.collapsibleState = vscode.CommentThreadCollapsibleState.Expanded;
}
