// The states and open prompts of this window's sessions, folded from snapshots and events: what status bar, badge and
// notifications show.
//
// Rule: a prompt is known by its id, is there once however often it is reported, and is gone with the first answer,
// from any client. No text is kept but what a notification shows.

import type {
    AgentEventParams,
    PermissionPrompt,
    Question,
    RunState,
    SessionId,
    Snapshot,
} from "kode-protocol";
import { isNews } from "../shared/news.ts";

/** Something that waits for the user. */
export type Waiting = { kind: "permission"; prompt: PermissionPrompt } | { kind: "question"; question: Question };

/** The known state of one session. */
export interface Followed {
    sessionId: SessionId;
    title: string;
    state: RunState;
    /** The newest event that was folded. */
    seq: number;
    /** By the id of the prompt or question, oldest first. */
    waiting: Map<string, Waiting>;
    /** Whether the last turn ended by a fault, and the user has not seen it yet. */
    failed: boolean;
    /** Whether a turn has ended that the user has not seen yet. */
    unseen: boolean;
}

/** All sessions in one word; what asks most for the user wins. */
export type Mood = "idle" | "working" | "waiting" | "error";

/** The change of a step. */
export interface Step {
    /** New open prompts. */
    asked: Waiting[];
    /** The ids of what waits no more. */
    answered: string[];
    /** Whether anything that is shown is another one now. */
    changed: boolean;
}

/** The sessions that this window follows. */
export class Attention {
    readonly sessions = new Map<SessionId, Followed>();

    /** Takes the session as the server says it is. */
    load(snapshot: Snapshot): Step {
        const before = this.sessions.get(snapshot.sessionId);
        const waiting = new Map<string, Waiting>();
        for (const prompt of snapshot.pendingPermissions) {
            waiting.set(prompt.permissionId, { kind: "permission", prompt });
        }
        for (const question of snapshot.questions ?? []) {
            waiting.set(question.questionId, { kind: "question", question });
        }
        this.sessions.set(snapshot.sessionId, {
            sessionId: snapshot.sessionId,
            title: snapshot.title,
            state: snapshot.state,
            seq: snapshot.bookmark.seq,
            waiting,
            failed: before?.failed ?? false,
            unseen: before?.unseen ?? false,
        });
        return {
            asked: [...waiting].filter(([id]) => !before?.waiting.has(id)).map(([, asked]) => asked),
            answered: [...(before?.waiting.keys() ?? [])].filter((id) => !waiting.has(id)),
            changed: true,
        };
    }

    /** Takes what happened; events of sessions that were never loaded begin one. */
    fold(params: AgentEventParams): Step {
        const { sessionId, bookmark, event } = params;
        const session = this.sessions.get(sessionId) ?? begin(sessionId);
        this.sessions.set(sessionId, session);
        const step: Step = { asked: [], answered: [], changed: false };
        // The snapshot has it already.
        if (!isNews(params, session.seq)) return step;
        session.seq = bookmark.seq;
        switch (event.type) {
            case "permission_required": {
                const { prompt } = event;
                if (!session.waiting.has(prompt.permissionId)) step.asked.push({ kind: "permission", prompt });
                session.waiting.set(prompt.permissionId, { kind: "permission", prompt });
                break;
            }
            case "question_asked": {
                const { question } = event;
                if (!session.waiting.has(question.questionId)) step.asked.push({ kind: "question", question });
                session.waiting.set(question.questionId, { kind: "question", question });
                break;
            }
            case "permission_decided":
                drop(session, event.permissionId, step);
                break;
            case "question_answered":
                drop(session, event.questionId, step);
                break;
            case "agent_resumed":
                // Waiting prompts are sent again, under their old ids.
                for (const id of [...session.waiting.keys()]) drop(session, id, step);
                break;
            case "state_changed":
                session.state = event.state;
                break;
            case "turn_started":
                session.failed = false;
                break;
            case "done":
                session.failed = event.stopReason === "error";
                session.unseen = true;
                break;
            case "title_changed":
                session.title = event.title;
                break;
            default:
                return step;
        }
        return { ...step, changed: true };
    }

    /** The user has seen the session. */
    seen(sessionId: SessionId): boolean {
        const session = this.sessions.get(sessionId);
        if (!session?.unseen) return false;
        session.failed = false;
        session.unseen = false;
        return true;
    }

    /** The sessions in which a turn has ended that the user has not seen yet. */
    unseen(): SessionId[] {
        return [...this.sessions.values()].filter(({ unseen }) => unseen).map(({ sessionId }) => sessionId);
    }

    /** The server is gone: nothing can be answered until the sessions are loaded again, which tells what waits. */
    lost(): string[] {
        const answered = this.waiting().map((waiting) => named(waiting).id);
        for (const session of this.sessions.values()) session.waiting.clear();
        return answered;
    }

    /** The session is gone, or followed no more. */
    forget(sessionId: SessionId): string[] {
        const answered = [...(this.sessions.get(sessionId)?.waiting.keys() ?? [])];
        this.sessions.delete(sessionId);
        return answered;
    }

    /** The open prompts of all sessions. */
    waiting(): Waiting[] {
        return [...this.sessions.values()].flatMap((session) => [...session.waiting.values()]);
    }

    /** All sessions in one word. */
    mood(): Mood {
        const sessions = [...this.sessions.values()];
        if (sessions.some((session) => session.waiting.size > 0)) return "waiting";
        if (sessions.some((session) => session.failed)) return "error";
        return sessions.some((session) => session.state !== "READY") ? "working" : "idle";
    }
}

/** The id and the session of something that waits. */
export function named(waiting: Waiting): { id: string; sessionId: SessionId } {
    return waiting.kind === "permission"
        ? { id: waiting.prompt.permissionId, sessionId: waiting.prompt.sessionId }
        : { id: waiting.question.questionId, sessionId: waiting.question.sessionId };
}

function begin(sessionId: SessionId): Followed {
    return { sessionId, title: "", state: "READY", seq: 0, failed: false, unseen: false, waiting: new Map() };
}

function drop(session: Followed, id: string, step: Step): void {
    if (session.waiting.delete(id)) step.answered.push(id);
}
