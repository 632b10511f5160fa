// Acts in the editor for a page.
//
// Rule: each is an act of the user and the only way by which a page moves the focus. What comes in is text of a page that
// shows hostile text: schemes are checked here, and nothing that comes in is run.

import * as vscode from "vscode";
import { isDocument, isExternal } from "../logic/links.ts";
import { plain } from "../logic/words.ts";
import type { Action, HostActions } from "../shared/messages.ts";
import type { EditorTracker } from "./activeEditor.ts";
import { fromRange } from "./convert.ts";
import { imageOf } from "./images.ts";
import type { Doctor } from "./doctor.ts";
import type { Keys } from "./keys.ts";
import type { Later } from "./later.ts";
import type { Diffs } from "./review/diffs.ts";
import type { Server } from "./server.ts";
import { chooseServer, openSettings } from "./settings.ts";
import { findSymbols } from "./symbols.ts";
import type { TaskTerminals } from "./taskTerminal.ts";
import type { Texts } from "./texts.ts";
import type { CodeColors } from "./theme.ts";

/** The context of the actions; those about the page itself are its own. */
export interface Tools {
    editors: EditorTracker;
    texts: Texts;
    diffs: Diffs;
    keys: Keys;
    doctor: Doctor;
    colors: CodeColors;
    terminals: Later<TaskTerminals>;
    server: Server;
    log: vscode.LogOutputChannel;
}

/** The actions that have nothing to do with the page they come from. */
export type CommonAction = Exclude<Action, "showing" | "openInEditor">;

type Handlers = {
    [A in CommonAction]: (
        tools: Tools,
        payload: HostActions[A]["payload"],
    ) => PromiseLike<HostActions[A]["result"]> | HostActions[A]["result"];
};

const HANDLERS: Handlers = {
    async openFile(_, { uri, range, preview }) {
        if (!isDocument(uri)) throw new Error(`\`${plain(uri)}\` was not opened: it is not a file of this workspace.`);
        const options: vscode.TextDocumentShowOptions = { preview: preview ?? true };
        if (range) options.selection = fromRange(range);
        await vscode.commands.executeCommand("vscode.open", vscode.Uri.parse(uri, true), options);
        return null;
    },

    async openDiff({ diffs }, { sessionId, uri }) {
        await diffs.open(sessionId, vscode.Uri.parse(uri, true));
        return null;
    },

    async reviewChanges({ diffs }, { sessionId }) {
        await diffs.openAll(sessionId);
        return null;
    },

    readImage: async (_, { uri }) => ({ url: (await imageOf(vscode.Uri.parse(uri, true))) ?? null }),

    async openText({ texts }, { title, text, languageId }) {
        await texts.show(title, text, languageId);
        return null;
    },

    openTerminal(_, { command }) {
        const folder = vscode.workspace.workspaceFolders?.find(({ uri }) => uri.scheme === "file")?.uri;
        const terminal = vscode.window.createTerminal({ name: "Kode", ...(folder ? { cwd: folder } : {}) });
        terminal.show(false);
        // A line break in it would run what precedes.
        terminal.sendText(command.replace(/[\r\n]+/g, " ").replace(/\p{Cc}/gu, ""), false);
        return null;
    },

    async showTask({ terminals }, task) {
        (await terminals.get()).show(task);
        return null;
    },

    async insert({ editors }, { text }) {
        const editor = editors.editor;
        if (!editor) throw new Error("Nothing was inserted: no editor is active. Click into an editor first.");
        // An editor that is not shown any more cannot be written to; showing it is what the user asked for.
        const shown = await vscode.window.showTextDocument(editor.document, { selection: editor.selection });
        const done = await shown.edit((edit) => edit.replace(shown.selection, text));
        if (!done) throw new Error("Nothing was inserted: the editor refused the text. Check whether the file is read-only.");
        return null;
    },

    async replace({ server }, { sessionId, place, text }) {
        if (!isDocument(place.uri)) throw new Error(`\`${plain(place.uri)}\` was not changed: it is not a file of this workspace.`);
        const uri = vscode.Uri.parse(place.uri, true);
        const document = await vscode.workspace.openTextDocument(uri);
        if (document.getText(fromRange(place.range)) !== place.text) {
            const name = plain(vscode.workspace.asRelativePath(uri));
            throw new Error(`${name} was not changed: its text has changed since. Select the place and apply again.`);
        }
        await server.putIn({ sessionId, uri: place.uri, range: place.range, text });
        return null;
    },

    async copy(_, { text }) {
        await vscode.env.clipboard.writeText(text);
        return null;
    },

    async openLink(_, { href }) {
        if (!isExternal(href)) throw new Error(`\`${plain(href)}\` was not opened: only http, https and mailto links can be opened.`);
        await vscode.env.openExternal(vscode.Uri.parse(href, true));
        return null;
    },

    async pickFiles() {
        const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
        const uris = await vscode.window.showOpenDialog({
            canSelectMany: true,
            openLabel: "Add to the Prompt",
            ...(folder ? { defaultUri: folder } : {}),
        });
        return { uris: (uris ?? []).map((uri) => uri.toString()) };
    },

    async saveText(_, { fileName, text }) {
        const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
        const name = fileName.replace(/[\\/:*?"<>|\p{Cc}\p{Cf}]+/gu, "-").slice(0, 120) || "kode";
        const place = folder ? { defaultUri: vscode.Uri.joinPath(folder, name) } : {};
        const uri = await vscode.window.showSaveDialog(place);
        if (!uri) return { saved: false };
        await vscode.workspace.fs.writeFile(uri, new TextEncoder().encode(text));
        return { saved: true };
    },

    editorContext: ({ editors }) => editors.context(),

    findSymbols: async ({ editors }, { query }) => ({
        symbols: await findSymbols(query, editors.editor?.document.uri),
    }),

    selection: ({ editors }) => editors.selection() ?? null,

    findCopied: ({ editors }, { text }) => editors.findCopied(text) ?? null,

    async confirm(_, { message, detail, yes }) {
        const options: vscode.MessageOptions = { modal: true };
        if (detail !== undefined) options.detail = detail;
        const answer = await vscode.window.showWarningMessage(plain(message), options, yes);
        return { confirmed: answer === yes };
    },

    async addKey({ keys }) {
        return { added: await keys.add() };
    },

    async findModels({ keys }, { fresh }) {
        return { found: await keys.find(fresh) };
    },

    async useModel({ keys }, found) {
        const profile = await keys.use(found);
        return profile === undefined ? {} : { profile };
    },

    async chooseServer() {
        return { chosen: await chooseServer() };
    },

    async manageTrust() {
        await vscode.commands.executeCommand("workbench.trust.manage");
        return null;
    },

    async openSettings(_, { query }) {
        await openSettings(query);
        return null;
    },

    async openWalkthrough() {
        await vscode.commands.executeCommand("workbench.action.openWalkthrough", "kode-ls.kode#kode.start");
        return null;
    },

    showLogs({ log }) {
        log.show();
        return null;
    },

    async doctor({ doctor }) {
        await doctor.show();
        return null;
    },

    async restart({ server }) {
        await server.restart();
        return null;
    },
};

/** Does an action. */
export async function act<A extends CommonAction>(
    tools: Tools,
    action: A,
    payload: HostActions[A]["payload"],
): Promise<HostActions[A]["result"]> {
    return HANDLERS[action](tools, payload);
}

/** Whether there is such an action. */
export function isCommon(action: string): action is CommonAction {
    return Object.hasOwn(HANDLERS, action);
}
