// All pages of the chat: the view in a side bar and the tabs in the editor area; which of them the user used last, and
// which session commands mean.
//
// Rule: pages are made when the editor shows them and not kept while they are hidden. Only a command of the user shows a
// page or gives it the focus.

import type { SessionId } from "kode-protocol";
import * as vscode from "vscode";
import { plain } from "../../logic/words.ts";
import type { Command, HostState } from "../../shared/messages.ts";
import type { Tools } from "../actions.ts";
import type { Sessions } from "../sessions.ts";
import { viewSettings } from "../settings.ts";
import { Page, type PageContext } from "./page.ts";

/** The editor makes a command of each view, `<id>.focus`; ours has another name. */
const VIEW = "kode.chatView";
const PANEL = "kode.chatEditor";

/** Where the session of the view is kept for the next window. */
const KEPT = "kode.viewSession";

/** No editor shows a zero; older ones continue showing a badge in whose place there is `undefined`. */
const NO_BADGE: vscode.ViewBadge = { value: 0, tooltip: "" };

/** The stored state of a tab. */
interface PanelState {
    sessionId?: SessionId;
}

/** The chat of this window. */
export class Chat implements vscode.WebviewViewProvider, vscode.WebviewPanelSerializer<PanelState>, vscode.Disposable {
    private readonly pages = new Set<Page>();
    private readonly panels = new Map<Page, vscode.WebviewPanel>();
    private readonly subscriptions: vscode.Disposable[];
    private readonly shownChanged = new vscode.EventEmitter<void>();
    private readonly pageContext: PageContext;
    private view: { webview: vscode.WebviewView; page: Page } | undefined;
    /** Commands for the view that came before it was there. */
    private early: Command[] = [];
    private used: Page | undefined;
    private inTab = false;
    private focused: Page | undefined;
    private badge = NO_BADGE;
    private unseen: SessionId[] = [];

    /** A page came, went, or shows another session. */
    readonly onShown = this.shownChanged.event;

    constructor(
        private readonly context: vscode.ExtensionContext,
        sessions: Sessions,
        private readonly tools: Tools,
    ) {
        this.pageContext = {
            extension: context.extensionUri,
            sessions,
            tools,
            state: () => this.state(),
            openInEditor: (sessionId) => this.openInEditor(sessionId),
        };
        const update = () => this.update();
        this.subscriptions = [
            vscode.window.registerWebviewViewProvider(VIEW, this, {
                webviewOptions: { retainContextWhenHidden: false },
            }),
            vscode.window.registerWebviewPanelSerializer(PANEL, this),
            sessions.onEvent(({ sessionId, event }) => {
                const isShown = [...this.pages].some((page) => page.isVisible && page.sessionId === sessionId);
                if (event.type === "done" && isShown) sessions.seen(sessionId);
            }),
            sessions.onStep(() => {
                const unseen = sessions.attention.unseen();
                if (unseen.join() === this.unseen.join()) return;
                this.unseen = unseen;
                update();
            }),
            tools.server.onConnection(update),
            tools.server.onAsked((input) => void this.show({ name: "ask", input })),
            tools.editors.onChange(update),
            tools.colors.onChange(update),
            vscode.workspace.onDidChangeWorkspaceFolders(update),
            vscode.workspace.onDidGrantWorkspaceTrust(update),
            vscode.window.onDidChangeActiveColorTheme(update),
            vscode.workspace.onDidChangeConfiguration((change) => {
                if (change.affectsConfiguration("kode.chat")) update();
            }),
        ];
    }

    /** The session that commands mean: that of the page used last, or of the view. */
    get sessionId(): SessionId | undefined {
        return (this.used ?? this.view?.page)?.sessionId ?? this.context.workspaceState.get<SessionId>(KEPT);
    }

    /** Whether the user can see a page. */
    get isVisible(): boolean {
        return [...this.pages].some((page) => page.isVisible);
    }

    /** Shows the page used last, gives it the focus and passes a command on. */
    async show(command: Command): Promise<void> {
        const panel = this.used === this.view?.page ? undefined : this.used;
        if (panel) {
            this.panels.get(panel)?.reveal();
            panel.command(command);
            return;
        }
        if (this.view) this.view.page.command(command);
        else this.early.push(command);
        await vscode.commands.executeCommand(`${VIEW}.focus`);
    }

    /** Opens a session in an editor tab; a new one without an id. */
    openInEditor(sessionId: SessionId | undefined): void {
        const panel = vscode.window.createWebviewPanel(PANEL, "Kode", vscode.ViewColumn.Active, {
            retainContextWhenHidden: false,
        });
        this.adopt(panel, sessionId);
    }

    /** Says at the view how much waits for the user. */
    setBadge(waiting: number): void {
        this.badge = waiting === 0 ? NO_BADGE : { value: waiting, tooltip: `${waiting} waiting for you` };
        if (this.view) this.view.webview.badge = this.badge;
    }

    resolveWebviewView(webview: vscode.WebviewView): void {
        const kept = this.context.workspaceState.get<SessionId>(KEPT);
        const page = this.open(webview.webview, "view", kept, () => webview.visible);
        this.view = { webview, page };
        webview.badge = this.badge;
        for (const command of this.early.splice(0)) page.command(command);
        page.onShows(() => {
            webview.description = plain(page.title, 60);
            void this.context.workspaceState.update(KEPT, page.sessionId);
        });
        webview.onDidChangeVisibility(() => {
            if (!webview.visible) page.hidden();
        });
        webview.onDidDispose(() => {
            this.close(page);
            if (this.view?.page === page) this.view = undefined;
        });
    }

    async deserializeWebviewPanel(panel: vscode.WebviewPanel, state: PanelState | undefined): Promise<void> {
        this.adopt(panel, state?.sessionId);
    }

    dispose(): void {
        for (const subscription of this.subscriptions) subscription.dispose();
        for (const page of this.pages) page.dispose();
        this.pages.clear();
        this.shownChanged.dispose();
    }

    private adopt(panel: vscode.WebviewPanel, sessionId: SessionId | undefined): void {
        const icon = (theme: string) => vscode.Uri.joinPath(this.context.extensionUri, "icons", `kode-${theme}.svg`);
        panel.iconPath = { light: icon("light"), dark: icon("dark") };
        const page = this.open(panel.webview, "editor", sessionId, () => panel.visible);
        this.panels.set(page, panel);
        this.use(page);
        page.onShows(() => {
            panel.title = plain(page.title, 60) || "Kode";
        });
        panel.onDidChangeViewState(() => {
            if (panel.active) this.use(page);
            if (!panel.visible) page.hidden();
        });
        panel.onDidDispose(() => {
            this.panels.delete(page);
            this.close(page);
        });
    }

    private open(
        webview: vscode.Webview,
        surface: HostState["surface"],
        sessionId: SessionId | undefined,
        visible: () => boolean,
    ): Page {
        const page = new Page(webview, surface, this.pageContext, sessionId, visible);
        this.pages.add(page);
        page.onUsed(() => this.use(page));
        page.onFocus((focused) => {
            if (focused) this.use(page);
            this.focus(page, focused);
        });
        page.onShows(() => this.shownChanged.fire());
        this.shownChanged.fire();
        return page;
    }

    /** Keys of ours need to know which page they lead to. */
    private use(page: Page | undefined): void {
        this.used = page;
        const inTab = page !== undefined && this.panels.has(page);
        if (inTab === this.inTab) return;
        this.inTab = inTab;
        void vscode.commands.executeCommand("setContext", "kode.chatInTab", inTab);
    }

    /** The editor does not say whether a webview of a view has the keyboard: keys of ours need to know. */
    private focus(page: Page, focused: boolean): void {
        if (!focused && this.focused !== page) return;
        this.focused = focused ? page : undefined;
        void vscode.commands.executeCommand("setContext", "kode.chatFocused", focused);
    }

    private close(page: Page): void {
        this.focus(page, false);
        page.dispose();
        this.pages.delete(page);
        if (this.used === page) this.use(undefined);
        this.shownChanged.fire();
    }

    private update(): void {
        for (const page of this.pages) page.update();
    }

    private state(): Omit<HostState, "surface" | "sessionId"> {
        const editor = this.tools.editors.active;
        return {
            connection: this.tools.server.connection,
            folders: (vscode.workspace.workspaceFolders ?? []).map(({ uri, name }) => ({ uri: uri.toString(), name })),
            unseen: this.unseen,
            trusted: vscode.workspace.isTrusted,
            settings: viewSettings(),
            theme: theme(),
            tokenColors: this.tools.colors.colors,
            ...(editor ? { editor } : {}),
        };
    }
}

function theme(): HostState["theme"] {
    switch (vscode.window.activeColorTheme.kind) {
        case vscode.ColorThemeKind.Light:
            return "light";
        case vscode.ColorThemeKind.Dark:
            return "dark";
        case vscode.ColorThemeKind.HighContrast:
            return "highContrast";
        case vscode.ColorThemeKind.HighContrastLight:
            return "highContrastLight";
    }
}
