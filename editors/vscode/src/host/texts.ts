// Texts that are in no file, shown as documents: the output of a command, what the doctor says.
//
// Rule: they can be read and copied, never changed or saved by themselves; there is room for a few, and the oldest goes.

import * as vscode from "vscode";

const SCHEME = "kode-text";
const MOST_TEXTS = 20;
const LONGEST = 8 * 1024 * 1024;

/** The texts of this window. */
export class Texts implements vscode.TextDocumentContentProvider, vscode.Disposable {
    private readonly texts = new Map<string, string>();
    private readonly registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
    private next = 1;

    /** Opens a text in an editor. */
    async show(title: string, text: string, languageId?: string): Promise<void> {
        const path = `/${title.replace(/[\\/:*?"<>|\p{Cc}\p{Cf}]+/gu, " ").trim().slice(0, 80) || "Kode"}`;
        const uri = vscode.Uri.from({ scheme: SCHEME, path, query: String(this.next++) });
        this.texts.set(uri.query, text.slice(0, LONGEST));
        const oldest = this.texts.keys().next().value;
        if (this.texts.size > MOST_TEXTS && oldest !== undefined) this.texts.delete(oldest);

        const document = await vscode.workspace.openTextDocument(uri);
        const known = languageId !== undefined && (await vscode.languages.getLanguages()).includes(languageId);
        if (known) await vscode.languages.setTextDocumentLanguage(document, languageId);
        await vscode.window.showTextDocument(document, { preview: true });
    }

    provideTextDocumentContent(uri: vscode.Uri): string {
        return this.texts.get(uri.query) ?? "This text is no longer available. Open it from the chat again.";
    }

    dispose(): void {
        this.registration.dispose();
        this.texts.clear();
    }
}
