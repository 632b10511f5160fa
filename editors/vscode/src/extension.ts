// Where the extension begins and ends: makes its parts, and starts the server beside the editor's own start.
//
// Rule: activation waits for nothing; what fails later is reported by the connection. Parts know each other only
// through what they are given here.

import * as vscode from "vscode";
import { EditorTracker } from "./host/activeEditor.ts";
import { Chat } from "./host/chat/chat.ts";
import { registerCommands } from "./host/commands.ts";
import { Doctor } from "./host/doctor.ts";
import { Keys } from "./host/keys.ts";
import { Later } from "./host/later.ts";
import { Notifications } from "./host/notifications.ts";
import { Changes } from "./host/review/changes.ts";
import { Comments } from "./host/review/comments.ts";
import { Decisions } from "./host/review/decide.ts";
import { Decorations } from "./host/review/decorations.ts";
import { Diffs } from "./host/review/diffs.ts";
import { InlineChanges } from "./host/review/inline.ts";
import { Ledger } from "./host/review/ledger.ts";
import { Proposals } from "./host/review/proposals.ts";
import { Since } from "./host/review/since.ts";
import { Server } from "./host/server.ts";
import { Sessions } from "./host/sessions.ts";
import { NEEDS_RESTART } from "./host/settings.ts";
import { Status } from "./host/status.ts";
import { Texts } from "./host/texts.ts";
import { CodeColors } from "./host/theme.ts";
import { Tools, type ExtensionTool } from "./host/tools.ts";
import { upgrades } from "./host/upgrade.ts";
import { messageOf } from "./logic/words.ts";

let server: Server | undefined;

/** The interface for other extensions: `await vscode.extensions.getExtension("kode-ls.kode").activate()`. */
export interface ExtensionApi {
    /** Offers tools of an extension to the model, until the result is disposed of; they replace those of the same provider. */
    registerTools(provider: string, tools: readonly ExtensionTool[]): vscode.Disposable;
}

/** The editor wants us. */
export function activate(context: vscode.ExtensionContext): ExtensionApi {
    const log = vscode.window.createOutputChannel("Kode", { log: true });
    const own = new Server(context.extensionPath, log);
    server = own;
    const sessions = new Sessions(server, context.workspaceState, log);
    const ledger = new Ledger(server, sessions, log);
    const proposals = new Proposals(ledger, sessions);
    const diffs = new Diffs(ledger, proposals);
    const decisions = new Decisions(ledger, sessions);
    const since = new Since(ledger);
    const comments = new Comments(ledger, sessions, since, context.workspaceState);
    const editors = new EditorTracker();
    const texts = new Texts();
    const { version } = context.extension.packageJSON as { version: string };
    const doctor = new Doctor(server, texts, version);
    const tools = new Tools(server, log);
    const keys = new Keys(context.secrets, server, log);
    const colors = new CodeColors(log);
    const terminals = new Later(async () => new (await import("./host/taskTerminal.ts")).TaskTerminals(own));
    const chat = new Chat(context, sessions, { editors, texts, diffs, keys, doctor, colors, terminals, server, log });
    const inline = new Later(async () => {
        const { InlineChat } = await import("./host/review/inlineChat.ts");
        return new InlineChat(ledger, sessions, (sessionId) => chat.show({ name: "showSession", sessionId }));
    });
    const notifications = new Notifications(sessions, chat);
    context.subscriptions.push(
        vscode.window.onDidChangeWindowState(() => void server?.reportFocus()),
        log,
        sessions,
        ledger,
        decisions,
        proposals,
        comments,
        inline,
        since,
        new Changes(ledger),
        new Decorations(ledger),
        new InlineChanges(ledger, context.extensionUri),
        editors,
        texts,
        tools,
        colors,
        terminals,
        chat,
        notifications,
        new Status(server, sessions, ledger, chat),
        registerCommands({ server, sessions, chat, editors, comments, inline, since, diffs, proposals, decisions, notifications, doctor, keys, tools, log }),
        keepUnfinished(sessions, ledger),
        restartWhenNeeded(server, log),
        upgrades(server, version, context.globalState, log),
    );
    // The process is made once the editor can continue.
    const starting = setImmediate(() => void server?.start());
    context.subscriptions.push({ dispose: () => clearImmediate(starting) });
    return { registerTools: (provider, offered) => tools.register(provider, offered) };
}

/** The editor is about to end. */
export async function deactivate(): Promise<void> {
    await server?.dispose();
}

/** Keeps the sessions with something to decide on, so that the next window has their changes without the chat being opened. */
function keepUnfinished(sessions: Sessions, ledger: Ledger): vscode.Disposable {
    let kept = "";
    const keep = () => {
        const ids = [...new Set(ledger.all().map(({ sessionId }) => sessionId))];
        const busy = [...sessions.attention.sessions.values()].map(({ sessionId, state }) => `${sessionId}${state}`);
        const now = [...ids, ...busy].join(" ");
        if (now === kept) return;
        kept = now;
        void sessions.keep(ids);
    };
    return vscode.Disposable.from(ledger.onChange(keep), sessions.onStep(keep));
}

/** Settings that the running server accepts, and those that need a restart. */
function restartWhenNeeded(server: Server, log: vscode.LogOutputChannel): vscode.Disposable {
    return vscode.Disposable.from(
        vscode.workspace.onDidGrantWorkspaceTrust(async () => {
            try {
                await server.trustWorkspace();
            } catch (error) {
                log.warn(`the trust in the workspace did not reach the server, restarting it: ${messageOf(error)}`);
                await server.restart();
            }
        }),
        vscode.workspace.onDidChangeConfiguration(async (change) => {
            if (!NEEDS_RESTART.some((section) => change.affectsConfiguration(section))) return;
            const running = server.connection.state === "ready";
            const again = "Restart Server";
            const text = "Kode: Restart the server to apply this setting.";
            // One that does not run has nothing to lose.
            if (!running || (await vscode.window.showInformationMessage(text, again)) === again) await server.restart();
        }),
    );
}
