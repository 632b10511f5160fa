// Drives a session of the real server and keeps all it tells.
//
// Rule: the recording has the server's messages, in its order; every step waits for the event it brings.

import type { AgentEventParams, ListEditsResult, Snapshot } from "../../../../protocol/generated/kode";
import type { Server } from "./server";

type EventType = AgentEventParams["event"]["type"];

/** The answer of `agent/edits/list`, and the number of the newest event that had come by then. */
export interface EditsAt {
    seq: number;
    result: ListEditsResult;
}

export class Recorder {
    readonly events: AgentEventParams[] = [];
    readonly snapshots: Snapshot[] = [];
    readonly edits: EditsAt[] = [];

    constructor(
        readonly server: Server,
        readonly first: Snapshot,
    ) {
        server.onEvent((event) => {
            if (event.sessionId === first.sessionId) this.events.push(event);
        });
    }

    /** Hands a prompt in and waits for an event. */
    say(words: string, until: EventType, delivery: "queue" | "steer" = "queue"): Promise<AgentEventParams> {
        return this.until(until, () =>
            this.server.request("agent/turn/start", {
                sessionId: this.first.sessionId,
                input: [{ type: "text", text: words }],
                delivery,
            }),
        );
    }

    /** Waits for an event that the act causes. */
    async until(type: EventType, act: () => Promise<unknown>): Promise<AgentEventParams> {
        const happened = this.server.event((event) => event.event.type === type, type);
        await act();
        return happened;
    }

    /** Asks for the session as it is. */
    async snapshot(): Promise<void> {
        this.snapshots.push(
            await this.server.request("agent/session/load", { sessionId: this.first.sessionId, items: 500 }),
        );
    }

    /** Asks for the hunks that there are to decide on. */
    async list(): Promise<ListEditsResult> {
        const result = await this.server.request("agent/edits/list", { sessionId: this.first.sessionId });
        this.edits.push({ seq: this.events.at(-1)?.bookmark.seq ?? 0, result });
        return result;
    }
}
