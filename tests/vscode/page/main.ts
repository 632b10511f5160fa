// A page for tests of the extension's host side: it shows what comes in and sends what it is reported to, and nothing
// more.
//
// Rule: what a test checks is in elements with ids; what a test does, it does with `window.send` and `window.ask`.

import type { AgentEventParams, HostState, Item, Snapshot } from "./types.ts";
import "./style.css";

declare function acquireVsCodeApi(): { postMessage(message: unknown): void; setState(state: unknown): void };

const editor = acquireVsCodeApi();
const answers = new Map<number, (answer: { result?: unknown; error?: unknown }) => void>();
let next = 1;
let sessionId: string | undefined;
let beginning: Promise<void> | undefined;

function element(id: string, tag = "pre"): HTMLElement {
    const found = document.getElementById(id);
    if (found) return found;
    const made = document.createElement(tag);
    made.id = id;
    document.getElementById("root")?.append(made);
    return made;
}

function send(message: Record<string, unknown>): Promise<{ result?: unknown; error?: unknown }> {
    const id = next++;
    editor.postMessage({ ...message, id });
    return new Promise((resolve) => answers.set(id, resolve));
}

async function ask(method: string, params: Record<string, unknown>): Promise<unknown> {
    const { result, error } = await send({ type: "request", method, params });
    if (error) throw new Error(JSON.stringify(error));
    return result;
}

async function begin(state: HostState): Promise<void> {
    let snapshot: Snapshot;
    if (state.sessionId) snapshot = (await ask("agent/session/load", { sessionId: state.sessionId })) as Snapshot;
    else snapshot = ((await ask("agent/session/new", {})) as { snapshot: Snapshot }).snapshot;
    sessionId = snapshot.sessionId;
    editor.setState({ sessionId });
    element("session").textContent = sessionId;
    element("draft").textContent = snapshot.draft?.text ?? "";
    for (const item of snapshot.items) take(item);
    await send({ type: "host", action: "showing", payload: { sessionId, title: snapshot.title } });
}

/** The model's texts, by item. */
const said = new Map<string, string>();

function take({ itemId, body }: Item): void {
    if (body.type === "agentMessage") say(itemId, body.text);
}

function say(itemId: string, text: string): void {
    said.set(itemId, text);
    element("said").textContent = [...said.values()].join("\n");
}

function event({ sessionId: of, bookmark, event }: AgentEventParams): void {
    if (of !== sessionId) return;
    element("events").append(`${bookmark.seq} ${event.type}\n`);
    if (event.type === "item_added" || event.type === "item_updated") take(event.item);
    if (event.type === "text_chunk") say(event.itemId, (said.get(event.itemId) ?? "") + event.text);
    if (event.type === "permission_required") element("asked").textContent = event.prompt.permissionId;
    if (event.type === "permission_decided") element("asked").textContent = "";
    if (event.type === "done") element("done").append(`${event.stopReason}\n`);
}

addEventListener("message", ({ data }) => {
    if (data.type === "host") {
        const connection = JSON.stringify(data.state.connection);
        // Short-lived states can still be seen here when a test comes to look.
        if (connection !== element("connections").lastChild?.textContent?.trim()) {
            element("connections").append(`${connection}\n`);
        }
        element("connection").textContent = data.state.connection.state;
        element("state").textContent = JSON.stringify(data.state);
        if (data.state.connection.state === "ready" && !sessionId) beginning ??= begin(data.state);
    } else if (data.type === "response") {
        answers.get(data.id)?.(data);
        answers.delete(data.id);
    } else if (data.type === "event") {
        event(data.params);
    } else if (data.type === "command") {
        element("commands").append(`${JSON.stringify(data)}\n`);
    }
});

for (const focused of [true, false]) {
    addEventListener(focused ? "focus" : "blur", () => editor.postMessage({ type: "focus", focused }));
}
Object.assign(window, { send, ask, session: () => sessionId });
editor.postMessage({ type: "ready" });
