// The status bar item, the badge of the view and the context keys: how the server and the sessions are, in one look.
//
// Rule: text and icon say it, color only underlines it; clicking leads to what waits. Drawn from connection, attention and
// ledger, and only when something of it is another one.

import * as vscode from "vscode";
import { count, plain } from "../logic/words.ts";
import type { Chat } from "./chat/chat.ts";
import { keyOf } from "./convert.ts";
import { activeFile } from "./review/decide.ts";
import { isReview } from "./review/diffs.ts";
import type { Ledger } from "./review/ledger.ts";
import type { Server } from "./server.ts";
import type { Sessions } from "./sessions.ts";

/** The editor ticks a step for a key that changes after the walkthrough was drawn, and for no earlier one. */
const TICK_MS = 700;

/** The text of the item. */
interface Look {
    text: string;
    tooltip: string;
    command: string;
    background?: "warning" | "error";
}

/** Shows how things are. */
export class Status implements vscode.Disposable {
    private readonly item = vscode.window.createStatusBarItem("kode.status", vscode.StatusBarAlignment.Left, 10);
    private readonly keys = new Map<string, unknown>();
    private readonly subscriptions: vscode.Disposable[];
    private walkthrough: NodeJS.Timeout | undefined;
    private walkthroughShown = false;

    constructor(
        private readonly server: Server,
        private readonly sessions: Sessions,
        private readonly ledger: Ledger,
        private readonly chat: Chat,
    ) {
        this.item.name = "Kode";
        const draw = () => this.draw();
        this.subscriptions = [
            this.item,
            server.onConnection(draw),
            sessions.onStep(draw),
            ledger.onChange(draw),
            chat.onShown(draw),
            vscode.window.onDidChangeActiveTextEditor(draw),
            vscode.window.tabGroups.onDidChangeTabs(({ opened }) => {
                draw();
                // Not a document and no webview: it may be the walkthrough.
                if (opened.some(({ input }) => input === undefined)) this.walkthrough ??= setTimeout(() => this.tick(), TICK_MS);
            }),
            vscode.window.tabGroups.onDidChangeTabGroups(draw),
        ];
        this.draw();
        this.item.show();
    }

    dispose(): void {
        clearTimeout(this.walkthrough);
        for (const subscription of this.subscriptions) subscription.dispose();
    }

    private draw(): void {
        const { attention } = this.sessions;
        const waiting = attention.waiting().length;
        const look = this.look(waiting);
        this.item.text = look.text;
        this.item.tooltip = look.tooltip;
        this.item.command = look.command;
        this.item.accessibilityInformation = { label: look.tooltip };
        this.item.backgroundColor = look.background && new vscode.ThemeColor(`statusBarItem.${look.background}Background`);
        this.chat.setBadge(waiting);

        const shown = this.chat.sessionId;
        const session = shown === undefined ? undefined : attention.sessions.get(shown);
        const active = activeFile();
        const changed = new Set(this.ledger.all().map(({ file }) => keyOf(file.uri)));
        this.key("kode.connection", this.server.connection.state);
        this.key("kode.started", this.walkthroughShown && this.server.connection.state === "ready");
        this.key("kode.working", session !== undefined && session.state !== "READY");
        this.key("kode.waiting", waiting > 0);
        this.key("kode.hasChanges", changed.size > 0);
        this.key("kode.fileHasChanges", active !== undefined && changed.has(keyOf(active)));
        this.key("kode.inReview", isReview(vscode.window.tabGroups.activeTabGroup.activeTab));
    }

    private key(name: string, value: unknown): void {
        if (this.keys.get(name) === value) return;
        this.keys.set(name, value);
        void vscode.commands.executeCommand("setContext", name, value);
    }

    /** The first step of the walkthrough is done when the server runs. */
    private tick(): void {
        this.walkthroughShown = true;
        this.draw();
    }

    private look(waiting: number): Look {
        const { connection } = this.server;
        switch (connection.state) {
            case "starting":
                return { text: "$(loading~spin) Kode", tooltip: "Kode: Starting the server…", command: "kode.server.showLogs" };
            case "crashed":
                return {
                    text: "$(warning) Kode",
                    tooltip: plain(`Kode: ${connection.reason} Restarting…`),
                    command: "kode.server.showLogs",
                    background: "warning",
                };
            case "stopped":
                return {
                    text: "$(error) Kode",
                    tooltip: plain(`Kode: ${connection.reason} ${connection.hint}`),
                    command: "kode.chat.focus",
                    background: "error",
                };
            case "ready":
                return this.ready(waiting);
        }
    }

    private ready(waiting: number): Look {
        switch (this.sessions.attention.mood()) {
            case "waiting":
                return {
                    text: `$(bell-dot) Kode: ${waiting} waiting`,
                    tooltip: `Kode: ${count(waiting, "question")} for you`,
                    command: "kode.chat.focusWaiting",
                    background: "warning",
                };
            case "error":
                return {
                    text: "$(error) Kode",
                    tooltip: "Kode: The last turn failed. See the chat for the error.",
                    command: "kode.chat.focus",
                    background: "error",
                };
            case "working":
                return { text: "$(loading~spin) Kode", tooltip: "Kode is working", command: "kode.chat.focus" };
            case "idle":
                return { text: "$(comment-discussion) Kode", tooltip: "Kode is ready", command: "kode.chat.focus" };
        }
    }
}
