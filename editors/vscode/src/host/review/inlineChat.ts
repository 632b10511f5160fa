// A change asked for where it is to be: an input at the selection, the progress and the change in place, and one decision on all of it.
//
// Rule: each input has a session of its own, whose edits go into the text at once and are drawn as all changes are. *Accept*
// keeps the rest of them, *Discard* undoes them all and can be taken back. Words of the model are text, never a link.

import type { AgentEventParams, SelectionPart, SessionId } from "kode-protocol";
import * as vscode from "vscode";
import { count, plain, told } from "../../logic/words.ts";
import { toRange } from "../convert.ts";
import type { Sessions } from "../sessions.ts";
import type { Ledger } from "./ledger.ts";

/** The name of its inputs for the editor. */
const CONTROLLER = "kode.inline";

/** How long the editor may take to show an input before it is left to the user to click into it. */
const SHOWN_MS = 3_000;

/** The longest selection that is asked about, in characters. */
const LONGEST_SELECTION = 64 * 1024;

/** The longest answer that is shown in place; all of it is in the chat. */
const LONGEST_ANSWER = 1_000;

/** The mode of its sessions: edits need no answer, everything else does. */
const MODE = "acceptEdits";

/** The commands that its own lines may run. */
const COMMANDS = ["kode.inline.accept", "kode.inline.discard", "kode.inline.openChat"];

/** How an input is. */
type State =
    /** Nothing was asked. */
    | "empty"
    /** A turn runs. */
    | "working"
    /** The turn waits for the user. */
    | "asking"
    /** A turn has ended, and there are changes. */
    | "changed"
    /** A turn has ended without any. */
    | "answered";

const LABELS: Record<State, string> = {
    empty: "Kode: change this",
    working: "Kode is working",
    asking: "Kode waits for your answer in the chat",
    changed: "Changed by Kode",
    answered: "Answered by Kode",
};

/** An input, and all that was asked in it. */
interface InlineInput {
    readonly id: number;
    readonly thread: vscode.CommentThread;
    readonly place: SelectionPart;
    sessionId: SessionId | undefined;
    state: State;
    /** The user's prompts and what came of them, the newest last. */
    readonly rounds: { words: string; answer: string }[];
    /** The newest text of the model in this turn. */
    said: string;
    /** The decision that is being carried out. */
    deciding: boolean;
}

/** The inputs of this window. */
export class InlineChat implements vscode.Disposable {
    private readonly controller = vscode.comments.createCommentController(CONTROLLER, "Kode: Change in Place");
    private readonly inputs: InlineInput[] = [];
    private readonly subscriptions: vscode.Disposable[];
    private next = 1;

    constructor(
        private readonly ledger: Ledger,
        private readonly sessions: Sessions,
        private readonly openSession: (sessionId: SessionId) => Promise<void> | void,
    ) {
        this.controller.options = { prompt: "Change this", placeHolder: "What should change here? Escape discards." };
        this.subscriptions = [
            this.controller,
            sessions.onEvent((params) => this.fold(params)),
            sessions.onStep(() => this.forgetGone()),
            vscode.workspace.onDidCloseTextDocument(({ uri }) => {
                for (const input of this.ofState("empty")) if (input.thread.uri.toString() === uri.toString()) this.close(input);
            }),
        ];
    }

    /** Opens an input at the selection, or at the line of the cursor. */
    async begin(): Promise<void> {
        const editor = vscode.window.activeTextEditor;
        if (!editor) throw new Error("No editor is active. Click into a file first.");
        const { document } = editor;
        const selection = withoutLastLine(editor.selection, document);
        if (document.uri.scheme !== "file" && document.uri.scheme !== "untitled") {
            throw new Error("Kode can change files only. Open the file itself, not a view of it.");
        }
        // One that nothing was written into is of no use any more.
        for (const input of this.ofState("empty")) this.close(input);
        const range = selection.isEmpty ? document.lineAt(selection.active.line).range : selection;
        const text = document.getText(range);
        if (text.length > LONGEST_SELECTION) throw new Error("The selection is too long to be changed in place. Select less, or ask in the chat.");
        const lines = new vscode.Range(range.start.line, 0, range.end.line, 0);
        // The editor gives the keyboard to the input at the line of the cursor.
        editor.selection = new vscode.Selection(selection.start, selection.end);
        const shown = inputShown();
        const thread = this.controller.createCommentThread(document.uri, lines, []);
        const place = { uri: document.uri.toString(), range: toRange(range), text };
        const input: InlineInput = {
            id: this.next++,
            thread,
            place,
            sessionId: undefined,
            state: "empty",
            rounds: [],
            said: "",
            deciding: false,
        };
        this.inputs.push(input);
        this.draw(input, "empty");
        thread.collapsibleState = vscode.CommentThreadCollapsibleState.Expanded;
        if (!(await shown)) return;
        await vscode.commands.executeCommand("workbench.action.focusCommentOnCurrentLine");
        await vscode.commands.executeCommand("widgetNavigation.focusNext");
    }

    /** Asks for what the user has written, in the first turn or a further one. */
    async send({ thread, text }: vscode.CommentReply): Promise<void> {
        const input = this.of(thread);
        const words = text.trim();
        if (words === "") throw new Error("Write what should change first.");
        if (input.state === "working" || input.state === "asking") throw new Error("Kode is still working on the last prompt. Stop it or wait.");
        const before = input.state;
        input.rounds.push({ words, answer: "" });
        input.said = "";
        this.draw(input, "working");
        try {
            const isFirst = input.sessionId === undefined;
            input.sessionId ??= (await this.sessions.request("agent/session/new", { mode: MODE })).sessionId;
            const { sessionId } = input;
            const prompt = { type: "text" as const, text: words };
            const place = isFirst ? [{ type: "selection" as const, ...input.place }] : [];
            await this.sessions.request("agent/turn/start", { sessionId, input: [prompt, ...place] });
        } catch (error) {
            input.rounds.pop();
            if (this.inputs.includes(input)) this.draw(input, before);
            throw error;
        }
    }

    /** Keeps all changes of an input and closes it. */
    async accept(which: unknown): Promise<void> {
        const input = this.meant(which);
        if (input.state === "working" || input.state === "asking") throw new Error("Kode is still working. Wait for the change, or discard it.");
        await this.decide(input, "keep");
    }

    /** Undoes all changes of an input, ends its turn if one runs, and closes it. */
    async discard(which: unknown): Promise<void> {
        const input = this.meant(which);
        if (input.sessionId !== undefined && (input.state === "working" || input.state === "asking")) await this.end(input.sessionId);
        await this.decide(input, "undo");
    }

    /** Shows the session of an input in the chat. */
    async openChat(which: unknown): Promise<void> {
        const { sessionId } = this.meant(which);
        if (sessionId !== undefined) await this.openSession(sessionId);
    }

    dispose(): void {
        for (const subscription of this.subscriptions) subscription.dispose();
    }

    /** Decides on all that is left of the changes. */
    private async decide(input: InlineInput, action: "keep" | "undo"): Promise<void> {
        const { sessionId } = input;
        if (input.deciding) return;
        input.deciding = true;
        try {
            if (sessionId !== undefined && (await this.changes(sessionId)).hunks > 0) {
                await this.ledger.resolve({ type: "session", sessionId }, action);
            }
            this.close(input);
        } finally {
            input.deciding = false;
        }
    }

    /** Stops the turn, and waits until it is over, so that the changes it has begun are there. */
    private async end(sessionId: SessionId): Promise<void> {
        const over = new Promise<void>((resolve) => {
            const subscription = this.sessions.onEvent(({ sessionId: of, event }) => {
                if (of !== sessionId || event.type !== "done") return;
                subscription.dispose();
                resolve();
            });
        });
        const { cancelled } = await this.sessions.request("agent/turn/cancel", { sessionId });
        if (cancelled) await over;
    }

    private fold({ sessionId, event }: AgentEventParams): void {
        const input = this.inputs.find((one) => one.sessionId === sessionId);
        if (!input || input.deciding) return;
        switch (event.type) {
            case "item_updated":
            case "item_added": {
                const { body, agentId } = event.item;
                if (body.type === "agentMessage" && body.complete && agentId === undefined) input.said = body.text;
                break;
            }
            case "tool:start":
                if (event.item.body.type === "toolCall") this.progress(input, event.item.body.title);
                break;
            case "permission_required":
            case "question_asked":
                this.draw(input, "asking");
                break;
            case "permission_decided":
            case "question_answered":
                this.draw(input, "working");
                break;
            case "done":
                void this.over(input, event.stopReason === "end_turn");
                break;
            default:
        }
    }

    private progress(input: InlineInput, title: string): void {
        const round = input.rounds.at(-1);
        if (!round) return;
        round.answer = plain(title);
        this.draw(input, "working");
    }

    /** Shows how a turn ended, and what there is to decide on. */
    private async over(input: InlineInput, isWhole: boolean): Promise<void> {
        const { sessionId } = input;
        const round = input.rounds.at(-1);
        if (sessionId === undefined || !round) return;
        let hunks = 0;
        try {
            const found = await this.changes(sessionId);
            hunks = found.hunks;
            const places = `${count(hunks, "change")} in ${count(found.files, "file")}.`;
            const why = isWhole ? "" : "It did not come to an end; the chat says why. ";
            round.answer = `${why}${hunks > 0 ? places : "Nothing was changed."}`;
        } catch (error) {
            round.answer = `The changes could not be listed: ${told(error)}`;
        }
        const said = input.said.trim();
        if (said !== "") round.answer = `${said.slice(0, LONGEST_ANSWER)}\n\n${round.answer}`;
        if (this.inputs.includes(input) && !input.deciding) this.draw(input, hunks > 0 ? "changed" : "answered");
    }

    /** How much there is to decide on. */
    private async changes(sessionId: SessionId): Promise<{ hunks: number; files: number }> {
        const { files } = await this.sessions.request("agent/edits/list", { sessionId });
        const withHunks = files.filter((file) => file.hunks.length > 0);
        return { hunks: withHunks.reduce((sum, file) => sum + file.hunks.length, 0), files: withHunks.length };
    }

    private draw(input: InlineInput, state: State): void {
        input.state = state;
        const { thread, rounds } = input;
        const isLast = (index: number) => index === rounds.length - 1;
        thread.comments = rounds.flatMap(({ words, answer }, index) => [
            said("You", textOf(words)),
            said("Kode", isLast(index) ? this.newest(input, answer) : textOf(answer)),
        ]);
        thread.contextValue = state;
        thread.label = LABELS[state];
        thread.canReply = state !== "working" && state !== "asking";
    }

    /** The newest line of Kode, with what can be done about it. */
    private newest({ id, state }: InlineInput, answer: string): vscode.MarkdownString {
        const link = (label: string, command: string) => `[${label}](command:${command}?${encodeURIComponent(JSON.stringify([id]))})`;
        const acts: Record<State, string[]> = {
            empty: [],
            working: [link("Stop and Discard", "kode.inline.discard"), link("Open in Chat", "kode.inline.openChat")],
            asking: [link("Answer in Chat", "kode.inline.openChat"), link("Stop and Discard", "kode.inline.discard")],
            changed: [
                link("Accept", "kode.inline.accept"),
                link("Discard", "kode.inline.discard"),
                link("Open in Chat", "kode.inline.openChat"),
            ],
            answered: [link("Close", "kode.inline.discard"), link("Open in Chat", "kode.inline.openChat")],
        };
        const text = textOf(answer === "" ? "Working…" : answer);
        text.appendMarkdown(`\n\n${acts[state].join("&nbsp;&nbsp;&nbsp;")}`);
        text.isTrusted = { enabledCommands: COMMANDS };
        return text;
    }

    /** Closes those whose session was closed or deleted elsewhere; the review has their changes. */
    private forgetGone(): void {
        for (const input of [...this.inputs]) {
            const { sessionId } = input;
            if (sessionId !== undefined && !this.sessions.attention.sessions.has(sessionId)) this.close(input);
        }
    }

    private close(input: InlineInput): void {
        const at = this.inputs.indexOf(input);
        if (at !== -1) this.inputs.splice(at, 1);
        input.thread.dispose();
    }

    private of(thread: vscode.CommentThread): InlineInput {
        const input = this.inputs.find((one) => one.thread === thread);
        if (!input) throw new Error("This input was closed. Open another one at the selection.");
        return input;
    }

    /** The input of a link, of a button of a thread, or of a key: then the one at the cursor, or the newest. */
    private meant(which: unknown): InlineInput {
        if (typeof which === "number") {
            const input = this.inputs.find(({ id }) => id === which);
            if (input) return input;
        }
        const thread = (which as { thread?: vscode.CommentThread } | undefined)?.thread ?? which;
        const ofThread = this.inputs.find((one) => one.thread === thread);
        if (ofThread) return ofThread;
        const active = vscode.window.activeTextEditor?.document.uri.toString();
        const input = this.inputs.findLast((one) => one.thread.uri.toString() === active) ?? this.inputs.at(-1);
        if (!input) throw new Error("No change in place is open.");
        return input;
    }

    private ofState(state: State): InlineInput[] {
        return this.inputs.filter((input) => input.state === state);
    }
}

/** A selection to the beginning of a line does not mean that line. */
function withoutLastLine(selection: vscode.Selection, document: vscode.TextDocument): vscode.Selection {
    const { start, end } = selection;
    if (end.character > 0 || end.line === start.line) return selection;
    return new vscode.Selection(start, document.lineAt(end.line - 1).range.end);
}

/** Resolves when the editor has made an input of ours, whose text is a document; false when it does not. */
function inputShown(): Promise<boolean> {
    return new Promise((resolve) => {
        const end = (isShown: boolean) => {
            clearTimeout(timer);
            subscription.dispose();
            resolve(isShown);
        };
        const timer = setTimeout(() => end(false), SHOWN_MS);
        const subscription = vscode.workspace.onDidOpenTextDocument(({ uri }) => {
            if (uri.scheme === "comment" && uri.authority === CONTROLLER) end(true);
        });
    });
}

function said(name: "You" | "Kode", body: vscode.MarkdownString): vscode.Comment {
    return { body, mode: vscode.CommentMode.Preview, author: { name }, contextValue: name };
}

/** Words as they are: nothing in them is a link, a picture or a command. */
function textOf(words: string): vscode.MarkdownString {
    return new vscode.MarkdownString().appendText(words.replace(/[\p{Cf}\p{Zl}\p{Zp}]|(?!\n)\p{Cc}/gu, " "));
}
