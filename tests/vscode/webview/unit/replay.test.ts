// The session that every client replays; see tests/fixtures/replay.
//
// Rule: the expected text is written by hand; see README.md there.

import assert from "node:assert/strict";
import test from "node:test";

import { foldEvent, sessionOf } from "../../../../editors/vscode/src/webview/store/session";
import { itemsOf } from "../../../../editors/vscode/src/webview/store/transcript";
import { expected, replay, toldHunks, toldItem } from "../lib/replayed";

test("the recorded session comes to the items that are expected", () => {
    const view = replay.events.reduce(foldEvent, sessionOf(replay.first));
    assert.deepEqual(itemsOf(view.transcript).map(toldItem), expected.items);
    assert.deepEqual([view.permissions, view.questions, view.state], [[], [], "READY"]);
});

test("the recorded session comes to the same items wherever its events are cut", () => {
    const whole = replay.events.reduce(foldEvent, sessionOf(replay.first));
    for (let cut = 0; cut < replay.events.length; cut += 1) {
        const view = replay.events.slice(0, cut).reduce(foldEvent, sessionOf(replay.first));
        assert.deepEqual(replay.events.reduce(foldEvent, view), whole, `cut at ${cut}`);
    }
});

test("each list of hunks has the states that are expected", () => {
    assert.deepEqual(
        replay.edits.map(({ result }) => toldHunks(result)),
        expected.lists,
    );
    assert.deepEqual(expected.lists.at(-1), expected.hunks);
});

test("an event that makes a list of hunks out of date has it asked for again", () => {
    let view = sessionOf(replay.first);
    let lists = 0;
    for (const event of replay.events) {
        const before = view.edits;
        view = foldEvent(view, event);
        if (view.edits !== before) lists += 1;
        const listed = replay.edits.findIndex(({ seq }) => seq === event.bookmark.seq);
        const differs = JSON.stringify(expected.lists[listed]) !== JSON.stringify(expected.lists[listed - 1] ?? []);
        if (listed >= 0 && differs) assert.ok(lists > 0, `nothing told of list ${listed}`);
        if (listed >= 0) lists = 0;
    }
});
