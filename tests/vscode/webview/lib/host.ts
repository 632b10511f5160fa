// A host for the built page in a real browser: it relays between the page and the real server, as the extension does.
//
// Rule: requests, answers and events pass as they are. The page is served with the document and the policy that the
// extension gives it, so that what the policy forbids does not work in here either. What the editor would do is noted.

import { existsSync, readFileSync } from "node:fs";
import { extname, join, normalize } from "node:path";

import type { Browser, Locator, Page } from "playwright-core";

import { html } from "../../../../editors/vscode/src/logic/page";
import type {
    Action,
    Command,
    FromPage,
    HostState,
    ToPage,
} from "../../../../editors/vscode/src/shared/messages";
import type { Project } from "./project";
import type { RpcError, Server } from "./server";
import { THEMES, type Theme } from "./themes";

const ORIGIN = "http://kode.test";

const TYPES: Record<string, string> = { ".js": "text/javascript", ".css": "text/css", ".woff2": "font/woff2" };

/** A file of the built page: webview.js, webview.css and what they read later; undefined if absent. */
function built(name: string): { contentType: string; body: Buffer } | undefined {
    const folder = process.env["KODE_WEBVIEW_DIST"];
    if (!folder) throw new Error("KODE_WEBVIEW_DIST names no folder: set it to where the page was built");
    const type = TYPES[extname(name)];
    const file = join(folder, normalize(name));
    return type !== undefined && existsSync(file) ? { contentType: type, body: readFileSync(file) } : undefined;
}

export interface HostOptions {
    theme?: Theme;
    width?: number;
    height?: number;
    state?: Partial<HostState>;
    /** Whether the page learns that the list of sessions has changed; the default is true. */
    tellsOfList?: boolean;
}

/** A page with its host. */
export class ChatPage {
    /** The requests to the editor. */
    readonly actions: { action: Action; payload: unknown }[] = [];
    /** The browser's complaints: errors and refusals of the policy. */
    readonly complaints: string[] = [];
    /** The editor's answers other than nothing. */
    readonly answers: Partial<Record<Action, unknown>> = {};
    /** Whether the page has said that it has the keyboard. */
    hasKeyboard = false;
    /** Every message that went in, for figures. */
    sent = 0;
    state: HostState;
    private stopEvents = () => {};
    /** Listeners to messages of the page. */
    private readonly watching = new Set<() => void>();
    private queue: Promise<unknown> = Promise.resolve();

    private constructor(
        readonly page: Page,
        public server: Server,
        private readonly options: HostOptions,
        project: Pick<Project, "workspace">,
    ) {
        this.state = {
            connection: { state: "ready", serverVersion: "test" },
            surface: "view",
            folders: [{ uri: new URL(`file://${project.workspace}`).href, name: "workspace" }],
            unseen: [],
            trusted: true,
            settings: { enterSends: true, includeEditorContext: true, expandThinking: false, fontSize: 0, diffLayout: "auto" },
            theme: options.theme ?? "dark",
            tokenColors: {},
            ...options.state,
        };
        this.follow(server);
    }

    /** Opens the page on a server. */
    static async open(
        browser: Browser,
        project: Pick<Project, "workspace">,
        server: Server,
        options: HostOptions = {},
    ): Promise<ChatPage> {
        const { width = 480, height = 820 } = options;
        const context = await browser.newContext({ viewport: { width, height }, reducedMotion: "reduce" });
        const page = await context.newPage();
        const chat = new ChatPage(page, server, options, project);
        await chat.prepare();
        await chat.load();
        return chat;
    }

    /** Loads the page, as the editor does when the view is shown again. */
    async load(): Promise<void> {
        await this.page.goto(`${ORIGIN}/index.html`);
        await this.page.waitForSelector("textarea.prompt");
    }

    /** Uses another server from now on, as the extension does after a crash. */
    follow(server: Server): void {
        this.stopEvents();
        this.server = server;
        const stopEvents = server.onEvent((params) => this.post({ type: "event", params }));
        const stopList = server.onListChanged(() => {
            if (this.options.tellsOfList !== false) this.post({ type: "listChanged" });
        });
        this.stopEvents = () => {
            stopEvents();
            stopList();
        };
    }

    /** Tells the page how the editor is. */
    async update(change: Partial<HostState>): Promise<void> {
        this.state = { ...this.state, ...change };
        this.post({ type: "host", state: this.state });
        await this.settled();
    }

    /** Passes a command of the user on. */
    async command(command: Command): Promise<void> {
        this.post({ type: "command", ...command });
        await this.settled();
    }

    /** Resolves when the page has taken all messages so far. */
    async settled(): Promise<void> {
        await this.queue;
    }

    /** Waits until the page has had the editor do something; answers what it gave with it the first time. */
    async acted(action: Action): Promise<unknown> {
        const noted = () => this.actions.find((one) => one.action === action);
        await this.told(() => noted() !== undefined, `the action ${action}`);
        return noted()?.payload;
    }

    /** Waits until what the page has told the host is so: its messages come after what one sees of them. */
    told(isSo: () => boolean, what: string): Promise<void> {
        return new Promise((resolve, reject) => {
            const look = () => {
                if (!isSo()) return;
                clearTimeout(timer);
                this.watching.delete(look);
                resolve();
            };
            const timer = setTimeout(() => {
                this.watching.delete(look);
                reject(new Error(`waited in vain for ${what}`));
            }, 20_000);
            this.watching.add(look);
            look();
        });
    }

    /** Types a prompt and sends it. */
    async say(text: string): Promise<void> {
        await this.prompt.fill(text);
        await this.prompt.press("Enter");
    }

    get prompt(): Locator {
        return this.page.locator("textarea.prompt");
    }

    /** The session that is shown. */
    get sessionId(): string {
        const { sessionId } = this.state;
        if (sessionId === undefined) throw new Error("no session is shown");
        return sessionId;
    }

    /** The rows that are on the page, by what one reads in them. */
    rows(): Promise<string[]> {
        return this.page.locator(".row").allInnerTexts();
    }

    /**
     * The same without how long turns took, which after a reload is estimated by the times of their items, and without blank lines,
     * which come with the renderer.
     */
    async rowsWithoutTimes(): Promise<string[]> {
        return (await this.rows()).map((row) => row.replace(/^[\d.]+ m?s(?: · |$)/, "").replace(/\n+/g, "\n"));
    }

    async close(): Promise<void> {
        this.stopEvents();
        await this.page.context().close();
    }

    private async prepare(): Promise<void> {
        const { page } = this;
        page.on("pageerror", (error) => this.complaints.push(String(error)));
        page.on("console", (message) => {
            if (message.type() === "error" || message.type() === "warning")
                this.complaints.push(message.text());
        });
        await page.exposeBinding("hostReceive", (_source, message: FromPage) => void this.receive(message));
        const theme = THEMES[this.options.theme ?? "dark"];
        await page.addInitScript(
            ({ body, colors }) => {
                const scope = window as unknown as Record<string, unknown>;
                scope["acquireVsCodeApi"] = () => ({
                    postMessage: (message: unknown) =>
                        void (scope["hostReceive"] as (message: unknown) => void)(message),
                    // As long as the test's page lives: the editor keeps it longer than one document.
                    getState: () => JSON.parse(sessionStorage.getItem("kept") ?? "null") as unknown,
                    setState: (state: unknown) => {
                        scope["keptState"] = state;
                        sessionStorage.setItem("kept", JSON.stringify(state));
                    },
                });
                document.addEventListener("securitypolicyviolation", (event) =>
                    console.error(
                        `refused by the policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`,
                    ),
                );
                // The editor's defaults for every page show through where ours are silent.
                const editor = new CSSStyleSheet();
                editor.replaceSync(
                    `@layer editor {
                        body { padding: 0 20px; }
                        a, a code { color: var(--vscode-textLink-foreground); }
                        code {
                            padding: 1px 3px;
                            color: var(--vscode-textPreformat-foreground);
                            background: var(--vscode-textPreformat-background);
                        }
                        blockquote { background: var(--vscode-textBlockQuote-background); }
                    }`,
                );
                document.addEventListener("DOMContentLoaded", () => {
                    document.adoptedStyleSheets.push(editor);
                    document.body.classList.add(body);
                    for (const [name, value] of Object.entries(colors)) {
                        document.documentElement.style.setProperty(`--vscode-${name}`, value);
                    }
                });
            },
            { body: theme.body, colors: theme.colors },
        );
        const shell = html({
            nonce: "dGVzdA",
            source: ORIGIN,
            script: "webview.js",
            style: "webview.css",
            title: "Kode",
        });
        await page.route("**/*", (route) => {
            const url = new URL(route.request().url());
            if (url.href === `${ORIGIN}/index.html`) return route.fulfill({ contentType: "text/html; charset=utf-8", body: shell });
            const file = url.origin === ORIGIN ? built(url.pathname) : undefined;
            if (file) return route.fulfill(file);
            if (url.pathname !== "/favicon.ico") this.complaints.push(`asked the network for ${url.href}`);
            return route.abort();
        });
    }

    private async receive(message: FromPage): Promise<void> {
        switch (message.type) {
            case "ready":
                this.post({ type: "host", state: this.state });
                break;
            case "focus":
                this.hasKeyboard = message.focused;
                break;
            case "request":
                this.pass(message.id, this.server.request(message.method, message.params as never));
                break;
            case "host": {
                this.actions.push({ action: message.action, payload: message.payload });
                if (message.action === "showing") {
                    const { sessionId } = message.payload as { sessionId: string | null };
                    const { sessionId: _before, ...state } = this.state;
                    this.state = sessionId === null ? state : { ...state, sessionId };
                }
                if (message.action === "replace") {
                    const { sessionId, place, text } = message.payload;
                    const { uri, range } = place;
                    this.pass(message.id, this.server.request("agent/edits/propose", { sessionId, uri, range, text }));
                    break;
                }
                this.post({
                    type: "response",
                    id: message.id,
                    result: this.answers[message.action] ?? ANSWERS[message.action] ?? null,
                });
                break;
            }
            default:
                break;
        }
        for (const look of [...this.watching]) look();
    }

    /** Hands on how the server answers. */
    private pass(id: number, answer: Promise<unknown>): void {
        answer.then(
            (result) => this.post({ type: "response", id, result }),
            ({ code, message, data }: RpcError) => {
                this.post({ type: "response", id, error: { code, message, ...(data ? { data } : {}) } });
            },
        );
    }

    private post(message: ToPage): void {
        this.sent += 1;
        const passed = this.page.evaluate(
            (data) => void window.dispatchEvent(new MessageEvent("message", { data })),
            message as unknown as { type: string },
        );
        // A page that is being loaded or closed hears nothing.
        this.queue = Promise.allSettled([this.queue, passed]);
    }
}

const ANSWERS: Partial<Record<Action, unknown>> = {
    pickFiles: { uris: [] },
    saveText: { saved: true },
    editorContext: {},
    confirm: { confirmed: true },
};
