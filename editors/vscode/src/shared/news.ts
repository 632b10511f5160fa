// Which events a state lacks.
//
// Rule: the numbers of events decide, and nothing else; the chat and the host use the same function.

import type { AgentEventParams, Event } from "kode-protocol";

/**
 * The events about the requests to the user. In a session that another server writes they have the number of the event before them.
 * Folding one twice changes nothing.
 */
const REQUESTS: ReadonlySet<Event["type"]> = new Set([
    "permission_required",
    "permission_decided",
    "question_asked",
    "question_answered",
]);

/** Whether the state whose newest event is number `seq` lacks an event. */
export function isNews({ event, bookmark }: AgentEventParams, seq: number): boolean {
    return bookmark.seq > seq || (bookmark.seq === seq && REQUESTS.has(event.type));
}
