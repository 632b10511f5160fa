// How often the server is restarted, and after which waits.

import assert from "node:assert/strict";
import { test } from "node:test";
import { MAX_CRASHES, RestartPolicy, WINDOW_MS } from "../logic/restart.ts";

test("waits grow, and the fifth end is the last", () => {
    const policy = new RestartPolicy();
    const decisions = Array.from({ length: MAX_CRASHES }, (_, index) => policy.crashed(index));
    assert.deepEqual(decisions, [
        { again: true, delayMs: 500, attempt: 1 },
        { again: true, delayMs: 1000, attempt: 2 },
        { again: true, delayMs: 2000, attempt: 3 },
        { again: true, delayMs: 4000, attempt: 4 },
        { again: false },
    ]);
});

test("a server that ran well begins anew", () => {
    const policy = new RestartPolicy();
    for (let crash = 1; crash < MAX_CRASHES; crash++) policy.crashed(crash);
    assert.deepEqual(policy.crashed(WINDOW_MS + MAX_CRASHES), { again: true, delayMs: 500, attempt: 1 });
});

test("the user's own restart forgives what was", () => {
    const policy = new RestartPolicy();
    for (let crash = 1; crash < MAX_CRASHES; crash++) policy.crashed(0);
    policy.forgive();
    assert.deepEqual(policy.crashed(0), { again: true, delayMs: 500, attempt: 1 });
});
