// The state of a running turn, its time and the amount of text.
//
// Rule: the seconds count while the page is drawn; the tokens are those that the provider reported, and about as many more as
// have streamed since.

import type { Item } from "kode-protocol";
import { useEffect, useState } from "preact/hooks";

import { useApp, useSession } from "../app/context.ts";
import { type SessionView, waitingFor } from "../store/session.ts";
import { itemsOf, newestItem } from "../store/transcript.ts";
import { exactLine, prose, span, tokens } from "../text.ts";

/** Characters of a token of prose and code, about. */
const CHARACTERS = 4;

/** How far back running calls are looked for, in items. */
const RECENT = 40;

export function Working() {
    const state = useSession((view) => view.state);
    // The state of a session that another server writes is that of its records, which have no pauses.
    const isAsked = useSession((view) => view.following !== undefined && waitingFor(view) > 0) ?? false;
    if (state !== "WORKING" && state !== "PAUSED") return null;
    return <Row waits={state === "PAUSED" || isAsked} />;
}

function Row({ waits }: { waits: boolean }) {
    const what = useSession((view) => (waits ? "Waiting for your answer" : doing(view)));
    const retry = useSession((view) => view.retry);
    const turn = useSession((view) => view.turn);
    const startedAt = useSession(startOf);
    const now = useSeconds();
    const written = turn ? turn.tokens + Math.round(turn.streamed / CHARACTERS) : 0;
    const figures = [
        startedAt === undefined ? "" : seconds(now - Date.parse(startedAt)),
        written > 0 ? `${tokens(written)} tokens` : "",
    ];
    return (
        <div class="working">
            <span class="dots" aria-hidden="true">
                <i />
                <i />
                <i />
            </span>
            {retry && !waits ? <Waits retry={retry} now={now} /> : <span class="working-what">{what}</span>}
            <span class="working-figures">{figures.filter(Boolean).join(" · ")}</span>
        </div>
    );
}

/** Why the model is not asked yet, and when it will be. */
function Waits({ retry, now }: { retry: NonNullable<SessionView["retry"]>; now: number }) {
    const app = useApp();
    const left = Math.max(0, Date.parse(retry.nextAt) - now);
    const retryNow = () =>
        void app.attempt(() => app.host.request("agent/turn/retry", { sessionId: app.session().sessionId }));
    return (
        <>
            <span class="working-what" title={exactLine(retry.reason)}>
                {left > 0 ? `Retrying in ${seconds(left)}` : "Retrying"} ({retry.attempt} of {retry.of}): {prose(retry.reason)}
            </span>
            <button type="button" class="quiet" onClick={retryNow}>
                Retry now
            </button>
        </>
    );
}

/** The current work by the newest items. */
function doing(view: SessionView): string {
    if (view.compressing) return "Compacting the conversation";
    const recent = itemsOf(view.transcript).slice(-RECENT);
    const running = recent.filter(({ body }) => body.type === "toolCall" && body.state === "EXECUTING");
    if (running.length > 1) return `Running ${running.length} calls`;
    const item = running[0] ?? newestItem(view.transcript);
    return item ? doingNow(item) : "Waiting for the model";
}

function doingNow({ body }: Item): string {
    switch (body.type) {
        case "toolCall":
            if (body.state !== "EXECUTING") return "Waiting for the model";
            return body.kind === "execute" ? "Running a command" : exactLine(body.title || body.name);
        case "thinking":
            return body.complete ? "Waiting for the model" : "Thinking";
        case "agentMessage":
            return body.complete ? "Waiting for the model" : "Writing";
        default:
            return "Waiting for the model";
    }
}

/** When the running turn began: as reported, or by its prompt where the page came later. */
function startOf(view: SessionView): string | undefined {
    if (view.turn && view.turn.stopReason === undefined && view.turn.startedAt !== "") return view.turn.startedAt;
    const prompt = itemsOf(view.transcript).findLast(({ body }) => body.type === "userMessage" && !body.steered);
    return prompt?.timestamp;
}

/** The time, once a second. */
function useSeconds(): number {
    const [now, setNow] = useState(Date.now);
    useEffect(() => {
        const timer = setInterval(() => setNow(Date.now()), 1_000);
        return () => clearInterval(timer);
    }, []);
    return now;
}

function seconds(milliseconds: number): string {
    return span(Math.round(Math.max(0, milliseconds) / 1_000) * 1_000).replace(/^(\d+)\.0 s$/, "$1 s");
}
