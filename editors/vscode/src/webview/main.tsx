// The page of the chat: draws the view and connects it with the extension host.
//
// Rule: the page keeps nothing that it cannot get again. It can be thrown away at any moment and be built anew from the host's
// state and the server's snapshot.

import "../../media/webview.css";

import { render } from "preact";

import type { Command, FromPage, HostState, ToPage } from "../shared/messages.ts";
import { App } from "./app/app.ts";
import { AppContext } from "./app/context.ts";
import { openList, refreshList, tellList } from "./app/list.ts";
import { addPart, ask, put, saveDraft } from "./app/prompt.ts";
import { loaded, loadSession, showNewSession, showSession, takeEvent } from "./app/sessions.ts";
import { Boundary } from "./panels/Boundary.tsx";
import { loadModels } from "./panels/Pickers.tsx";
import { View } from "./View.tsx";

declare function acquireVsCodeApi(): {
    postMessage(message: FromPage): void;
    /** What a tab in the editor area is given again after a restart of the editor. */
    setState(state: { sessionId?: string }): void;
};

const vscode = acquireVsCodeApi();
const app = new App((message) => vscode.postMessage(message));

function takeState(state: HostState): void {
    const before = app.state.host;
    app.set({ host: state });
    const size = state.settings.fontSize;
    if (size > 0) document.documentElement.style.setProperty("--kode-font-size", `${size}px`);
    else document.documentElement.style.removeProperty("--kode-font-size");
    if (!before) {
        // It is that session's page from the start, also while there is no server to load it from.
        const active = state.sessionId;
        app.set({ editorContext: state.settings.includeEditorContext, active, loading: active !== undefined });
    }
    if (state.connection.state !== "ready" || before?.connection.state === "ready") return;
    void loadModels(app);
    if (app.state.active !== undefined) void loadSession(app, app.state.active);
}

function takeCommand(command: Command): void {
    switch (command.name) {
        case "focusInput":
            app.focus.get("prompt")?.();
            break;
        case "newSession":
            showNewSession(app);
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
window.addEventListener("focus", () => app.host.focused(true));
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
let remembered: string | undefined;
app.store.subscribe(() => {
    const { active } = app.state;
    if (active === remembered) return;
    remembered = active;
    vscode.setState(active === undefined ? {} : { sessionId: active });
});
app.host.ready();
if (document.hasFocus()) app.host.focused(true);
