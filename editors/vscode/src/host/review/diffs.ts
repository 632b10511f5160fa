// Changed files beside what they were: one file, or all of a session in one editor.
//
// Rule: the left side is the server's baseline, the right side the file itself, so that it can be edited; where a change
// is only proposed, the right side is the proposal.

import type { EditedFile, SessionId } from "kode-protocol";
import * as vscode from "vscode";
import type { Ledger } from "./ledger.ts";

/** The two sides of a file. */
export interface Sides {
    file: vscode.Uri;
    left: vscode.Uri;
    right: vscode.Uri;
}

/** Opens diffs. */
export class Diffs {
    constructor(private readonly ledger: Ledger) {}

    /** Opens one file. */
    async open(sessionId: SessionId, uri: vscode.Uri): Promise<void> {
        const entry = (await this.ledger.fresh(uri, sessionId)).find((found) => found.sessionId === sessionId);
        if (!entry) throw new Error(`There is nothing to review in ${vscode.workspace.asRelativePath(uri)} any more.`);
        const { left, right } = sides(entry.file);
        await vscode.commands.executeCommand("vscode.diff", left, right, `${entry.file.path} (changes by Kode)`);
    }

    /** Opens all files, of a session or of all. */
    async openAll(sessionId: SessionId | undefined): Promise<void> {
        const entries = sessionId === undefined ? this.ledger.all() : this.ledger.ofSession(sessionId);
        if (entries.length === 0) {
            void vscode.window.showInformationMessage("Kode: there are no changes to review.");
            return;
        }
        const resources = entries.map(({ file }) => sides(file)).map(({ file, left, right }) => [file, left, right]);
        await vscode.commands.executeCommand("vscode.changes", "Changes by Kode", resources);
    }
}

/** What stands on the two sides of a changed file. */
export function sides(file: EditedFile): Sides {
    const uri = vscode.Uri.parse(file.uri);
    const isProposed = file.hunks.some(({ state }) => state === "proposed");
    const gone = file.hunks.some(({ kind, state }) => kind === "deleted" && state !== "proposed");
    const right = isProposed || gone ? vscode.Uri.parse(file.proposedUri) : uri;
    return { file: uri, left: vscode.Uri.parse(file.baselineUri), right };
}
