// One page of the chat: the webview in the side bar or in an editor tab, and what passes between it and the server.
//
// Rule: requests and events pass as they are. The page can be thrown away and made again at any time: nothing about the
// conversation is kept here but the id of its session. Requests that wait are bounded, and cancelled with the page.

import { randomBytes } from "node:crypto";
import type { SessionId } from "kode-protocol";
import * as vscode from "vscode";
import { html } from "../../logic/page.ts";
import { messageOf } from "../../logic/words.ts";
import {
    METHODS,
    type Command,
    type Failure,
    type FromPage,
    type HostMessage,
    type HostState,
    type MessageId,
    type RequestMessage,
    type ToPage,
} from "../../shared/messages.ts";
import { act, isCommon, type Tools } from "../actions.ts";
import type { Sessions } from "../sessions.ts";

/** The most requests and actions of one page that wait at a time. */
const MOST_PENDING = 200;

/** The most commands that wait for the page to be drawn. */
const MOST_COMMANDS = 20;

const ALLOWED: ReadonlySet<string> = new Set(METHODS);

/** The arguments of a page from its owner. */
export interface PageContext {
    extension: vscode.Uri;
    sessions: Sessions;
    tools: Tools;
    /** The part of the state that is the same for all pages. */
    state(): Omit<HostState, "surface" | "sessionId">;
    /** Opens a session in an editor tab. */
    openInEditor(sessionId: SessionId | undefined): void;
}

/** A page. */
export class Page implements vscode.Disposable {
    private readonly pending = new Map<MessageId, vscode.CancellationTokenSource>();
    private readonly waiting: Command[] = [];
    private readonly subscriptions: vscode.Disposable[] = [];
    private readonly showsChanged = new vscode.EventEmitter<void>();
    private readonly usedNow = new vscode.EventEmitter<void>();
    private readonly focusChanged = new vscode.EventEmitter<boolean>();
    private ready = false;
    private shown: { sessionId: SessionId | undefined; title: string };

    /** It shows another session. */
    readonly onShows = this.showsChanged.event;
    /** The user did something in it. */
    readonly onUsed = this.usedNow.event;
    /** It got the focus of the keyboard, or lost it. */
    readonly onFocus = this.focusChanged.event;

    constructor(
        private readonly webview: vscode.Webview,
        private readonly surface: HostState["surface"],
        private readonly context: PageContext,
        sessionId: SessionId | undefined,
        private readonly visible: () => boolean,
    ) {
        this.shown = { sessionId, title: "" };
        const dist = vscode.Uri.joinPath(context.extension, "dist");
        webview.options = { enableScripts: true, enableForms: false, localResourceRoots: [dist] };
        this.subscriptions.push(
            webview.onDidReceiveMessage((message: FromPage) => void this.receive(message)),
            context.sessions.onEvent((params) => {
                // One that is hidden is drawn again from a snapshot when it is shown.
                if (this.ready && this.visible()) this.post({ type: "event", params });
            }),
            context.tools.server.onListChanged(() => {
                if (this.ready && this.visible()) this.post({ type: "listChanged" });
            }),
        );
        const uri = (name: string) => webview.asWebviewUri(vscode.Uri.joinPath(dist, name)).toString();
        webview.html = html({
            nonce: randomBytes(18).toString("base64url"),
            source: webview.cspSource,
            script: uri("webview.js"),
            style: uri("webview.css"),
            title: "Kode",
        });
    }

    /** The session it shows; absent for a new one. */
    get sessionId(): SessionId | undefined {
        return this.shown.sessionId;
    }

    /** The title of its session. */
    get title(): string {
        return this.shown.title;
    }

    /** Whether the user can see it. */
    get isVisible(): boolean {
        return this.visible();
    }

    /** Tells it how the editor is. */
    update(): void {
        if (!this.ready) return;
        const { sessionId } = this.shown;
        const state: HostState = { ...this.context.state(), surface: this.surface };
        if (sessionId !== undefined) state.sessionId = sessionId;
        this.post({ type: "host", state });
    }

    /** Passes a command of the user on, at the latest when the page is drawn. */
    command(command: Command): void {
        if (this.ready) this.post({ type: "command", ...command });
        else if (this.waiting.length < MOST_COMMANDS) this.waiting.push(command);
    }

    /** The webview is empty again: it is hidden and was not kept. */
    hidden(): void {
        this.ready = false;
        this.focusChanged.fire(false);
        this.cancelAll();
    }

    dispose(): void {
        this.cancelAll();
        for (const subscription of this.subscriptions) subscription.dispose();
        this.showsChanged.dispose();
        this.usedNow.dispose();
        this.focusChanged.dispose();
    }

    private post(message: ToPage): void {
        void this.webview.postMessage(message);
    }

    private async receive(message: FromPage): Promise<void> {
        switch (message.type) {
            case "ready":
                this.cancelAll();
                this.ready = true;
                this.update();
                for (const command of this.waiting.splice(0)) this.command(command);
                break;
            case "focus":
                this.focusChanged.fire(message.focused === true);
                break;
            case "request":
                await this.answer(message.id, (token) => this.request(message, token));
                break;
            case "cancel":
                this.pending.get(message.id)?.cancel();
                break;
            case "host":
                this.usedNow.fire();
                await this.answer(message.id, () => this.act(message));
                break;
            default:
            // A page of another version knows more; it must live without.
        }
    }

    private async answer(id: MessageId, work: (token: vscode.CancellationToken) => Promise<unknown>): Promise<void> {
        if (this.pending.size >= MOST_PENDING) {
            const message = `More than ${MOST_PENDING} requests of this view wait; the server does not keep up.`;
            this.post({ type: "response", id, error: { code: 0, message } });
            return;
        }
        const source = new vscode.CancellationTokenSource();
        this.pending.set(id, source);
        try {
            const result = await work(source.token);
            this.post({ type: "response", id, result: result ?? null });
        } catch (error) {
            this.post({ type: "response", id, error: failure(error) });
        } finally {
            if (this.pending.get(id) === source) this.pending.delete(id);
            source.dispose();
        }
    }

    private async request({ method, params }: RequestMessage, token: vscode.CancellationToken): Promise<unknown> {
        if (!ALLOWED.has(method)) throw new Error(`A page may not request \`${String(method)}\`.`);
        return this.context.sessions.request(method, params, token);
    }

    private async act(message: HostMessage): Promise<unknown> {
        if (message.action === "showing") {
            this.shows(message.payload.sessionId ?? undefined, message.payload.title);
            return null;
        }
        if (message.action === "openInEditor") {
            this.context.openInEditor(message.payload.sessionId);
            return null;
        }
        if (!isCommon(message.action)) throw new Error(`There is no action \`${String(message.action)}\`.`);
        return act(this.context.tools, message.action, message.payload as never);
    }

    private shows(sessionId: SessionId | undefined, title: string): void {
        this.shown = { sessionId, title };
        if (sessionId !== undefined) this.context.sessions.seen(sessionId);
        this.showsChanged.fire();
    }

    private cancelAll(): void {
        for (const source of this.pending.values()) source.cancel();
        this.pending.clear();
    }
}

function failure(error: unknown): Failure {
    const { code, data } = error as { code?: unknown; data?: Failure["data"] };
    const known = { code: typeof code === "number" ? code : 0, message: messageOf(error) };
    return data === undefined ? known : { ...known, data };
}
