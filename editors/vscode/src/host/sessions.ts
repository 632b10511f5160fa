// The sessions that this window follows: what passes between server and pages is checked here, so that status bar,
// notifications and review know of it, and so that all of it is resumed when the server is a new one.
//
// Rule: requests and events pass unchanged. A session is followed from its first snapshot until it is closed or deleted;
// after a restart it is loaded from the bookmark of the newest event that came.

import type { AgentEventParams, NewSessionResult, SessionId, Snapshot } from "kode-protocol";
import * as vscode from "vscode";
import { Attention, type Step } from "../logic/attention.ts";
import { messageOf } from "../logic/words.ts";
import type { Method, Params, Result } from "../shared/messages.ts";
import type { Server } from "./server.ts";

/** Where the sessions to be resumed with a new window are kept. */
const KEPT = "kode.unfinishedSessions";

/** The most of them. */
const MOST_KEPT = 10;

/** Items that a session is loaded with for the host alone, which shows none. */
const NO_ITEMS = 1;

/** The sessions of this window. */
export class Sessions implements vscode.Disposable {
    readonly attention = new Attention();
    /** The sessions of the window before this one, until its server has let go of it. */
    private readonly left = new Set<SessionId>();
    private readonly stepped = new vscode.EventEmitter<Step>();
    private readonly eventCame = new vscode.EventEmitter<AgentEventParams>();
    private readonly loaded = new vscode.EventEmitter<SessionId>();
    private readonly subscriptions: vscode.Disposable[];

    /** The state of sessions has changed. */
    readonly onStep = this.stepped.event;
    /** Something happened in a session. */
    readonly onEvent = this.eventCame.event;
    /** A session was loaded, for the first time or again. */
    readonly onLoaded = this.loaded.event;

    constructor(
        private readonly server: Server,
        private readonly memory: vscode.Memento,
        private readonly log: vscode.LogOutputChannel,
    ) {
        this.subscriptions = [
            server.onEvent((params) => this.fold(params)),
            server.onConnection(({ state }) => {
                if (state === "ready") void this.takeUp();
                else this.lose();
            }),
        ];
    }

    /** Makes a request, and takes what its answer says of a session. */
    async request<M extends Method>(
        method: M,
        params: Params<M>,
        token?: vscode.CancellationToken,
    ): Promise<Result<M>> {
        const result = await this.server.request(method, params, token);
        switch (method) {
            case "agent/session/load":
            case "agent/session/takeOver":
                this.load(result as Snapshot);
                break;
            case "agent/session/new":
            case "agent/session/fork":
                this.load((result as NewSessionResult).snapshot);
                break;
            case "agent/session/close":
            case "agent/session/delete":
                this.forget((params as { sessionId: SessionId }).sessionId);
                break;
            default:
        }
        return result;
    }

    /** The user has seen the session. */
    seen(sessionId: SessionId): void {
        if (this.attention.seen(sessionId)) this.stepped.fire({ asked: [], answered: [], changed: true });
    }

    /** Keeps the ids of those with something to decide on for the next window. */
    async keep(undecided: readonly SessionId[]): Promise<void> {
        const busy = [...this.attention.sessions.values()]
            .filter(({ state, waiting }) => state !== "READY" || waiting.size > 0)
            .map(({ sessionId }) => sessionId);
        const ids = [...new Set([...busy, ...undecided])].slice(0, MOST_KEPT);
        await this.memory.update(KEPT, ids.length > 0 ? ids : undefined);
    }

    dispose(): void {
        for (const subscription of this.subscriptions) subscription.dispose();
        this.stepped.dispose();
        this.eventCame.dispose();
        this.loaded.dispose();
    }

    private load(snapshot: Snapshot): void {
        const step = this.attention.load(snapshot);
        this.stepped.fire(step);
        this.loaded.fire(snapshot.sessionId);
    }

    private fold(params: AgentEventParams): void {
        const step = this.attention.fold(params);
        this.eventCame.fire(params);
        if (step.changed) this.stepped.fire(step);
        const { sessionId, event } = params;
        if (event.type === "lease_changed" && !event.writer && !event.isMine) void this.takeOverLeft(sessionId);
    }

    private lose(): void {
        const answered = this.attention.lost();
        if (answered.length > 0) this.stepped.fire({ asked: [], answered, changed: true });
    }

    private forget(sessionId: SessionId): void {
        const answered = this.attention.forget(sessionId);
        this.stepped.fire({ asked: [], answered, changed: true });
    }

    /** Follows the sessions of before again, or those that an earlier window left unfinished. */
    private async takeUp(): Promise<void> {
        const followed = [...this.attention.sessions.values()].map(({ sessionId, seq }) => ({ sessionId, since: seq }));
        const kept = followed.length > 0 ? [] : this.memory.get<SessionId[]>(KEPT, []);
        for (const sessionId of kept) this.left.add(sessionId);
        const wanted = [...followed, ...kept.map((sessionId) => ({ sessionId, since: undefined }))];
        for (const { sessionId, since } of wanted) await this.takeUpOne(sessionId, since);
    }

    private async takeUpOne(sessionId: SessionId, since: number | undefined): Promise<void> {
        const params = { sessionId, items: NO_ITEMS, ...(since === undefined ? {} : { since }) };
        try {
            const { following } = await this.request("agent/session/load", params);
            if (!following) this.left.delete(sessionId);
            else if (!following.by) await this.takeOverLeft(sessionId);
        } catch (error) {
            this.log.warn(`the session ${sessionId} could not be resumed: ${messageOf(error)}`);
            this.forget(sessionId);
        }
    }

    /** Continues with a session of the window before, which has no writer any more. Those of other windows are left alone. */
    private async takeOverLeft(sessionId: SessionId): Promise<void> {
        if (!this.left.delete(sessionId)) return;
        try {
            await this.request("agent/session/takeOver", { sessionId });
        } catch (error) {
            this.log.warn(`the session ${sessionId} could not be taken over: ${messageOf(error)}`);
        }
    }
}
