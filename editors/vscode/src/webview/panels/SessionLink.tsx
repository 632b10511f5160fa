// One session in a list, as the button that shows it: its title, its age, and what it does or waits for.
//
// Rule: titles and answers are shown exactly. A session that cannot be read says why and cannot be opened.

import type { SessionSummary } from "kode-protocol";

import { useApp, useSelect } from "../app/context.ts";
import { showSession } from "../app/sessions.ts";
import { ago, counted, dollars, exactLine, plainLine } from "../text.ts";
import { Spinner } from "./Icon.tsx";

export function SessionLink({ session }: { session: SessionSummary }) {
    const app = useApp();
    const active = useSelect((state) => state.active);
    const unseen = useSelect((state) => state.host?.unseen.includes(session.sessionId) ?? false);
    const detail = detailOf(session, unseen);
    return (
        <button
            type="button"
            class="session-open"
            aria-current={session.sessionId === active}
            disabled={session.state === "unreadable"}
            onClick={() => void showSession(app, session.sessionId)}
        >
            <span class="session-title">
                <StateMark session={session} unseen={unseen} />
                <bdi>{exactLine(session.title) || "New session"}</bdi>
                <span class="session-time">{ago(session.updatedAt, Date.now())}</span>
            </span>
            {detail !== "" && <span class="session-detail">{detail}</span>}
        </button>
    );
}

function StateMark({ session, unseen }: { session: SessionSummary; unseen: boolean }) {
    if (session.runState === "WORKING") return <Spinner />;
    const state = session.runState === "PAUSED" ? "waits" : unseen ? "unseen-answer" : session.state;
    return <span class={`session-mark ${state}`} aria-hidden="true" />;
}

function detailOf(session: SessionSummary, unseen: boolean): string {
    if (session.problem !== undefined) return exactLine(session.problem);
    const parts = [
        stateOf(session, unseen),
        session.turns === undefined ? "" : counted(session.turns, "turn"),
        session.cost === undefined || session.cost === 0 ? "" : dollars(session.cost),
        session.lastAnswer === undefined ? "" : plainLine(session.lastAnswer),
    ];
    return parts.filter((part) => part !== "").join(" · ");
}

function stateOf({ runState, state }: SessionSummary, unseen: boolean): string {
    if (runState === "PAUSED") return "Waiting for you";
    if (runState === "WORKING") return "Working";
    if (state === "elsewhere") return "Open in another window";
    return unseen ? "New answer" : "";
}
