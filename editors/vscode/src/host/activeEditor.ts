// The text editor used last: what a page shows as a chip, and what goes with a prompt.
//
// Rule: looking at an editor changes nothing in it. An editor stays the last one while the chat has the focus. A text
// that is sent is bounded, and told only when the user has stopped moving for a moment.

import type { EditorContext, SelectionPart } from "kode-protocol";
import * as vscode from "vscode";
import type { ActiveEditor } from "../shared/messages.ts";
import { toRange } from "./convert.ts";

/** How long cursor and scroll must rest. */
const REST_MS = 120;

/** The most selected text that goes with a prompt unasked. */
const MOST_SELECTED = 64 * 1024;

/** The most open documents that are named. */
const MOST_OPEN = 50;

const SCHEMES = new Set(["file", "untitled"]);

/** Follows the user from editor to editor. */
export class EditorTracker implements vscode.Disposable {
    private readonly changed = new vscode.EventEmitter<void>();
    private readonly subscriptions: vscode.Disposable[];
    private last: vscode.TextEditor | undefined;
    private timer: NodeJS.Timeout | undefined;

    /** There is another editor, selection or language. */
    readonly onChange = this.changed.event;

    constructor() {
        this.take(vscode.window.activeTextEditor);
        this.subscriptions = [
            vscode.window.onDidChangeActiveTextEditor((editor) => this.take(editor)),
            vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
                if (textEditor === this.last) this.soon();
            }),
            vscode.workspace.onDidCloseTextDocument((document) => {
                if (document === this.last?.document) this.drop();
            }),
            // A document stays open for a while after its last tab was closed, and after its file was deleted.
            vscode.window.tabGroups.onDidChangeTabs(({ closed }) => {
                if (closed.length > 0 && this.last && !isShown(this.last.document)) this.drop();
            }),
            vscode.workspace.onDidDeleteFiles(({ files }) => {
                const path = this.last?.document.uri.path;
                if (files.some((file) => path === file.path || path?.startsWith(`${file.path}/`))) this.drop();
            }),
        ];
    }

    /** The editor used last, if it is still there. */
    get editor(): vscode.TextEditor | undefined {
        return this.last?.document.isClosed ? undefined : this.last;
    }

    /** The editor for the chip of a page. */
    get active(): ActiveEditor | undefined {
        const editor = this.editor;
        if (!editor) return undefined;
        return {
            uri: editor.document.uri.toString(),
            path: vscode.workspace.asRelativePath(editor.document.uri),
            range: toRange(editor.selection),
            languageId: editor.document.languageId,
        };
    }

    /** The editor's state, for a prompt. */
    context(): EditorContext {
        const openUris = openDocuments();
        const editor = this.editor;
        if (!editor) return { openUris };
        const visible = editor.visibleRanges[0];
        const selectedText = editor.document.getText(editor.selection).slice(0, MOST_SELECTED);
        return {
            activeUri: editor.document.uri.toString(),
            selection: toRange(editor.selection),
            openUris,
            ...(visible ? { visibleRange: toRange(visible) } : {}),
            ...(selectedText ? { selectedText } : {}),
        };
    }

    /** The selection, to go with a prompt; absent when nothing is. */
    selection(): SelectionPart | undefined {
        const editor = this.editor;
        if (!editor || editor.selection.isEmpty) return undefined;
        return partOf(editor.document, editor.selection, editor.document.getText(editor.selection));
    }

    /**
     * Where a text of several lines was copied from: the selection of a visible editor, or the only such place in the
     * document used last. Two possible places mean none.
     */
    findCopied(text: string): SelectionPart | undefined {
        if (text.length > MOST_SELECTED) return undefined;
        const wanted = withoutReturns(text);
        const shown = [...(this.editor ? [this.editor] : []), ...vscode.window.visibleTextEditors];
        for (const { document, selections } of shown.filter(({ document }) => SCHEMES.has(document.uri.scheme))) {
            const [selection, ...others] = selections;
            if (!selection || others.length > 0) continue;
            const selected = document.getText(selection);
            if (withoutReturns(selected) === wanted) return partOf(document, selection, selected);
        }
        const document = this.editor?.document;
        return document && onlyPlace(document, wanted);
    }

    dispose(): void {
        clearTimeout(this.timer);
        for (const subscription of this.subscriptions) subscription.dispose();
        this.changed.dispose();
    }

    private take(editor: vscode.TextEditor | undefined): void {
        if (editor && SCHEMES.has(editor.document.uri.scheme)) {
            this.last = editor;
            this.soon();
        } else if (!editor && vscode.window.visibleTextEditors.length === 0) {
            this.drop();
        }
    }

    private drop(): void {
        if (!this.last) return;
        this.last = undefined;
        this.soon();
    }

    private soon(): void {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.changed.fire(), REST_MS);
    }
}

function isShown(document: vscode.TextDocument): boolean {
    const uri = document.uri.toString();
    const isOf = ({ input }: vscode.Tab) =>
        (input instanceof vscode.TabInputText && input.uri.toString() === uri) ||
        (input instanceof vscode.TabInputTextDiff && [input.original, input.modified].some((side) => side.toString() === uri));
    return (
        vscode.window.tabGroups.all.some(({ tabs }) => tabs.some(isOf)) ||
        vscode.window.visibleTextEditors.some((editor) => editor.document === document)
    );
}

function partOf(document: vscode.TextDocument, range: vscode.Range, text: string): SelectionPart {
    return { uri: document.uri.toString(), range: toRange(range), text };
}

function withoutReturns(text: string): string {
    return text.replaceAll("\r\n", "\n");
}

function onlyPlace(document: vscode.TextDocument, wanted: string): SelectionPart | undefined {
    const text = document.getText();
    const as = document.eol === vscode.EndOfLine.CRLF ? wanted.replaceAll("\n", "\r\n") : wanted;
    const at = text.indexOf(as);
    if (at === -1 || text.indexOf(as, at + 1) !== -1) return undefined;
    return partOf(document, new vscode.Range(document.positionAt(at), document.positionAt(at + as.length)), as);
}

function openDocuments(): string[] {
    const uris = new Set<string>();
    for (const { tabs } of vscode.window.tabGroups.all) {
        for (const { input } of tabs) {
            if (input instanceof vscode.TabInputText && SCHEMES.has(input.uri.scheme)) uris.add(input.uri.toString());
            if (uris.size === MOST_OPEN) return [...uris];
        }
    }
    return [...uris];
}
