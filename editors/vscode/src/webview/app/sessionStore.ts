// The sessions that are on this page: snapshots that arrive, events that come before them, and how a session begins.
//
// Rule: events wait for the snapshot they belong to. The number of sessions and of waiting events is bounded.

import type { AgentEventParams, NewSessionParams, SessionId, Snapshot } from "kode-protocol";

import { foldEvent, sessionOf, type SessionView } from "../store/session.ts";
import type { App } from "./app.ts";
import type { AppState } from "./state.ts";

/** The most sessions that are kept besides the one that is shown. */
const MAX_SESSIONS = 6;

/** The most events that wait for a snapshot. */
export const MAX_WAITING = 10_000;

/** The most events that are kept of sessions that are not here. */
const MAX_STRAYS = 500;

/** Snapshots on their way, with the events that came meanwhile. */
const arriving = new Map<SessionId, AgentEventParams[]>();

/** The newest events of sessions that are not here: one that begins may send some before it is known. */
const strays: AgentEventParams[] = [];

/** Notes that a snapshot is on its way; answers false where one already is. */
export function expectSnapshot(id: SessionId): boolean {
    if (arriving.has(id)) return false;
    arriving.set(id, []);
    return true;
}

/** The events that came while a snapshot was on its way, which it is no more. */
export function takeWaiting(id: SessionId): AgentEventParams[] {
    const waiting = arriving.get(id) ?? [];
    arriving.delete(id);
    return waiting;
}

/** Whether a snapshot of a session is on its way. */
export function isArriving(id: SessionId): boolean {
    return arriving.has(id);
}

/** Keeps an event for a snapshot that is on its way, or for a session that is not known yet. */
export function holdEvent(app: App, params: AgentEventParams): void {
    const waiting = arriving.get(params.sessionId);
    if (waiting && waiting.length < MAX_WAITING) waiting.push(params);
    if (waiting || app.state.sessions.has(params.sessionId)) return;
    strays.push(params);
    if (strays.length > MAX_STRAYS) strays.shift();
}

/** The view of a snapshot with the events that came before the session was here. */
export function viewOf(snapshot: Snapshot): SessionView {
    return strays
        .filter(
            ({ sessionId, event }) =>
                sessionId === snapshot.sessionId && event.type !== "lease_changed" && event.type !== "gap",
        )
        .reduce(foldEvent, sessionOf(snapshot));
}

/** The state with a session in it. */
export function withView(state: AppState, view: SessionView): AppState {
    const sessions = new Map(state.sessions);
    sessions.delete(view.sessionId);
    sessions.set(view.sessionId, view);
    for (const id of sessions.keys()) {
        if (sessions.size <= MAX_SESSIONS) break;
        if (id !== state.active && id !== view.sessionId) sessions.delete(id);
    }
    return { ...state, sessions };
}

/** The session that is shown, begun now before there is one. */
export async function ensureSession(app: App, how: NewSessionParams = {}): Promise<SessionId> {
    if (app.state.active !== undefined) return app.state.active;
    if (beginning) return beginning;
    const mine: Promise<SessionId> = begin(app, how, () => beginning === mine).finally(() => {
        if (beginning === mine) beginning = undefined;
    });
    beginning = mine;
    return mine;
}

/** The session that is being created and will be shown. */
let beginning: Promise<SessionId> | undefined;

/** Keeps a session that is being created from being shown: the page shows another one by now. */
export function leaveBeginning(): void {
    beginning = undefined;
}

async function begin(app: App, how: NewSessionParams, isAwaited: () => boolean): Promise<SessionId> {
    const { sessionId, snapshot } = await app.host.request("agent/session/new", how);
    const view = viewOf(snapshot);
    if (!isAwaited()) {
        app.store.update((state) => withView(state, view));
        return sessionId;
    }
    app.store.update((state) => ({ ...withView(state, view), active: sessionId, loading: false }));
    reportShown(app, view);
    return sessionId;
}

/** Reports to the host which session the page shows. */
export function reportShown(app: App, view: SessionView): void {
    app.host.act("showing", { sessionId: view.sessionId, title: view.title }).catch((error) => app.fail(error));
}
