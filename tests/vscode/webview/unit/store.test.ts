// The store folds what the real server has told; see record.ts.
//
// Rule: wherever a page begins, it comes to the same: a snapshot at n and the events after n are all events folded.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import type { AgentEventParams, CallState, Event, Item, Snapshot } from "../../../../protocol/generated/kode";
import {
    foldAgentEvent,
    foldEvent,
    sessionOf,
    waitingFor,
    withAgentTranscript,
    withKnownAgents,
    type SessionView,
} from "../../../../editors/vscode/src/webview/store/session";
import {
    EMPTY,
    findItem,
    itemsOf,
    MAX_ITEMS,
    oldestItem,
    prependItems,
    putItem,
    rewindTo,
    transcriptOf,
} from "../../../../editors/vscode/src/webview/store/transcript";
import type { Recording } from "../record";

const recording = JSON.parse(
    readFileSync(join(process.env["KODE_RECORDED"] ?? "", "conversation.json"), "utf8"),
) as Recording;

/** All of a view that a snapshot tells. */
function told(view: SessionView): unknown {
    const { context } = view;
    return {
        title: view.title,
        state: view.state,
        mode: view.mode,
        model: view.model,
        effort: view.effort,
        seq: view.seq,
        items: itemsOf(view.transcript),
        permissions: view.permissions,
        questions: view.questions,
        todos: view.todos,
        goal: view.goal,
        team: view.team,
        queue: view.queue,
        steering: view.steering,
        queuePaused: view.queuePaused,
        draft: view.draft,
        tasks: view.tasks,
        usage: view.usage,
        cost: view.cost === undefined ? undefined : Number(view.cost.toFixed(9)),
        // While a turn runs the server counts later messages; the events report it with the next answer.
        context: context && {
            tokens: view.state === "READY" ? context.tokens : undefined,
            window: context.window,
        },
    };
}

const fold = (view: SessionView, events: readonly AgentEventParams[]) => events.reduce(foldEvent, view);
const upTo = (seq: number) => recording.events.filter((event) => event.bookmark.seq <= seq);

for (const [index, snapshot] of recording.snapshots.entries()) {
    test(`all events up to snapshot ${index} come to what it says`, () => {
        const folded = told(fold(sessionOf(recording.first), upTo(snapshot.bookmark.seq)));
        assert.deepEqual(folded, {
            ...(told(sessionOf(snapshot)) as object),
            seq: (folded as { seq: number }).seq,
        });
    });

    test(`snapshot ${index} and the events after it come to what all events do`, () => {
        assert.deepEqual(
            told(fold(sessionOf(snapshot), recording.events)),
            told(fold(sessionOf(recording.first), recording.events)),
        );
    });
}

test("events that are in the snapshot change nothing, in whatever number they come again", () => {
    const view = fold(sessionOf(recording.first), recording.events);
    assert.equal(fold(view, recording.events), view);
});

test("a fold never changes the view it began with", () => {
    let view = sessionOf(recording.first);
    for (const event of recording.events) {
        const before = JSON.stringify(told(view));
        const after = foldEvent(view, event);
        assert.equal(JSON.stringify(told(view)), before, event.event.type);
        view = after;
    }
});

test("what waits for the user is counted, and gone once it was answered", () => {
    const counts: number[] = [];
    let view = sessionOf(recording.first);
    for (const event of recording.events) {
        view = foldEvent(view, event);
        counts.push(waitingFor(view));
    }
    assert.ok(Math.max(...counts) >= 1);
    assert.equal(counts.at(-1), 0);
});

test("items of sub-agents are no part of the session's own transcript", () => {
    const view = fold(sessionOf(recording.first), recording.events);
    assert.ok(
        [...view.agents.values()].some((agent) => agent.description === "Look around" && !agent.running),
    );
    assert.ok(itemsOf(view.transcript).every((item) => item.agentId === undefined));
    assert.ok([...view.agents.values()].some((agent) => agent.calls.size > 0 && agent.latest !== ""));
});

let number = 1_000_000;
function event(view: SessionView, event: Event, seq = ++number): AgentEventParams {
    return {
        sessionId: view.sessionId,
        bookmark: { seq, timestamp: "2026-01-01T00:00:00Z" },
        channel: "progress",
        event,
    };
}

const working = { agentId: "agent_1", callId: "call_1", agentType: "explore", description: "Look" };
const words = (itemId: string, text: string): Item => ({
    itemId,
    turnId: "t",
    timestamp: "",
    agentId: working.agentId,
    body: { type: "agentMessage", text, complete: false, interrupted: false },
});

test("a call of a sub-agent is counted once, however many states it goes through", () => {
    let view = sessionOf({ ...recording.first, subagents: [working] });
    const call = (itemId: string, state: CallState): Item => ({
        itemId,
        turnId: "t",
        agentId: working.agentId,
        timestamp: "2026-01-01T00:00:00Z",
        body: { type: "toolCall", callId: `call of ${itemId}`, name: "Read", kind: "read", title: itemId, display: "", input: {}, state } as never,
    });
    for (const itemId of ["a", "b", "c"]) {
        view = foldEvent(view, event(view, { type: "item_added", item: call(itemId, "PENDING") }));
        for (const state of ["PENDING", "EXECUTING", "COMPLETED"] as const) {
            view = foldEvent(view, event(view, { type: "item_updated", item: call(itemId, state) }));
        }
    }
    assert.equal(view.agents.get(working.agentId)?.calls.size, 3);
});

test("sub-agents that work are in the view of a snapshot, and what is known of others stays with their end", () => {
    const view = sessionOf({ ...recording.first, subagents: [working] });
    assert.deepEqual(
        [...view.agents.values()].map(({ callId, description, running }) => [callId, description, running]),
        [["call_1", "Look", true]],
    );
    const busy = foldEvent(view, event(view, { type: "item_added", item: words("i", "a") }));
    const known = withKnownAgents(sessionOf(recording.first), busy.agents);
    assert.deepEqual(
        [...known.agents.values()].map(({ running }) => running),
        [false],
        "it is not among those that work any more",
    );
    const again = withKnownAgents(view, new Map([...known.agents, ["other", { ...working, agentId: "other" }]] as never));
    assert.deepEqual(
        [...again.agents].map(([id, { running }]) => [id, running]),
        [
            ["agent_1", true],
            ["other", false],
        ],
    );
});

test("a transcript of a sub-agent has every event once, whether it came before the transcript or after it", () => {
    const view = sessionOf({ ...recording.first, subagents: [working] });
    const loaded = {
        agentId: working.agentId,
        agentType: "explore",
        description: "Look",
        items: [words("i", "one two")],
        moreItems: false,
        usage: view.usage,
        bookmark: { seq: 2_000_000, timestamp: "" },
    };
    const chunk = (text: string, seq: number) => event(view, { type: "text_chunk", itemId: "i", text }, seq);
    const [old, early, late] = [chunk(" two", 1_999_999), chunk(" three", 2_000_001), chunk(" four", 2_000_002)];
    // The first two came while the transcript was on its way; the last one after it.
    const before = fold(view, [old, early]);
    const joined = [old, early].reduce(
        (now, params) => foldAgentEvent(now, working.agentId, params),
        withAgentTranscript(before, loaded),
    );
    const after = foldEvent(joined, late);
    const said = (of: SessionView) =>
        itemsOf(of.agents.get(working.agentId)?.transcript ?? EMPTY).map(({ body }) => (body as { text: string }).text);
    assert.deepEqual(said(after), ["one two three four"]);
    // An event that is in the transcript and comes after it.
    const slow = foldEvent(withAgentTranscript(view, loaded), chunk(" two", 1_999_999));
    assert.deepEqual(said(slow), ["one two"]);
});

test("a gap asks for a new snapshot and keeps what there is", () => {
    const view = fold(sessionOf(recording.first), recording.events);
    const gap = foldEvent(view, event(view, { type: "gap", since: 1, oldest: 9 }, 1));
    assert.equal(gap.gap, true);
    assert.equal(gap.transcript, view.transcript);
});

test("who writes the session is told with an old number and counts all the same", () => {
    const view = sessionOf(recording.first);
    const writer = { pid: 7, client: "other", version: "1", since: "2026-01-01T00:00:00Z" };
    const followed = foldEvent(view, event(view, { type: "lease_changed", writer, isMine: false }, view.seq));
    assert.deepEqual(followed.following, { by: writer });
    assert.equal(
        foldEvent(followed, event(view, { type: "lease_changed", isMine: true }, view.seq)).following,
        undefined,
    );
});

test("a prompt of a session that another window writes has an old number and waits all the same", () => {
    const required = recording.events.find(({ event }) => event.type === "permission_required");
    assert.ok(required?.event.type === "permission_required");
    const view = sessionOf(recording.first);
    const asked = foldEvent(view, event(view, required.event, view.seq));
    assert.equal(waitingFor(asked), 1);
    assert.equal(waitingFor(foldEvent(asked, event(asked, required.event, asked.seq))), 1, "once");
    assert.equal(waitingFor(foldEvent(view, event(view, required.event, view.seq - 1))), 0, "the snapshot is newer");
    const decided = recording.events.find(({ event }) => event.type === "permission_decided");
    assert.ok(decided?.event.type === "permission_decided");
    const { permissionId } = required.event.prompt;
    assert.equal(waitingFor(foldEvent(asked, event(asked, { ...decided.event, permissionId }, asked.seq))), 0);
});

test("an event of a newer server changes nothing but the bookmark", () => {
    const view = sessionOf(recording.first);
    const after = foldEvent(view, event(view, { type: "from_the_future" } as unknown as Event));
    assert.deepEqual({ ...after, seq: 0 }, { ...view, seq: 0 });
});

test("prompts from before a crash wait no more unless they are told again", () => {
    const asked = fold(
        sessionOf(recording.first),
        recording.events.slice(
            0,
            recording.events.findIndex(({ event }) => event.type === "permission_required") + 1,
        ),
    );
    assert.equal(waitingFor(asked), 1);
    const resumed = foldEvent(
        asked,
        event(asked, {
            type: "agent_resumed",
            sealed: [],
            sealedCalls: [],
            strategy: "crash",
            skippedRecords: 0,
        }),
    );
    assert.equal(waitingFor(resumed), 0);
});

test("output of a running call replaces what was there, is bounded, and goes with its end", () => {
    const view = sessionOf(recording.first);
    const progress = (text: string): Event => ({ type: "tool:progress", itemId: "i", callId: "c", text });
    const shown = foldEvent(
        foldEvent(view, event(view, progress("a"))),
        event(view, progress("b".repeat(100_000))),
    );
    assert.ok((shown.live.get("c")?.length ?? 0) <= 16_384);
    const item = {
        itemId: "i",
        turnId: "t",
        timestamp: "",
        body: { type: "toolCall", callId: "c" },
    } as unknown as Item;
    assert.equal(foldEvent(shown, event(view, { type: "tool:end", item })).live.size, 0);
});

const item = (index: number): Item => ({
    itemId: `item_${index}`,
    turnId: "turn",
    timestamp: "2026-01-01T00:00:00Z",
    body: { type: "agentMessage", text: String(index), complete: true, interrupted: false },
});
const items = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, index) => item(from + index));

test("a piece of text makes one page anew, however long the transcript is", () => {
    const before = transcriptOf(items(0, 5_000), false);
    const after = putItem(before, { ...item(4_999), turnId: "other" });
    assert.equal(after.pages.filter((page, index) => page !== before.pages[index]).length, 1);
});

test("a transcript is bounded: the oldest items go and can be asked for again", () => {
    let transcript = EMPTY;
    for (const one of items(0, MAX_ITEMS + 1_000)) transcript = putItem(transcript, one);
    assert.ok(transcript.count <= MAX_ITEMS);
    assert.equal(transcript.more, true);
    assert.equal(transcript.count, itemsOf(transcript).length);
    assert.equal(itemsOf(transcript).at(-1)?.itemId, `item_${MAX_ITEMS + 999}`);
});

test("going back takes an item and all after it, and older pages go before all others", () => {
    const transcript = rewindTo(transcriptOf(items(100, 300), true), "item_150");
    assert.deepEqual([transcript.count, itemsOf(transcript).at(-1)?.itemId], [50, "item_149"]);
    const whole = prependItems(transcript, items(0, 100), false);
    assert.deepEqual([whole.count, oldestItem(whole)?.itemId, whole.more], [150, "item_0", false]);
    assert.equal(findItem(whole, "item_149")?.itemId, "item_149");
    assert.equal(
        rewindTo(transcriptOf(items(100, 300), true), "item_3").count,
        0,
        "it is older than all that are here",
    );
});

test("snapshots are what was recorded, and not made up", () => {
    assert.ok(recording.snapshots.length >= 10 && recording.events.length >= 100);
    assert.ok(
        (recording.snapshots as Snapshot[]).every(
            (snapshot) => snapshot.sessionId === recording.first.sessionId,
        ),
    );
});
