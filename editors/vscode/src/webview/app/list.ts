// The list of sessions: pages of it, and search hits.
//
// Rule: the server lists, searches and sorts, and says when the list is another one; what a session does is reported by
// its events. An answer to an outdated request is dropped.

import type { AgentEventParams, SessionId, SessionSummary } from "kode-protocol";

import type { App } from "./app.ts";
import { showNewSession } from "./sessions.ts";
import type { SessionList } from "./state.ts";

const PAGE = 50;

/** How long typing rests before words are searched. */
const REST_MS = 200;

let timer: ReturnType<typeof setTimeout> | undefined;

/** Counts the requests, so that an older answer never replaces a newer one. */
let newest = 0;

/** Opens the list. */
export function openList(app: App): void {
    app.set({ listOpen: true, pane: undefined });
    void refreshList(app);
}

/** Gets the first page again. */
export async function refreshList(app: App): Promise<void> {
    newest += 1;
    const mine = newest;
    change(app, { busy: true });
    await app.attempt(async () => {
        const archived = app.state.list.archived ? "only" : "hide";
        const { sessions, nextCursor } = await app.host.request("agent/session/list", {
            limit: PAGE,
            archived,
        });
        if (mine !== newest) return;
        const { cursor: _before, ...list } = app.state.list;
        app.set({ list: { ...list, sessions, ...(nextCursor === undefined ? {} : { cursor: nextCursor }) } });
    });
    if (mine === newest) change(app, { busy: false });
}

/** Takes what an event says of a session that is listed. */
export function tellList(app: App, { sessionId, event }: AgentEventParams): void {
    switch (event.type) {
        case "state_changed":
            changeListed(app, sessionId, { runState: event.state });
            break;
        case "title_changed":
            changeListed(app, sessionId, { title: event.title });
            break;
        case "done":
            // The server reports its turns, their cost and its last text.
            if (app.state.listOpen) void refreshList(app);
            break;
        default:
            break;
    }
}

/** Gets the next page. */
export async function moreOfList(app: App): Promise<void> {
    const { cursor, archived } = app.state.list;
    if (cursor === undefined) return;
    const mine = newest;
    await app.attempt(async () => {
        const page = await app.host.request("agent/session/list", {
            limit: PAGE,
            cursor,
            archived: archived ? "only" : "hide",
        });
        if (mine !== newest) return;
        const { cursor: _before, ...list } = app.state.list;
        const known = new Set(list.sessions.map((session) => session.sessionId));
        const sessions = [
            ...list.sessions,
            ...page.sessions.filter((session) => !known.has(session.sessionId)),
        ];
        app.set({
            list: {
                ...list,
                sessions,
                ...(page.nextCursor === undefined ? {} : { cursor: page.nextCursor }),
            },
        });
    });
}

/** Looks for words in all sessions when typing rests. */
export function searchSessions(app: App, query: string): void {
    change(app, { query });
    clearTimeout(timer);
    if (query.trim().length < 2) {
        change(app, { hits: [] });
        return;
    }
    timer = setTimeout(() => {
        void app.attempt(async () => {
            const { hits } = await app.host.request("agent/session/search", {
                query: query.trim().slice(0, 200),
                limit: 50,
            });
            if (app.state.list.query === query) change(app, { hits });
        });
    }, REST_MS);
}

/** Shows the sessions that are archived, or the others. */
export function showArchived(app: App, archived: boolean): void {
    change(app, { archived });
    void refreshList(app);
}

/** Gives a session a title. */
export async function rename(app: App, sessionId: SessionId, title: string): Promise<void> {
    await app.attempt(() => app.host.request("agent/session/rename", { sessionId, title }));
    await refreshList(app);
}

/** Puts a session away or takes it out again. */
export async function archive(app: App, sessionId: SessionId, archived: boolean): Promise<void> {
    await app.attempt(() => app.host.request("agent/session/archive", { sessionId, archived }));
    await refreshList(app);
}

/** Writes a session as a document to a place that the user chooses. */
export async function exportSession(app: App, sessionId: SessionId): Promise<void> {
    await app.attempt(async () => {
        const { document, fileName } = await app.host.request("agent/session/export", {
            sessionId,
            format: "markdown",
        });
        if (document.format !== "markdown")
            throw new Error("The session was not exported: the server did not send Markdown.");
        const { saved } = await app.host.act("saveText", { fileName, text: document.text });
        if (saved) app.announce("Session exported.");
    });
}

/** Deletes a session, if the user is sure. */
export async function remove(app: App, sessionId: SessionId, title: string): Promise<void> {
    await app.attempt(async () => {
        const { confirmed } = await app.host.act("confirm", {
            message: `Delete “${title || "New session"}”?`,
            detail: "This deletes the conversation and the data to undo its changes. Files stay as they are.",
            yes: "Delete",
        });
        if (!confirmed) return;
        await app.host.request("agent/session/delete", { sessionId });
        if (app.state.active === sessionId) {
            showNewSession(app);
            app.set({ listOpen: true });
        }
    });
    await refreshList(app);
}

function changeListed(app: App, id: SessionId, part: Partial<SessionSummary>): void {
    const { sessions } = app.state.list;
    if (!sessions.some(({ sessionId }) => sessionId === id)) return;
    change(app, { sessions: sessions.map((one) => (one.sessionId === id ? { ...one, ...part } : one)) });
}

function change(app: App, part: Partial<SessionList>): void {
    app.set({ list: { ...app.state.list, ...part } });
}
