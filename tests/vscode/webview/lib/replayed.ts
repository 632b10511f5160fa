// The recorded session of tests/fixtures/replay, and a server that only replays it.
//
// Rule: the server answers what the recording has an answer to, unchanged at that moment, and refuses the rest.

import { readFileSync } from "node:fs";
import { join } from "node:path";

import type { AgentEventParams, Item, ListEditsResult } from "../../../../protocol/generated/kode";
import type { Replay } from "../replay";
import type { RpcError, Server } from "./server";

/** An item as expected.json reports it. */
export interface ToldItem {
    kind: string;
    text?: string;
    tool?: string;
    status: string;
}

/** A hunk as expected.json reports it. */
export interface ToldHunk {
    file: string;
    state: string;
}

interface Expected {
    items: ToldItem[];
    hunks: ToldHunk[];
    lists: ToldHunk[][];
}

function read<T>(name: string): T {
    return JSON.parse(readFileSync(join(process.env["KODE_REPLAY"] ?? "", name), "utf8")) as T;
}

export const replay = read<Replay>("session.json");
export const expected = read<Expected>("expected.json");

/** The summary of an item for expected.json. */
export function toldItem({ body }: Item): ToldItem {
    switch (body.type) {
        case "toolCall":
            return { kind: body.type, tool: body.name, status: body.state };
        case "notice":
            return { kind: body.type, text: body.text, status: body.level };
        case "agentMessage":
            return { kind: body.type, text: body.text, status: body.interrupted ? "interrupted" : "complete" };
        default:
            return { kind: body.type, text: body.text, status: "complete" };
    }
}

/** The summary of a list of hunks for expected.json. */
export function toldHunks({ files }: ListEditsResult): ToldHunk[] {
    return files.flatMap(({ path, hunks }) =>
        hunks.map(({ state }) => ({ file: path.split("/").at(-1) ?? path, state })),
    );
}

/** A server that replays a recording, as fast as requested. */
export class ReplayServer {
    readonly sessionId = replay.first.sessionId;
    private readonly listeners = new Set<(event: AgentEventParams) => void>();
    private told = 0;

    /** It is used in the place of a real one. */
    static asServer(): { server: Server; replayed: ReplayServer } {
        const replayed = new ReplayServer();
        return { server: replayed as unknown as Server, replayed };
    }

    onEvent(listener: (event: AgentEventParams) => void): () => void {
        this.listeners.add(listener);
        return () => this.listeners.delete(listener);
    }

    onListChanged(): () => void {
        return () => {};
    }

    async request(method: string): Promise<unknown> {
        switch (method) {
            case "agent/session/load":
                return replay.first;
            case "agent/edits/list": {
                const last = replay.edits.findLast(({ seq }) => seq <= this.told);
                return last?.result ?? { files: [], history: [] };
            }
            case "agent/models/list": {
                const pointers = { main: "main", task: "main", compact: "main", quick: "main" };
                return { models: [], pointers, pricesAsOf: "2026-01-01" };
            }
            default: {
                const refusal: RpcError = { code: -32601, message: `${method} is no part of the recording` };
                return Promise.reject(refusal);
            }
        }
    }

    /** Tells all events. */
    play(): void {
        for (const event of replay.events) {
            this.told = event.bookmark.seq;
            for (const listener of this.listeners) listener(event);
        }
    }

}
