// A server that ends by itself: told, started again, and nothing lost.
import assert from "node:assert/strict";
import { eventually, test } from "../lib/runner.mjs";

/** All that the page was notified of the connection, in order. */
const connections = async (window) =>
    (await window.text("connections")).trim().split("\n").filter(Boolean).map((line) => JSON.parse(line));

/** How often the server has ended by itself. */
const ends = async (window) =>
    (await connections(window)).filter(({ state }) => state === "crashed" || state === "stopped").length;

test("a killed server is told, started again, and the session goes on", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    const session = await window.openChat();
    await window.prompt("hello");
    await eventually("the first turn", async () => (await window.text("done")) === "end_turn\n");
    await window.ask("agent/draft/set", { text: "not yet sent" });
    const first = await window.serverPid();
    assert.ok(first);
    process.kill(first, "SIGKILL");
    await eventually("the banner's state", async () =>
        (await connections(window)).some(
            ({ state, reason, restartInMs }) => state === "crashed" && /SIGKILL/.test(reason) && restartInMs > 0,
        ),
    );
    await eventually("it is ready again", async () => (await window.text("connection")) === "ready");
    await window.ready();
    assert.notEqual(await window.serverPid(), first);
    assert.equal(await window.text("session"), session, "the page was not drawn anew");
    const { draft } = await window.ask("agent/session/load", { items: 1 });
    assert.equal(draft?.text, "not yet sent");
    await window.prompt("hello");
    await eventually("the second turn", async () => (await window.text("done")) === "end_turn\nend_turn\n");
});

test("a turn goes on while the window is loaded again, and its session is continued in the new one", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    const session = await window.openChat();
    await window.prompt("hold window");
    await workbench.waiting("hold-window");
    const before = await window.serverPid();
    await window.reload();
    await eventually("another server", async () => {
        const now = await window.serverPid();
        return now !== undefined && now !== before;
    });
    assert.doesNotThrow(() => process.kill(before, 0), "the first one goes on");
    await window.openChat();
    await window.status(/working/);
    await workbench.release("hold-window");
    await eventually("the end of the answer", async () => /It was held, and goes on\./.test(await window.text("said")));
    await eventually("the first server has ended", () => {
        try {
            process.kill(before, 0);
            return false;
        } catch {
            return true;
        }
    });
    await window.status(/ready/);
    assert.equal(await window.text("session"), session);
    await window.prompt("hello again");
    await eventually("the next answer", async () => /Hello from the scripted model/.test(await window.text("said")));
});

test("a prompt that waited when the server was killed is asked again and can be answered", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await window.openChat();
    await window.prompt("make it");
    const before = await eventually("the prompt", () => window.text("asked"));
    process.kill(await window.serverPid(), "SIGKILL");
    await eventually("it is gone", async () => (await ends(window)) === 1);
    await eventually("it is ready again", async () => (await window.text("connection")) === "ready");
    await window.status(/1 question for you/);
    // The status bar may still say so of the time before; the prompt waits again once the session was resumed.
    await eventually("the prompt is asked again", async () => {
        await window.ask("agent/permission/respond", { permissionId: before, decision: "allow" });
        return true;
    });
    await eventually("the end", async () => /end_turn/.test(await window.text("done")));
});

test("the fifth end is the last, and the user's restart begins anew", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await window.openChat();
    let last;
    for (let crash = 1; crash <= 5; crash++) {
        last = await eventually(`server ${crash}`, async () => {
            const pid = await window.serverPid();
            return pid !== last && (await window.text("connection")) === "ready" && pid;
        });
        process.kill(last, "SIGKILL");
        await eventually(`end ${crash}`, async () => (await ends(window)) === crash);
    }
    const label = await window.status(/ended 5 times/);
    assert.match(label, /Show Logs/);
    assert.equal(JSON.parse(await window.text("state")).connection.state, "stopped");
    await window.command("kode.server.restart");
    await window.ready();
});
