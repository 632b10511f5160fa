// The queue of attention: which sessions need the user, and in which order.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Event, PermissionPrompt, Snapshot } from "kode-protocol";
import { Attention } from "../logic/attention.ts";

const USAGE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

function prompt(permissionId: string): PermissionPrompt {
    return {
        sessionId: "s",
        permissionId,
        callId: "c",
        itemId: "i",
        tool: "Bash",
        title: "Run make",
        reason: "",
        preview: { type: "command", command: "make", cwd: "/" },
        risks: [],
        scopes: ["once"],
        input: {},
        timestamp: "",
    };
}

function snapshot(changes: Partial<Snapshot> = {}): Snapshot {
    return {
        sessionId: "s",
        title: "Fix",
        bookmark: { seq: 10, timestamp: "" },
        state: "READY",
        mode: "default",
        model: { name: "main" },
        items: [],
        moreItems: false,
        pendingPermissions: [],
        queue: [],
        usage: USAGE,
        ...changes,
    };
}

/** Folds events one after the other, numbered from 11. */
function fold(attention: Attention, ...events: Event[]) {
    return events.map((event) => {
        const seq = Math.max(10, attention.sessions.get("s")?.seq ?? 0) + 1;
        return attention.fold({ sessionId: "s", bookmark: { seq, timestamp: "" }, channel: "control", event });
    });
}

const asked = (id: string): Event => ({ type: "permission_required", prompt: prompt(id) });

function decided(permissionId: string): Event {
    return { type: "permission_decided", permissionId, callId: "c", outcome: "allow", scope: "once", by: "Neovim" };
}

test("a prompt of a session that another window writes has the number of the event before it", () => {
    const attention = new Attention();
    attention.load(snapshot());
    const fold = (event: Event, seq: number) =>
        attention.fold({ sessionId: "s", bookmark: { seq, timestamp: "" }, channel: "control", event });
    assert.deepEqual(fold(asked("old"), 9).asked, [], "the snapshot is newer");
    assert.equal(fold(asked("p"), 10).asked.length, 1);
    assert.deepEqual(fold(asked("p"), 10).asked, [], "once");
    assert.deepEqual(fold(decided("p"), 10).answered, ["p"]);
});

test("a prompt is told once and is gone with the first answer, whoever gives it", () => {
    const attention = new Attention();
    attention.load(snapshot());
    const [first, again] = fold(attention, asked("p"), asked("p"));
    assert.deepEqual([first?.asked.length, again?.asked.length], [1, 0]);
    assert.equal(attention.mood(), "waiting");
    const [gone, twice] = fold(attention, decided("p"), decided("p"));
    assert.deepEqual([gone?.answered, twice?.answered], [["p"], []]);
    assert.equal(attention.mood(), "idle");
});

test("a snapshot says what waits, and what was answered meanwhile", () => {
    const attention = new Attention();
    attention.load(snapshot({ pendingPermissions: [prompt("old")] }));
    const step = attention.load(snapshot({ pendingPermissions: [prompt("new")] }));
    assert.deepEqual(step.answered, ["old"]);
    assert.deepEqual(
        step.asked.map((waiting) => waiting.kind === "permission" && waiting.prompt.permissionId),
        ["new"],
    );
});

test("what a snapshot has already changes nothing any more", () => {
    const attention = new Attention();
    attention.load(snapshot({ state: "WORKING" }));
    const old = { sessionId: "s", bookmark: { seq: 9, timestamp: "" }, channel: "monitor" as const };
    assert.equal(attention.fold({ ...old, event: { type: "state_changed", state: "READY" } }).changed, false);
    assert.equal(attention.mood(), "working");
});

test("after a crash only what is told again waits", () => {
    const attention = new Attention();
    attention.load(snapshot({ pendingPermissions: [prompt("a"), prompt("b")], state: "PAUSED" }));
    const resumed: Event = { type: "agent_resumed", sealed: [], sealedCalls: [], strategy: "crash", skippedRecords: 0 };
    const [step] = fold(attention, resumed, asked("b"));
    assert.deepEqual(step?.answered, ["a", "b"]);
    assert.deepEqual([...(attention.sessions.get("s")?.waiting.keys() ?? [])], ["b"]);
});

test("a turn that failed is told until somebody has looked", () => {
    const attention = new Attention();
    attention.load(snapshot());
    const done: Event = {
        type: "done",
        turnId: "t",
        stopReason: "error",
        usage: USAGE,
        durationMs: 1,
        modelCalls: 1,
        toolCalls: 0,
    };
    fold(attention, { type: "turn_started", turnId: "t" }, done);
    assert.equal(attention.mood(), "error");
    assert.deepEqual([attention.seen("s"), attention.seen("s")], [true, false]);
    assert.equal(attention.mood(), "idle");
});

test("what waits comes before what failed, and that before what works", () => {
    const attention = new Attention();
    attention.load(snapshot({ state: "WORKING" }));
    assert.equal(attention.mood(), "working");
    fold(attention, asked("p"));
    assert.equal(attention.mood(), "waiting");
    assert.deepEqual(attention.forget("s"), ["p"]);
    assert.equal(attention.mood(), "idle");
});

test("what waited when the server ended is offered no more, and asked anew once the session is loaded again", () => {
    const attention = new Attention();
    attention.load(snapshot({ pendingPermissions: [prompt("p1")] }));
    assert.deepEqual(attention.lost(), ["p1"]);
    assert.deepEqual(attention.waiting(), []);
    assert.deepEqual(attention.lost(), []);
    const step = attention.load(snapshot({ pendingPermissions: [prompt("p1")] }));
    assert.deepEqual(step.asked.length, 1);
});
