// The page of the chat: draws the view and connects it with the extension host.
//
// Rule: the page keeps nothing that it cannot get again. It can be thrown away at any moment and be built again from
// the host's state and the server's snapshot.

import "./style/index.css";

import { render } from "preact";

import type { SessionId } from "kode-protocol";

import type { Command, FromPage, HostState, ToPage } from "../shared/messages.ts";
import { App } from "./app/app.ts";
import { AppContext } from "./app/context.ts";
import { openList, refreshList, tellList } from "./app/list.ts";
import { addPart, type KeptPrompt, put, restore, saveDraft, unsaved } from "./app/drafts.ts";
import { loadModels } from "./app/models.ts";
import { ask, handInWaiting } from "./app/prompt.ts";
import { ensureSession } from "./app/sessionStore.ts";
import { loaded, loadSession, showNewSession, showSession, takeEvent } from "./app/sessions.ts";
import { redraw } from "./markdown/drawn.ts";
import { Markdown } from "./markdown/Markdown.tsx";
import { Boundary } from "./panels/Boundary.tsx";
import { View } from "./View.tsx";

/** The page state that the editor keeps: the session, for a tab that is made again, and words that no server has yet. */
interface Kept {
    sessionId?: SessionId;
    prompt?: KeptPrompt;
}

declare function acquireVsCodeApi(): {
    postMessage(message: FromPage): void;
    getState(): Kept | undefined;
    setState(state: Kept): void;
};

const vscode = acquireVsCodeApi();
const app = new App((message) => vscode.postMessage(message));

function takeState(state: HostState): void {
    const before = app.state.host;
    app.set({ host: state });
    const size = state.settings.fontSize;
    if (size > 0) document.documentElement.style.setProperty("--kode-font-size", `${size}px`);
    else document.documentElement.style.removeProperty("--kode-font-size");
    colorCode(state.tokenColors);
    if (before && before.theme !== state.theme) redraw();
    if (!before) {
        // It is that session's page from the start, also while there is no server to load it from.
        const active = state.sessionId;
        app.set({ editorContext: state.settings.includeEditorContext, active, loading: active !== undefined });
    }
    if (state.connection.state !== "ready" || before?.connection.state === "ready") return;
    void loadModels(app);
    const { active } = app.state;
    const there = active === undefined ? Promise.resolve() : loadSession(app, active);
    void there.then(() => handInWaiting(app));
}

/** The colors of code are those of the editor's theme; without them, those of the style sheet. */
function colorCode(colors: HostState["tokenColors"]): void {
    const { style } = document.documentElement;
    for (const name of [...style]) if (name.startsWith("--kode-token-")) style.removeProperty(name);
    for (const [kind, color] of Object.entries(colors)) style.setProperty(`--kode-token-${kind}`, color);
}

/** A user who comes here by the keyboard can type at once, without the host. */
function typeHere(): void {
    app.host.focused(true);
    if (document.activeElement === document.body) app.focus.get("prompt")?.();
}

function takeCommand(command: Command): void {
    switch (command.name) {
        case "focusInput":
            app.focus.get("prompt")?.();
            break;
        case "newSession":
            showNewSession(app);
            if (command.worktree) void app.attempt(() => ensureSession(app, { worktree: true }));
            break;
        case "showSession":
            void showSession(app, command.sessionId);
            break;
        case "showSessions":
            openList(app);
            break;
        case "addSelection":
            addPart(app, { type: "selection", ...command.part });
            app.focus.get("prompt")?.();
            break;
        case "addFiles":
            for (const uri of command.uris) addPart(app, { type: "mention", uri });
            app.focus.get("prompt")?.();
            break;
        case "insertText":
            put(app, { text: app.state.prompt.text + command.text });
            app.focus.get("prompt")?.();
            break;
        case "ask":
            void ask(app, command.input);
            break;
        case "focusWaiting":
            void loaded(app).then(() => app.focus.get("waiting")?.());
            break;
        case "chooseMode":
            app.focus.get("mode")?.();
            break;
        case "chooseModel":
            app.focus.get("model")?.();
            break;
        case "showRules":
            app.set({ pane: "rules", listOpen: false });
            break;
        case "showCheckpoints":
            app.set({ pane: "checkpoints", listOpen: false });
            break;
        case "focusLastMessage":
            void loaded(app).then(() => app.focus.get("lastMessage")?.());
            break;
        default:
            // A command of a newer host.
            break;
    }
}

window.addEventListener("message", (event: MessageEvent<ToPage>) => {
    app.host.receive(event.data, {
        event: (params) => {
            takeEvent(app, params);
            tellList(app, params);
        },
        listChanged: () => {
            if (app.state.listOpen) void refreshList(app);
        },
        state: takeState,
        command: takeCommand,
    });
});
document.addEventListener("visibilitychange", () => {
    if (document.hidden) saveDraft(app);
});
window.addEventListener("focus", typeHere);
window.addEventListener("blur", () => app.host.focused(false));
window.addEventListener("pagehide", () => saveDraft(app));

const root = document.getElementById("root") ?? document.body.appendChild(document.createElement("div"));
root.classList.add("root");
render(
    <AppContext.Provider value={app}>
        <Boundary name="The page">
            <View />
        </Boundary>
    </AppContext.Provider>,
    root,
);
const kept = vscode.getState()?.prompt;
// An older page has kept the draft alone.
if (kept?.draft) restore(app, kept);
let remembered = "{}";
app.store.subscribe(() => {
    const { active } = app.state;
    const prompt = unsaved(app.state);
    const state: Kept = { ...(active === undefined ? {} : { sessionId: active }), ...(prompt ? { prompt } : {}) };
    const now = JSON.stringify(state);
    if (now === remembered) return;
    remembered = now;
    vscode.setState(state);
});
app.host.ready();
// Before the first answer comes.
Markdown.preload();
if (document.hasFocus()) typeHere();
