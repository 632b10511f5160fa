// The agent's changes in the text of open files: added lines, changed words, places of deletions and proposals, with a hover that
// shows the former text and decides.
//
// Rule: drawn from the ledger, and only where the document is the version that the ledger refers to. An editor that is
// a side of a diff has colors of its own and is left alone. Texts in a hover are in a fence, and only the commands
// named here can be run from it.

import type { EditedFile, SessionId } from "kode-protocol";
import * as vscode from "vscode";
import { isApplied } from "../../logic/hunks.ts";
import { diagnosticsBlock, diffBlock, marksOf, type HunkMarks } from "../../logic/marks.ts";
import { keyOf } from "../convert.ts";
import { marksInline } from "../settings.ts";
import type { Entry, Ledger } from "./ledger.ts";

/** The commands a hover may run. */
const COMMANDS = ["kode.review.decideHunk", "kode.comment.begin", "kode.review.openDiffOf"];

/** How long the document may be another version before the list is asked for. */
const SETTLE_MS = 200;

type Style = "added" | "words" | "deleted" | "removed" | "cut" | "inserted" | "ghost";

/** Draws changes in text editors. */
export class InlineChanges implements vscode.Disposable {
    private readonly styles: Record<Style, vscode.TextEditorDecorationType>;
    private readonly subscriptions: vscode.Disposable[];
    /** The editors that have something drawn. */
    private readonly drawn = new WeakSet<vscode.TextEditor>();
    private readonly waiting = new Map<string, NodeJS.Timeout>();

    constructor(
        private readonly ledger: Ledger,
        extension: vscode.Uri,
    ) {
        this.styles = makeStyles(extension);
        const all = () => this.draw(vscode.window.visibleTextEditors);
        this.subscriptions = [
            ...Object.values(this.styles),
            vscode.window.onDidChangeVisibleTextEditors(all),
            vscode.window.tabGroups.onDidChangeTabs(all),
            ledger.onChange((uris) => {
                const changed = new Set(uris.map(keyOf));
                this.draw(vscode.window.visibleTextEditors.filter(({ document }) => changed.has(keyOf(document.uri))));
            }),
            vscode.workspace.onDidChangeConfiguration((change) => {
                if (change.affectsConfiguration("kode.review.inlineChanges")) all();
            }),
        ];
        all();
    }

    dispose(): void {
        for (const timer of this.waiting.values()) clearTimeout(timer);
        for (const subscription of this.subscriptions) subscription.dispose();
    }

    private draw(editors: readonly vscode.TextEditor[]): void {
        const shown = marksInline();
        for (const editor of editors) {
            const entries = shown && isPlain(editor) ? this.ledger.ofFile(editor.document.uri) : [];
            if (entries.length === 0) this.clear(editor);
            else this.drawEntries(editor, entries);
        }
    }

    private drawEntries(editor: vscode.TextEditor, entries: readonly Entry[]): void {
        const { document } = editor;
        const isStale = ({ version }: EditedFile) => version !== undefined && version !== null && version !== document.version;
        if (entries.some(({ file }) => isStale(file))) {
            // The decorations move with the text until then.
            this.askLater(document);
            return;
        }
        const options: Record<Style, vscode.DecorationOptions[]> = {
            added: [],
            words: [],
            deleted: [],
            removed: [],
            cut: [],
            inserted: [],
            ghost: [],
        };
        for (const { sessionId, file } of entries) {
            for (const marks of marksOf(file.hunks, document.lineCount)) {
                const last = Math.max(marks.first, marks.end - 1);
                const range = document.validateRange(new vscode.Range(marks.first, 0, last, Number.MAX_SAFE_INTEGER));
                options[marks.kind].push({ range, hoverMessage: hoverOf(sessionId, file, marks), ...behind(marks.verdict) });
                for (const { line, start, end } of marks.words) {
                    const style = marks.kind === "added" ? options.words : options.cut;
                    style.push({ range: new vscode.Range(line, start, line, end) });
                }
                for (const { line, text } of marks.ghosts) {
                    const end = document.lineAt(Math.min(line, document.lineCount - 1)).range.end;
                    options.ghost.push({ range: new vscode.Range(end, end), ...added(text) });
                }
            }
        }
        for (const style of Object.keys(this.styles) as Style[]) editor.setDecorations(this.styles[style], options[style]);
        this.drawn.add(editor);
    }

    private clear(editor: vscode.TextEditor): void {
        if (!this.drawn.delete(editor)) return;
        for (const style of Object.values(this.styles)) editor.setDecorations(style, []);
    }

    /** Asks for the list of a file when typing rests. */
    private askLater({ uri }: vscode.TextDocument): void {
        const key = keyOf(uri);
        clearTimeout(this.waiting.get(key));
        const ask = () => {
            this.waiting.delete(key);
            void this.ledger.fresh(uri);
        };
        this.waiting.set(key, setTimeout(ask, SETTLE_MS));
    }
}

/** Whether the editor shows the file by itself, and not as a side of a diff. */
function isPlain({ document, viewColumn }: vscode.TextEditor): boolean {
    const group = vscode.window.tabGroups.all.find((one) => one.viewColumn === viewColumn);
    const input = group?.activeTab?.input;
    return input instanceof vscode.TabInputText && keyOf(input.uri) === keyOf(document.uri);
}

function makeStyles(extension: vscode.Uri): Record<Style, vscode.TextEditorDecorationType> {
    const color = (name: string) => new vscode.ThemeColor(name);
    const bar = { gutterIconPath: vscode.Uri.joinPath(extension, "icons", "change.svg"), gutterIconSize: "contain" };
    const closed = vscode.DecorationRangeBehavior.ClosedClosed;
    return {
        added: vscode.window.createTextEditorDecorationType({
            ...bar,
            isWholeLine: true,
            rangeBehavior: closed,
            backgroundColor: color("diffEditor.insertedLineBackground"),
            overviewRulerColor: color("editorOverviewRuler.addedForeground"),
            overviewRulerLane: vscode.OverviewRulerLane.Left,
        }),
        words: vscode.window.createTextEditorDecorationType({
            rangeBehavior: closed,
            backgroundColor: color("diffEditor.insertedTextBackground"),
            borderRadius: "2px",
        }),
        deleted: vscode.window.createTextEditorDecorationType({
            ...bar,
            isWholeLine: true,
            rangeBehavior: closed,
            borderStyle: "dashed none none none",
            borderWidth: "1px",
            borderColor: color("editorGutter.deletedBackground"),
            overviewRulerColor: color("editorOverviewRuler.deletedForeground"),
            overviewRulerLane: vscode.OverviewRulerLane.Left,
        }),
        removed: vscode.window.createTextEditorDecorationType({
            isWholeLine: true,
            rangeBehavior: closed,
            textDecoration: "line-through",
            backgroundColor: color("diffEditor.removedLineBackground"),
            overviewRulerColor: color("editorOverviewRuler.modifiedForeground"),
            overviewRulerLane: vscode.OverviewRulerLane.Left,
        }),
        cut: vscode.window.createTextEditorDecorationType({
            rangeBehavior: closed,
            backgroundColor: color("diffEditor.removedTextBackground"),
            borderRadius: "2px",
        }),
        inserted: vscode.window.createTextEditorDecorationType({
            isWholeLine: true,
            rangeBehavior: closed,
            borderStyle: "dashed none none none",
            borderWidth: "1px",
            borderColor: color("editorGutter.addedBackground"),
            overviewRulerColor: color("editorOverviewRuler.addedForeground"),
            overviewRulerLane: vscode.OverviewRulerLane.Left,
        }),
        ghost: vscode.window.createTextEditorDecorationType({ rangeBehavior: closed }),
    };
}

type Rendered = Pick<vscode.DecorationOptions, "renderOptions">;

/** Words of ours behind a line. */
function behind(text: string): Rendered {
    if (text === "") return {};
    const color = new vscode.ThemeColor("editorGhostText.foreground");
    return { renderOptions: { after: { contentText: text, color, margin: "0 0 0 2ch", fontStyle: "italic" } } };
}

/** Text that a proposal would add, behind a line. */
function added(text: string): Rendered {
    const color = new vscode.ThemeColor("gitDecoration.addedResourceForeground");
    const backgroundColor = new vscode.ThemeColor("diffEditor.insertedLineBackground");
    return { renderOptions: { after: { contentText: text, color, backgroundColor, margin: "0 0 0 2ch" } } };
}

function hoverOf(sessionId: SessionId, file: EditedFile, { hunk, first, end }: HunkMarks): vscode.MarkdownString {
    const link = (label: string, command: string, ...args: unknown[]) =>
        `[${label}](command:${command}?${encodeURIComponent(JSON.stringify(args))})`;
    const decide = (label: string, decision: "keep" | "undo") =>
        link(label, "kode.review.decideHunk", decision, sessionId, file.uri, hunk.hunkId);
    const [yes, no] = isApplied(hunk) ? ["$(check) Keep", "$(discard) Undo"] : ["$(check) Allow", "$(close) Deny"];
    const acts = [
        decide(yes ?? "", "keep"),
        decide(no ?? "", "undo"),
        link("$(comment) Comment", "kode.comment.begin", file.uri, first, end),
        link("$(diff) Diff", "kode.review.openDiffOf", sessionId, file.uri),
    ];
    const parts = [acts.join("&nbsp;&nbsp;&nbsp;"), diffBlock(hunk), diagnosticsBlock(hunk)];
    const text = new vscode.MarkdownString(parts.filter((part) => part !== "").join("\n\n"), true);
    text.isTrusted = { enabledCommands: COMMANDS };
    return text;
}
