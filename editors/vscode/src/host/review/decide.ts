// Keeping and undoing from the keyboard, from the bars at the lines, from the list and from diffs; walking through hunks.
//
// Rule: which hunks are meant is looked up in a list of the file that was fetched just now; what happens to them is the
// server's. Where the user has typed into a hunk the server says so, and the user is asked. Going to the next hunk is the
// user's own act and the only thing here that moves the cursor.

import type { AgentEventParams, Amended, EditSelection, Hunk, ReviewAction, SessionId } from "kode-protocol";
import * as vscode from "vscode";
import { hunksAtLine, hunksOfChange, isApplied, step, type Direction, type LineChange } from "../../logic/hunks.ts";
import { count, plain } from "../../logic/words.ts";
import { keyOf } from "../convert.ts";
import type { Sessions } from "../sessions.ts";
import type { ChangedFile } from "./changes.ts";
import type { Entry, Ledger } from "./ledger.ts";

/** The user's decisions. */
type Decision = "keep" | "undo";

const UNDO_ANYWAY = "Undo, Leaving What I Typed";
const TAKE_BACK = "Take Back";

/** Decides on hunks. */
export class Decisions implements vscode.Disposable {
    private readonly subscription: vscode.Disposable;

    constructor(
        private readonly ledger: Ledger,
        private readonly sessions: Sessions,
    ) {
        this.subscription = sessions.onEvent((params) => void this.resolved(params));
    }

    /** Decides on the change that the inline view of the editor shows. */
    async change(decision: Decision, uri: vscode.Uri, changes: readonly LineChange[], index: number): Promise<void> {
        const change = changes[index];
        if (!change) return;
        await this.some(decision, await this.ledger.fresh(uri), (hunks) => hunksOfChange(hunks, change));
    }

    /** Decides on the hunk at the cursor. */
    async atCursor(decision: Decision): Promise<void> {
        const editor = vscode.window.activeTextEditor;
        if (!editor) return;
        const line = editor.selection.active.line;
        const entries = await this.ledger.fresh(editor.document.uri);
        await this.some(decision, entries, (hunks) => hunksAtLine(hunks, line));
    }

    /** Decides on one hunk, by its name. */
    async hunk(decision: Decision, sessionId: SessionId, uri: string, hunkId: string): Promise<void> {
        const entries = (await this.ledger.fresh(vscode.Uri.parse(uri), sessionId)).filter((one) => one.sessionId === sessionId);
        await this.some(decision, entries, (hunks) => hunks.filter((hunk) => hunk.hunkId === hunkId));
    }

    /** Decides on all hunks of a file: that of a list, or the one that is being viewed. */
    async file(decision: Decision, files: readonly ChangedFile[]): Promise<void> {
        const active = activeFile();
        const entries = files.length > 0 ? files.map(({ entry }) => entry) : active ? this.ledger.ofFile(active) : [];
        if (entries.length === 0) nothing();
        for (const { sessionId, file } of entries) {
            for (const action of actions(decision, file.hunks)) {
                await this.ledger.resolve({ type: "file", sessionId, uri: file.uri }, action);
            }
        }
    }

    /** Decides on everything. */
    async everything(decision: Decision): Promise<void> {
        const entries = this.ledger.all();
        if (entries.length === 0) {
            nothing();
            return;
        }
        const hunks = entries.flatMap(({ file }) => file.hunks);
        const what = `${count(hunks.length, "change")} in ${count(entries.length, "file")}`;
        const yes = decision === "keep" ? "Keep All" : "Undo All";
        const detail = "It can be taken back.";
        const answer = await vscode.window.showWarningMessage(`${yes}: ${what}?`, { modal: true, detail }, yes);
        if (answer !== yes) return;
        for (const sessionId of new Set(entries.map((entry) => entry.sessionId))) {
            const own = entries.filter((entry) => entry.sessionId === sessionId).flatMap(({ file }) => file.hunks);
            for (const action of actions(decision, own)) {
                await this.ledger.resolve({ type: "session", sessionId }, action);
            }
        }
    }

    /** Takes the last decision in a session back. */
    async takeBack(sessionId: SessionId | undefined): Promise<void> {
        if (sessionId === undefined) throw new Error("No session is open. Open one in the chat first.");
        await this.sessions.request("agent/edits/revert", { sessionId });
    }

    /** Goes to a hunk, from file to file. */
    async go(direction: Direction): Promise<void> {
        const editor = vscode.window.activeTextEditor;
        const from = editor && { uri: keyOf(editor.document.uri), line: editor.selection.active.line };
        if (editor && this.ledger.ofFile(editor.document.uri).length > 0) await this.ledger.fresh(editor.document.uri);
        const files = this.ledger
            .all()
            .filter(({ file }) => file.hunks.every(({ kind }) => kind !== "binary" && kind !== "deleted"))
            .map(({ file }) => ({ uri: keyOf(file.uri), hunks: file.hunks }));
        const stop = step(files, from, direction);
        if (!stop) {
            nothing();
            return;
        }
        const uri = vscode.Uri.parse(stop.uri);
        const place = new vscode.Range(stop.line, 0, stop.line, 0);
        const shown = await vscode.window.showTextDocument(uri, { preview: true, selection: place });
        shown.revealRange(place, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    }

    dispose(): void {
        this.subscription.dispose();
    }

    private async some(decision: Decision, entries: Entry[], pick: (hunks: Hunk[]) => Hunk[]): Promise<void> {
        const meant = entries
            .map(({ sessionId, file }) => ({ sessionId, hunks: pick(file.hunks) }))
            .filter(({ hunks }) => hunks.length > 0);
        if (meant.length === 0) nothing();
        for (const { sessionId, hunks } of meant) {
            for (const action of actions(decision, hunks)) {
                const wanted = hunks.filter((hunk) => isApplied(hunk) === (action === "keep" || action === "undo"));
                const selection: EditSelection = {
                    type: "hunks",
                    sessionId,
                    hunkIds: wanted.map(({ hunkId }) => hunkId),
                };
                await this.ledger.resolve(selection, action);
            }
        }
    }

    /** Says what could not be done, and asks where the user's own text is in the way. */
    private async resolved({ sessionId, event }: AgentEventParams): Promise<void> {
        if (event.type !== "edits_resolved") return;
        if (event.failed.length > 0) {
            const [first] = event.failed;
            const more = event.failed.length > 1 ? ` (and ${event.failed.length - 1} more)` : "";
            const name = vscode.workspace.asRelativePath(vscode.Uri.parse(first?.uri ?? ""));
            void vscode.window.showErrorMessage(plain(`Kode: ${name} could not be changed: ${first?.reason ?? ""}${more}`));
        }
        if (event.conflicts.length > 0 && (event.action === "undo" || event.action === "reject")) {
            const amended: Amended = "undo";
            const text = `Kode: you have typed into ${count(event.conflicts.length, "change")}, so nothing was undone there.`;
            const answer = await vscode.window.showWarningMessage(text, UNDO_ANYWAY);
            if (answer !== UNDO_ANYWAY) return;
            await this.ledger.resolve({ type: "hunks", sessionId, hunkIds: event.conflicts }, "undo", amended);
        } else if (event.action === "undo" && event.resolved.length > 1) {
            const text = `Kode: undid ${count(event.resolved.length, "change")}.`;
            const answer = await vscode.window.showInformationMessage(text, TAKE_BACK);
            if (answer !== TAKE_BACK) return;
            const { resolutionId } = event;
            await this.sessions.request("agent/edits/revert", { sessionId, resolutionId });
        }
    }
}

/** The effect of a decision on hunks: those that are in the text are kept or undone, those that are proposed accepted or rejected. */
function actions(decision: Decision, hunks: readonly Hunk[]): ReviewAction[] {
    const all: ReviewAction[] = [];
    if (hunks.some(isApplied)) all.push(decision);
    if (hunks.some(({ state }) => state === "proposed")) all.push(decision === "keep" ? "accept" : "reject");
    return all;
}

/** The file in the active editor, also when it is one side of a diff. */
export function activeFile(): vscode.Uri | undefined {
    const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
    if (input instanceof vscode.TabInputText) return input.uri;
    return input instanceof vscode.TabInputTextDiff ? input.modified : vscode.window.activeTextEditor?.document.uri;
}

function nothing(): void {
    vscode.window.setStatusBarMessage("Kode: No change to review here.", 4_000);
}
