// Changed files beside what they were: one file, or all of a session in one editor.
//
// Rule: the left side is the server's baseline, the right side the file itself, so that it can be edited. For a change that is
// proposed the right side is the proposal: editable where it is one file, else as the server has it.

import type { EditedFile, SessionId } from "kode-protocol";
import * as vscode from "vscode";
import type { Ledger } from "./ledger.ts";
import type { Proposals } from "./proposals.ts";

/** The title of the diff of all files. */
const REVIEW = "Changes by Kode";

/** Whether a tab shows the diff of all files; its label has their number behind the title. */
export function isReview(tab: vscode.Tab | undefined): boolean {
    return tab?.label.startsWith(REVIEW) === true && !(tab.input instanceof vscode.TabInputText);
}

/** The two sides of a file. */
export interface Sides {
    file: vscode.Uri;
    left: vscode.Uri;
    right: vscode.Uri;
}

/** Opens diffs. */
export class Diffs {
    constructor(
        private readonly ledger: Ledger,
        private readonly proposals: Proposals,
    ) {}

    /** Opens one file. */
    async open(sessionId: SessionId, uri: vscode.Uri): Promise<void> {
        const entry = (await this.ledger.fresh(uri, sessionId)).find((found) => found.sessionId === sessionId);
        if (!entry) throw new Error(`${vscode.workspace.asRelativePath(uri)} has no more changes to review.`);
        if (entry.file.hunks.every(({ state }) => state === "proposed") && (await this.proposals.open(entry))) return;
        const { left, right } = sides(entry.file);
        await vscode.commands.executeCommand("vscode.diff", left, right, `${entry.file.path} (changes by Kode)`);
    }

    /** Opens all files, of a session or of all. */
    async openAll(sessionId: SessionId | undefined): Promise<void> {
        const entries = sessionId === undefined ? this.ledger.all() : this.ledger.ofSession(sessionId);
        if (entries.length === 0) {
            void vscode.window.showInformationMessage("Kode: No changes to review.");
            return;
        }
        const resources = entries.map(({ file }) => sides(file)).map(({ file, left, right }) => [file, left, right]);
        await vscode.commands.executeCommand("vscode.changes", REVIEW, resources);
    }
}

/** The two sides of a changed file. */
export function sides(file: EditedFile): Sides {
    const uri = vscode.Uri.parse(file.uri);
    const isProposed = file.hunks.some(({ state }) => state === "proposed");
    const gone = file.hunks.some(({ kind, state }) => kind === "deleted" && state !== "proposed");
    const right = isProposed || gone ? vscode.Uri.parse(file.proposedUri) : uri;
    return { file: uri, left: vscode.Uri.parse(file.baselineUri), right };
}
