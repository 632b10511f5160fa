// The changes since a round of comments was sent: the changed files as they were then, and beside each what it is now.
//
// Rule: the texts are kept in memory alone and bounded; a file that was not changed then, or was too large, is compared with the
// server's baseline. Nothing is shown that is as it was.

import type { EditedFile, SessionId } from "kode-protocol";
import * as vscode from "vscode";
import { keyOf } from "../convert.ts";
import { sides } from "./diffs.ts";
import type { Ledger } from "./ledger.ts";

const SCHEME = "kode-since";

/** The most sessions whose round is remembered, and files of a round. */
const MOST_ROUNDS = 10;
const MOST_FILES = 200;

/** The longest text that is kept, in characters. */
const LONGEST = 1024 * 1024;

/** The texts of the changed files when a round was sent, by the one spelling of their URIs. */
type Texts = ReadonlyMap<string, string>;

/** The texts at the last comments of each session. */
export class Since implements vscode.TextDocumentContentProvider, vscode.Disposable {
    private readonly rounds = new Map<SessionId, { number: number; texts: Texts }>();
    private readonly registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
    private sent = 0;

    constructor(private readonly ledger: Ledger) {}

    /** The changed files of a session as they are now. */
    async look(sessionId: SessionId): Promise<Texts> {
        const files = this.ledger.ofSession(sessionId).slice(0, MOST_FILES);
        const texts = await Promise.all(files.map(async ({ file }) => [keyOf(file.uri), await textOf(file)] as const));
        return new Map(texts.flatMap(([uri, text]) => (text !== undefined && text.length <= LONGEST ? [[uri, text]] : [])));
    }

    /** Remembers what there was when a round was sent, in place of the round before. */
    remember(sessionId: SessionId, texts: Texts): void {
        this.sent += 1;
        this.rounds.delete(sessionId);
        this.rounds.set(sessionId, { number: this.sent, texts });
        const [oldest] = this.rounds.keys();
        if (this.rounds.size > MOST_ROUNDS && oldest !== undefined) this.rounds.delete(oldest);
        void vscode.commands.executeCommand("setContext", "kode.hasRound", true);
    }

    /** Opens what changed since the comments of a session, or of the session whose were sent last. */
    async open(wanted: SessionId | undefined): Promise<void> {
        const sessionId = wanted !== undefined && this.rounds.has(wanted) ? wanted : [...this.rounds.keys()].at(-1);
        const round = sessionId === undefined ? undefined : this.rounds.get(sessionId);
        if (sessionId === undefined || !round) throw new Error("No comments were sent in this window yet.");
        const resources: vscode.Uri[][] = [];
        for (const { file } of this.ledger.ofSession(sessionId)) {
            const { file: uri, left, right } = sides(file);
            const before = round.texts.get(keyOf(file.uri));
            if (before === undefined) resources.push([uri, left, right]);
            else if (before !== (await textOf(file))) resources.push([uri, this.at(sessionId, round.number, uri), right]);
        }
        if (resources.length === 0) {
            void vscode.window.showInformationMessage("Kode: nothing has changed since your comments.");
            return;
        }
        await vscode.commands.executeCommand("vscode.changes", "Changes by Kode since Your Comments", resources);
    }

    provideTextDocumentContent({ query }: vscode.Uri): string {
        const [sessionId = "", number, uri = ""] = JSON.parse(query) as [SessionId?, number?, string?];
        const round = this.rounds.get(sessionId);
        const text = round?.number === number ? round?.texts.get(uri) : undefined;
        return text ?? "This text is no longer available: newer comments were sent.";
    }

    dispose(): void {
        this.registration.dispose();
        this.rounds.clear();
    }

    private at(sessionId: SessionId, number: number, uri: vscode.Uri): vscode.Uri {
        const query = JSON.stringify([sessionId, number, keyOf(uri)]);
        return vscode.Uri.from({ scheme: SCHEME, path: uri.path, query });
    }
}

/** The text of a changed file as the editor has it; absent where it has none to compare. */
async function textOf(file: EditedFile): Promise<string | undefined> {
    try {
        return (await vscode.workspace.openTextDocument(sides(file).right)).getText();
    } catch {
        // It is no text, or gone: its diff is shown as a whole and says which.
        return undefined;
    }
}
