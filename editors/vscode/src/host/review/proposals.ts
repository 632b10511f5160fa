// A proposed change beside the text as it is, to be edited before it is allowed.
//
// Rule: the right side is a document of its own in memory; nothing reaches the file but by the call that is allowed. When the prompt
// is answered, here or elsewhere, the document and its tabs are closed.

import type { PermissionPrompt, SessionId } from "kode-protocol";
import * as vscode from "vscode";
import { inputFor, isEditable } from "../../logic/proposal.ts";
import type { Sessions } from "../sessions.ts";
import type { Entry, Ledger } from "./ledger.ts";

const SCHEME = "kode-proposal";

/** The most proposals that are open at a time. */
const MOST = 50;

/** A proposal that is being viewed. */
interface Proposal {
    readonly sessionId: SessionId;
    readonly prompt: PermissionPrompt;
    /** The file. */
    readonly file: vscode.Uri;
    /** The agent's proposals. */
    text: string;
    /** The document's content as it was saved. */
    content: Uint8Array;
    modified: number;
}

/** The proposals of this window. */
export class Proposals implements vscode.FileSystemProvider, vscode.Disposable {
    private readonly proposals = new Map<string, Proposal>();
    private readonly changed = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
    private readonly subscriptions: vscode.Disposable[];
    private clock = Date.now();

    readonly onDidChangeFile = this.changed.event;

    constructor(
        private readonly ledger: Ledger,
        private readonly sessions: Sessions,
    ) {
        this.subscriptions = [
            this.changed,
            vscode.workspace.registerFileSystemProvider(SCHEME, this, { isCaseSensitive: true }),
            sessions.onStep(({ answered }) => {
                for (const id of answered) void this.close(id);
            }),
            ledger.onChange(() => void this.refresh()),
        ];
    }

    /** Opens the proposal for a file, its right side editable; false where its call cannot be changed that way. */
    async open({ sessionId, file }: Entry): Promise<boolean> {
        const ids = new Set(file.hunks.flatMap(({ permissionId }) => permissionId ?? []));
        const [id] = ids;
        const waiting = this.sessions.attention.sessions.get(sessionId)?.waiting.get(id ?? "");
        if (ids.size !== 1 || id === undefined || waiting?.kind !== "permission" || !isEditable(waiting.prompt.tool)) return false;
        const proposed = await vscode.workspace.openTextDocument(vscode.Uri.parse(file.proposedUri));
        const text = proposed.getText();
        const uri = vscode.Uri.parse(file.uri);
        if (!this.proposals.has(id)) {
            this.proposals.set(id, { sessionId, prompt: waiting.prompt, file: uri, text, ...this.saved(text) });
            const [oldest] = this.proposals.keys();
            if (this.proposals.size > MOST && oldest !== undefined) await this.close(oldest);
        }
        const right = vscode.Uri.from({ scheme: SCHEME, path: uri.path, query: id });
        const title = `${file.path} (proposed by Kode)`;
        await vscode.commands.executeCommand("vscode.diff", vscode.Uri.parse(file.baselineUri), right, title);
        return true;
    }

    /** Answers the prompt of the proposal that is being viewed, with what the user has made of it. */
    async answer(decision: "allow" | "deny", uri: vscode.Uri | undefined): Promise<void> {
        const active = uri?.scheme === SCHEME ? uri : shownProposal();
        const id = active?.query ?? "";
        const proposal = this.proposals.get(id);
        if (!active || !proposal) throw new Error("This proposal was already answered.");
        const { sessionId, prompt } = proposal;
        const answer = { sessionId, permissionId: prompt.permissionId };
        if (decision === "deny") {
            await this.sessions.request("agent/permission/respond", { ...answer, decision });
            return;
        }
        const wanted = (await vscode.workspace.openTextDocument(active)).getText();
        const updated = wanted === proposal.text ? {} : { updatedInput: await this.inputOf(proposal, wanted) };
        await this.sessions.request("agent/permission/respond", { ...answer, decision, scope: "once", ...updated });
    }

    stat(uri: vscode.Uri): vscode.FileStat {
        const { content, modified } = this.find(uri);
        return { type: vscode.FileType.File, ctime: 0, mtime: modified, size: content.byteLength };
    }

    readFile(uri: vscode.Uri): Uint8Array {
        return this.find(uri).content;
    }

    writeFile(uri: vscode.Uri, content: Uint8Array): void {
        const proposal = this.find(uri);
        Object.assign(proposal, { content, modified: ++this.clock });
        this.changed.fire([{ type: vscode.FileChangeType.Changed, uri }]);
    }

    watch(): vscode.Disposable {
        return new vscode.Disposable(() => undefined);
    }

    readDirectory(): [string, vscode.FileType][] {
        return [];
    }

    createDirectory(uri: vscode.Uri): void {
        throw vscode.FileSystemError.NoPermissions(uri);
    }

    delete(uri: vscode.Uri): void {
        throw vscode.FileSystemError.NoPermissions(uri);
    }

    rename(uri: vscode.Uri): void {
        throw vscode.FileSystemError.NoPermissions(uri);
    }

    dispose(): void {
        for (const subscription of this.subscriptions) subscription.dispose();
        this.proposals.clear();
    }

    private async inputOf({ prompt, file }: Proposal, wanted: string): Promise<unknown> {
        const input = inputFor(prompt.tool, prompt.input, await currentText(file), wanted);
        if (input === undefined) throw new Error("The change is empty. Deny it instead.");
        return input;
    }

    /** Takes what the server proposes now, where the user has changed nothing. */
    private async refresh(): Promise<void> {
        for (const [id, proposal] of this.proposals) {
            const entry = this.ledger.ofFile(proposal.file).find(({ sessionId }) => sessionId === proposal.sessionId);
            if (!entry?.file.hunks.some(({ permissionId }) => permissionId === id)) continue;
            const text = (await vscode.workspace.openTextDocument(vscode.Uri.parse(entry.file.proposedUri))).getText();
            const uri = vscode.Uri.from({ scheme: SCHEME, path: proposal.file.path, query: id });
            const document = vscode.workspace.textDocuments.find((open) => open.uri.toString() === uri.toString());
            if (text === proposal.text || document?.isDirty || document?.getText() !== proposal.text) continue;
            Object.assign(proposal, { text, ...this.saved(text) });
            this.changed.fire([{ type: vscode.FileChangeType.Changed, uri }]);
        }
    }

    private async close(id: string): Promise<void> {
        const proposal = this.proposals.get(id);
        if (!proposal) return;
        const isOurs = (uri: vscode.Uri) => uri.scheme === SCHEME && uri.query === id;
        // The editor asks about documents that are not saved.
        for (const document of vscode.workspace.textDocuments) if (isOurs(document.uri) && document.isDirty) await document.save();
        const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
        const shown = tabs.filter(({ input }) => input instanceof vscode.TabInputTextDiff && isOurs(input.modified));
        if (shown.length > 0) await vscode.window.tabGroups.close(shown, true);
        this.proposals.delete(id);
    }

    private saved(text: string): Pick<Proposal, "content" | "modified"> {
        return { content: new TextEncoder().encode(text), modified: ++this.clock };
    }

    private find(uri: vscode.Uri): Proposal {
        const proposal = this.proposals.get(uri.query);
        if (!proposal) throw vscode.FileSystemError.FileNotFound(uri);
        return proposal;
    }
}

/** The proposal in the editor that is active. */
function shownProposal(): vscode.Uri | undefined {
    const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
    return input instanceof vscode.TabInputTextDiff && input.modified.scheme === SCHEME ? input.modified : undefined;
}

/**
 * The text of a file as the editor has it, else as it is on the disk; empty for one that is not there yet. A file is not opened for
 * this: the server changes the buffer of an open one and leaves it unsaved.
 */
async function currentText(file: vscode.Uri): Promise<string> {
    const open = vscode.workspace.textDocuments.find(({ uri }) => uri.toString() === file.toString());
    if (open) return open.getText();
    try {
        return new TextDecoder("utf-8", { fatal: true }).decode(await vscode.workspace.fs.readFile(file));
    } catch (error) {
        if (error instanceof vscode.FileSystemError) return "";
        // It has another encoding, which the editor knows.
        return (await vscode.workspace.openTextDocument(file)).getText();
    }
}
