// Announcements for users of screen readers.
//
// Rule: discrete things only, each in one sentence. Text that streams is never announced.

import type { Event } from "kode-protocol";

import { exactLine } from "../text.ts";
import type { SessionView } from "../store/session.ts";
import type { App } from "./app.ts";

/** Announces an event of the session that is shown, if it is one to be announced. */
export function announceEvent(app: App, event: Event, view: SessionView): void {
    const text = sentence(event, view);
    if (text !== undefined) app.announce(text);
}

function sentence(event: Event, view: SessionView): string | undefined {
    switch (event.type) {
        case "turn_started":
            return "Kode is working.";
        case "done":
            return ENDINGS[event.stopReason] ?? "Kode has stopped.";
        case "permission_required":
            return `Kode asks for permission: ${exactLine(event.prompt.title)}`;
        case "question_asked":
            return `Kode asks: ${exactLine(event.question.questions[0]?.question ?? "a question")}`;
        case "permission_decided":
        case "question_answered":
            return view.permissions.length + view.questions.length === 0 ? "Answered." : undefined;
        case "model_retry":
            return "The model request failed. Retrying.";
        case "storage_failure":
            return event.recovered ? "The session is saved again." : "The session could not be saved.";
        case "error":
            return `Error: ${exactLine(event.message)}`;
        default:
            return undefined;
    }
}

const ENDINGS: Partial<Record<string, string>> = {
    end_turn: "Kode has finished.",
    cancelled: "Kode was stopped.",
    error: "Kode has stopped because of an error.",
    max_turns: "Kode has stopped at its turn limit.",
    budget: "Kode has stopped at its budget.",
};
