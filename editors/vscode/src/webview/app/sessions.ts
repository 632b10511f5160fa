// Which session is shown, and how it gets here and stays true.
//
// Rule: a session is a snapshot and the events after it. While a snapshot is on its way, events wait for it; after a gap, and
// when the server was started again, there is a new snapshot.

import type { AgentEventParams, AgentId, Event, ItemId, SessionId, Snapshot } from "kode-protocol";

import {
    foldAgentEvent,
    foldEvent,
    withAgentTranscript,
    withKnownAgents,
    type SessionView,
} from "../store/session.ts";
import { newestItem, oldestItem, prependItems } from "../store/transcript.ts";
import { withSession, type App } from "./app.ts";
import { refreshEdits } from "./edits.ts";
import { announceEvent } from "./announce.ts";
import { takeAside } from "./asides.ts";
import { adoptDraft, arriveWith, saveDraft, takeDraft } from "./drafts.ts";
import {
    expectSnapshot,
    holdEvent,
    leaveBeginning,
    MAX_WAITING,
    reportShown,
    takeWaiting,
    viewOf,
    withView,
} from "./sessionStore.ts";

/** Items of a snapshot and of a page of older ones. */
const ITEMS = 100;

/** The part of the page's state that belongs to the shown session. */
const AT_FIRST = {
    listOpen: false,
    pane: undefined,
    edits: undefined,
    trouble: undefined,
    checkpoint: undefined,
    applying: undefined,
    handedIn: undefined,
    undoable: undefined,
} as const;

/** Shows a session, loading it if it is not here. */
export async function showSession(app: App, id: SessionId): Promise<void> {
    if (app.state.active !== id) {
        saveDraft(app);
        leaveBeginning();
    }
    const known = app.state.sessions.get(id);
    app.set({
        active: id,
        ...AT_FIRST,
        loading: !known,
    });
    if (known) {
        shown(app, known);
        return;
    }
    // The typed text from now on is meant for this one.
    takeDraft(app, undefined);
    await loadSession(app, id);
}

/** Resolves when the session that is shown is here and drawn; at once when none is on its way. */
export function loaded(app: App): Promise<void> {
    if (!app.state.loading) return Promise.resolve();
    return new Promise((resolve) => {
        const leave = app.store.subscribe(() => {
            if (app.state.loading) return;
            leave();
            requestAnimationFrame(() => resolve());
        });
    });
}

/** Shows a session that begins with its first prompt. */
export function showNewSession(app: App): void {
    saveDraft(app);
    leaveBeginning();
    app.set({
        active: undefined,
        ...AT_FIRST,
        loading: false,
    });
    takeDraft(app, undefined);
    app.host.act("showing", { sessionId: null, title: "" }).catch((error) => app.fail(error));
    app.focus.get("prompt")?.();
}

/** Gets a new snapshot of a session. */
export async function loadSession(app: App, id: SessionId): Promise<void> {
    if (!expectSnapshot(id)) return;
    try {
        adopt(app, await app.host.request("agent/session/load", { sessionId: id, items: ITEMS }));
    } catch (error) {
        takeWaiting(id);
        app.set({ loading: false });
        app.fail(error);
    }
}

/** Replaces the known state by a snapshot, with the events that came while it was on its way. */
export function adopt(app: App, snapshot: Snapshot): void {
    const waiting = takeWaiting(snapshot.sessionId);
    if (waiting.length >= MAX_WAITING) {
        void loadSession(app, snapshot.sessionId);
        return;
    }
    const known = app.state.sessions.get(snapshot.sessionId);
    const view = waiting.reduce(foldEvent, withKnownAgents(viewOf(snapshot), known?.agents ?? new Map()));
    app.store.update((state) => ({
        ...withView(state, view),
        loading: state.active === view.sessionId ? false : state.loading,
    }));
    if (app.state.active !== view.sessionId) return;
    if (known) shownAgain(app, view);
    else arrived(app, view);
}

/** Takes an event of a session. */
export function takeEvent(app: App, params: AgentEventParams): void {
    for (const listen of listening) listen(params);
    takeAside(app, params);
    holdEvent(app, params);
    const before = app.state.sessions.get(params.sessionId);
    if (!before) return;
    app.store.stream((state) => withSession(state, params.sessionId, (view) => foldEvent(view, params)));
    const after = app.state.sessions.get(params.sessionId);
    if (!after || after === before || params.sessionId !== app.state.active) return;
    if (after.gap && !before.gap) void loadSession(app, params.sessionId);
    if (after.edits !== before.edits) void refreshEdits(app);
    if (after.title !== before.title) reportShown(app, after);
    if (params.event.type === "draft_changed") adoptDraft(app, after.draft);
    announceEvent(app, params.event, after);
    goWhereTold(app, params.event);
}

/** Shows the session that a command says is to be shown from now on. */
function goWhereTold(app: App, event: Event): void {
    if (event.type !== "item_added" || event.item.body.type !== "command") return;
    const { goTo } = event.item.body;
    if (goTo !== undefined) void showSession(app, goTo);
}

/** Gets older items of the session that is shown. */
export async function loadOlder(app: App): Promise<void> {
    const view = app.state.active === undefined ? undefined : app.state.sessions.get(app.state.active);
    const oldest = view && oldestItem(view.transcript);
    if (!view?.transcript.more || !oldest || older.has(view.sessionId)) return;
    older.add(view.sessionId);
    await app.attempt(async () => {
        const page = await app.host.request("agent/session/items", {
            sessionId: view.sessionId,
            before: oldest.itemId,
            limit: ITEMS,
        });
        app.changeSession(view.sessionId, (now) =>
            oldestItem(now.transcript)?.itemId === oldest.itemId
                ? { ...now, transcript: prependItems(now.transcript, page.items, page.moreItems) }
                : now,
        );
    });
    older.delete(view.sessionId);
}

const older = new Set<SessionId>();

/** Gets what a sub-agent did. */
export async function loadAgent(app: App, sessionId: SessionId, agentId: AgentId): Promise<void> {
    const waiting: AgentEventParams[] = [];
    const listen = (params: AgentEventParams) => {
        if (params.sessionId === sessionId && waiting.length < MAX_WAITING) waiting.push(params);
    };
    listening.add(listen);
    await app.attempt(async () => {
        const agent = await app.host.request("agent/subagent/load", { sessionId, agentId, items: 60 });
        app.changeSession(sessionId, (view) =>
            waiting.reduce((now, params) => foldAgentEvent(now, agentId, params), withAgentTranscript(view, agent)),
        );
    });
    listening.delete(listen);
}

/** Listeners to every event while a transcript of a sub-agent is on its way. */
const listening = new Set<(params: AgentEventParams) => void>();

/** Begins a session of its own with what this one said up to a message. */
export async function fork(app: App, sessionId: SessionId, beforeItemId?: ItemId): Promise<void> {
    await app.attempt(async () => {
        const forked = await app.host.request("agent/session/fork", {
            sessionId,
            ...(beforeItemId === undefined ? {} : { beforeItemId }),
        });
        saveDraft(app);
        takeDraft(app, undefined);
        app.set({
            active: forked.sessionId,
            ...AT_FIRST,
        });
        adopt(app, forked.snapshot);
        app.announce("A fork of the session is shown.");
    });
}

function shown(app: App, view: SessionView): void {
    takeDraft(app, view.draft);
    showDetails(app, view);
}

function showDetails(app: App, view: SessionView): void {
    reportShown(app, view);
    void refreshEdits(app);
    if (view.costs.size === 0 && newestItem(view.transcript)) void loadCosts(app, view.sessionId);
}

/** Gets the costs of the turns so far. Without them the turns are shown without a cost. */
async function loadCosts(app: App, sessionId: SessionId): Promise<void> {
    try {
        const { turns } = await app.host.request("agent/usage/get", { sessionId });
        const costs = new Map(turns.flatMap(({ turnId, cost }) => (cost === undefined ? [] : [[turnId, cost]])));
        app.changeSession(sessionId, (view) => ({ ...view, costs }));
    } catch {
        // Figures alone: the turns are shown without them.
    }
}

/** Shows a session that was on its way, with the text that was typed meanwhile. */
function arrived(app: App, view: SessionView): void {
    arriveWith(app, view.draft);
    showDetails(app, view);
}

/** Continues with a session that was loaded again: the draft stays. */
function shownAgain(app: App, view: SessionView): void {
    adoptDraft(app, view.draft);
    saveDraft(app);
    void refreshEdits(app);
}
