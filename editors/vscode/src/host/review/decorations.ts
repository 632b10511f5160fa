// The mark of a changed file in lists of files and on tabs.
//
// Rule: a letter and a color of the theme, from the ledger; folders are not marked, and the user can switch it off.

import * as vscode from "vscode";
import { count } from "../../logic/words.ts";
import { decorates } from "../settings.ts";
import type { Ledger } from "./ledger.ts";

/** Marks changed files. */
export class Decorations implements vscode.FileDecorationProvider, vscode.Disposable {
    private readonly changed = new vscode.EventEmitter<vscode.Uri[] | undefined>();
    private readonly subscriptions: vscode.Disposable[];

    readonly onDidChangeFileDecorations = this.changed.event;

    constructor(private readonly ledger: Ledger) {
        this.subscriptions = [
            vscode.window.registerFileDecorationProvider(this),
            ledger.onChange((uris) => this.changed.fire(uris)),
            vscode.workspace.onDidChangeConfiguration((change) => {
                if (change.affectsConfiguration("kode.review.fileDecorations")) this.changed.fire(undefined);
            }),
        ];
    }

    provideFileDecoration(uri: vscode.Uri): vscode.FileDecoration | undefined {
        if (!decorates()) return undefined;
        const hunks = this.ledger.ofFile(uri).flatMap(({ file }) => file.hunks);
        if (hunks.length === 0) return undefined;
        const tooltip = `${count(hunks.length, "change")} by Kode to review`;
        return new vscode.FileDecoration("K", tooltip, new vscode.ThemeColor("kode.changedFileForeground"));
    }

    dispose(): void {
        for (const subscription of this.subscriptions) subscription.dispose();
        this.changed.dispose();
    }
}
