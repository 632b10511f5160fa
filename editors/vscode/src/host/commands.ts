// The commands of the extension: a table from name to one small function each.
//
// Rule: every command can be run from the palette or a key with nothing else given. A command that cannot do what it
// should says why. Names have two parts behind `kode.`; those with one are the server's own.

import type { SessionId } from "kode-protocol";
import * as vscode from "vscode";
import type { LineChange } from "../logic/hunks.ts";
import { count, messageOf, told } from "../logic/words.ts";
import type { Chat } from "./chat/chat.ts";
import type { EditorTracker } from "./activeEditor.ts";
import type { Doctor } from "./doctor.ts";
import type { Keys } from "./keys.ts";
import type { Later } from "./later.ts";
import type { Notifications } from "./notifications.ts";
import type { ChangedFile } from "./review/changes.ts";
import type { Comments } from "./review/comments.ts";
import type { Decisions } from "./review/decide.ts";
import type { Diffs } from "./review/diffs.ts";
import type { Entry } from "./review/ledger.ts";
import type { InlineChat } from "./review/inlineChat.ts";
import type { Proposals } from "./review/proposals.ts";
import type { Since } from "./review/since.ts";
import type { Server } from "./server.ts";
import type { Sessions } from "./sessions.ts";
import { chooseSandbox } from "./sandbox.ts";
import { chooseServer, openSettings } from "./settings.ts";
import type { Tools } from "./tools.ts";

/** The context of commands. */
export interface Kode {
    server: Server;
    sessions: Sessions;
    chat: Chat;
    editors: EditorTracker;
    comments: Comments;
    inline: Later<InlineChat>;
    since: Since;
    diffs: Diffs;
    proposals: Proposals;
    decisions: Decisions;
    notifications: Notifications;
    doctor: Doctor;
    keys: Keys;
    tools: Tools;
    log: vscode.LogOutputChannel;
}

// biome-ignore lint/suspicious/noExplicitAny: the editor gives commands whatever their caller has; each says what it expects
type Handler = (kode: Kode, ...args: any[]) => unknown;

const COMMANDS: Record<string, Handler> = {
    "kode.chat.focus": ({ chat }) => chat.show({ name: "focusInput" }),
    "kode.chat.addSelection": async ({ chat, editors }) => {
        const part = editors.selection();
        if (!part) throw new Error("Nothing is selected. Select something in an editor first.");
        await chat.show({ name: "addSelection", part });
    },
    "kode.chat.addFile": async ({ chat, editors }, uri?: vscode.Uri, selected?: vscode.Uri[]) => {
        const uris = selected ?? (uri ? [uri] : editors.editor ? [editors.editor.document.uri] : []);
        if (uris.length === 0) throw new Error("No file was added: none is open. Open a file first.");
        await chat.show({ name: "addFiles", uris: uris.map((each) => each.toString()) });
    },
    "kode.chat.openInEditor": ({ chat }) => chat.openInEditor(chat.sessionId),
    "kode.chat.focusWaiting": async ({ chat }, sessionId?: SessionId) => {
        if (sessionId !== undefined && sessionId !== chat.sessionId) await chat.show({ name: "showSession", sessionId });
        await chat.show({ name: "focusWaiting" });
    },
    "kode.chat.focusLastMessage": ({ chat }) => chat.show({ name: "focusLastMessage" }),

    "kode.session.new": ({ chat }) => chat.show({ name: "newSession" }),
    "kode.session.newInWorktree": ({ chat }) => chat.show({ name: "newSession", worktree: true }),
    "kode.session.newInEditor": ({ chat }) => chat.openInEditor(undefined),
    "kode.session.list": ({ chat }) => chat.show({ name: "showSessions" }),
    "kode.session.mode": ({ chat }) => chat.show({ name: "chooseMode" }),
    "kode.session.sandbox": ({ sessions, chat }) => chooseSandbox(sessions, chat),
    "kode.session.model": ({ chat }) => chat.show({ name: "chooseModel" }),
    "kode.session.checkpoints": ({ chat }) => chat.show({ name: "showCheckpoints" }),
    "kode.session.stop": async ({ sessions, chat }) => {
        const working = [...sessions.attention.sessions.values()].filter(({ state }) => state !== "READY");
        // The one that is shown; without one, the only one that runs.
        const shown = working.find(({ sessionId }) => sessionId === chat.sessionId);
        const session = shown ?? (working.length === 1 ? working[0] : undefined);
        if (!session) throw new Error(working.length === 0 ? "Nothing is running." : "Open the session to stop first.");
        await sessions.request("agent/turn/cancel", { sessionId: session.sessionId });
    },

    "kode.permission.rules": ({ chat }) => chat.show({ name: "showRules" }),
    "kode.permission.allowOnce": ({ notifications }, sessionId: unknown, permissionId: unknown) => {
        if (typeof sessionId === "string" && typeof permissionId === "string") {
            return notifications.allowOnce(sessionId, permissionId);
        }
        return undefined;
    },

    "kode.review.open": ({ diffs, chat, sessions }) => {
        const shown = chat.sessionId;
        return diffs.openAll(shown !== undefined && sessions.attention.sessions.has(shown) ? shown : undefined);
    },
    "kode.review.openSince": ({ since, chat }) => since.open(chat.sessionId),
    "kode.review.openFileDiff": ({ diffs }, entry?: Entry) =>
        entry && diffs.open(entry.sessionId, vscode.Uri.parse(entry.file.uri)),
    "kode.review.next": ({ decisions }) => decisions.go("next"),
    "kode.review.previous": ({ decisions }) => decisions.go("previous"),
    "kode.review.keep": ({ decisions }) => decisions.atCursor("keep"),
    "kode.review.undo": ({ decisions }) => decisions.atCursor("undo"),
    "kode.review.keepChange": ({ decisions }, uri: vscode.Uri, changes: LineChange[], index: number) =>
        decisions.change("keep", uri, changes, index),
    "kode.review.undoChange": ({ decisions }, uri: vscode.Uri, changes: LineChange[], index: number) =>
        decisions.change("undo", uri, changes, index),
    "kode.review.decideHunk": ({ decisions }, decision: unknown, ...[sessionId, uri, hunkId]: unknown[]) => {
        const isDecision = decision === "keep" || decision === "undo";
        if (!isDecision || typeof sessionId !== "string" || typeof uri !== "string" || typeof hunkId !== "string") return undefined;
        return decisions.hunk(decision, sessionId, uri, hunkId);
    },
    "kode.review.openDiffOf": ({ diffs }, sessionId: unknown, uri: unknown) =>
        typeof sessionId === "string" && typeof uri === "string" ? diffs.open(sessionId, vscode.Uri.parse(uri)) : undefined,
    "kode.review.keepFile": ({ decisions }, ...files: unknown[]) => decisions.file("keep", files.filter(isChangedFile)),
    "kode.review.undoFile": ({ decisions }, ...files: unknown[]) => decisions.file("undo", files.filter(isChangedFile)),
    "kode.review.keepAll": ({ decisions }) => decisions.everything("keep"),
    "kode.review.undoAll": ({ decisions }) => decisions.everything("undo"),
    "kode.review.allow": ({ proposals }, uri?: vscode.Uri) => proposals.answer("allow", uri),
    "kode.review.deny": ({ proposals }, uri?: vscode.Uri) => proposals.answer("deny", uri),
    "kode.review.takeBack": ({ decisions, chat }) => decisions.takeBack(chat.sessionId),

    "kode.inline.ask": async ({ inline }) => (await inline.get()).begin(),
    "kode.inline.send": async ({ inline }, reply: vscode.CommentReply) => (await inline.get()).send(reply),
    "kode.inline.accept": async ({ inline }, which: unknown) => (await inline.get()).accept(which),
    "kode.inline.discard": async ({ inline }, which: unknown) => (await inline.get()).discard(which),
    "kode.inline.openChat": async ({ inline }, which: unknown) => (await inline.get()).openChat(which),

    "kode.comment.begin": ({ comments }, uri: unknown, first: unknown, end: unknown) => {
        if (typeof uri === "string" && typeof first === "number" && typeof end === "number") comments.begin(uri, first, end);
    },
    "kode.comment.add": ({ comments }, reply: vscode.CommentReply) => comments.add(reply),
    "kode.comment.remove": ({ comments }, thread: vscode.CommentThread) => comments.remove(thread),
    "kode.comment.send": async ({ comments }) => {
        const sent = await comments.send();
        vscode.window.setStatusBarMessage(`Kode: ${count(sent, "comment")} sent.`, 5_000);
    },

    "kode.key.add": ({ keys }) => keys.add(),
    "kode.key.manage": ({ keys }) => keys.manage(),

    "kode.tools.choose": ({ tools }) => tools.choose(),

    "kode.server.doctor": ({ doctor }) => doctor.show(),
    "kode.server.showLogs": ({ log }) => log.show(),
    "kode.server.restart": ({ server }) => server.restart(),
    "kode.server.trust": () => vscode.commands.executeCommand("workbench.trust.manage"),
    "kode.server.choose": () => chooseServer(),
    "kode.server.settings": () => openSettings(),
    "kode.server.walkthrough": () =>
        vscode.commands.executeCommand("workbench.action.openWalkthrough", "kode-ls.kode#kode.start"),
};

/** Registers all commands. */
export function registerCommands(kode: Kode): vscode.Disposable {
    const registrations = Object.entries(COMMANDS).map(([name, handler]) =>
        vscode.commands.registerCommand(name, async (...args: unknown[]) => {
            try {
                await handler(kode, ...args);
            } catch (error) {
                kode.log.warn(`${name}: ${messageOf(error)}`);
                void vscode.window.showErrorMessage(`Kode: ${told(error)}`);
            }
        }),
    );
    return vscode.Disposable.from(...registrations);
}

function isChangedFile(value: unknown): value is ChangedFile {
    return typeof value === "object" && value !== null && "entry" in value;
}
