// Open prompts for the user: told where they look, answered from anywhere, gone everywhere.
import assert from "node:assert/strict";
import fs from "node:fs";
import { eventually, test } from "../lib/runner.mjs";

/** A window with a prompt that waits, hidden from the user. */
async function asked(workbench, settings) {
    const window = await workbench.open({ "a.txt": "one\n" }, settings);
    await window.openChat();
    await window.prompt("make it");
    await eventually("the prompt", async () => (await window.text("asked")) !== "");
    return window;
}

const toast = (window) => window.page.locator(".notifications-toasts .notification-list-item", { hasText: "Allow Once" });

test("a notification for a user who looks elsewhere allows once, and its text is no link", async (workbench) => {
    const window = await asked(workbench, { "kode.notifications.permissions": "always" });
    await window.status(/1 question for you/);
    await toast(window).waitFor();
    const links = await toast(window).locator(".notification-list-item-message a").allTextContents();
    assert.deepEqual(links, ["Allow Once", "Open"], "the model's text made no third one");
    await window.shot("permission-notification");
    await toast(window).locator("a", { hasText: "Allow Once" }).click();
    await eventually("the command ran", () => fs.existsSync(window.path("made-it")));
    await eventually("the answer", async () => /It said/.test(await window.text("said")));
    await toast(window).waitFor({ state: "detached" });
    await window.status(/ready/);
});

test("a notification goes when the prompt is answered in the chat", async (workbench) => {
    const window = await asked(workbench, { "kode.notifications.permissions": "always" });
    await toast(window).waitFor();
    const permissionId = await window.text("asked");
    await window.ask("agent/permission/respond", { permissionId, decision: "deny" });
    await toast(window).waitFor({ state: "detached" });
    assert.equal(fs.existsSync(window.path("made-it")), false);
});

test("a user who sees the chat is not notified; one who leaves the window is", async (workbench) => {
    const window = await asked(workbench, {});
    assert.equal(await toast(window).count(), 0);
    const isFocused = () => window.run((vscode) => vscode.window.state.focused);
    assert.equal(await isFocused(), true);
    const other = await workbench.context.newPage();
    await other.bringToFront();
    // A headless page keeps its focus behind others; the window gets focus events as from a window system.
    await window.page.evaluate(() => {
        Object.defineProperty(document, "hasFocus", { value: () => false, configurable: true });
        window.dispatchEvent(new Event("focus"));
        window.dispatchEvent(new Event("blur"));
    });
    await eventually("the window has lost its focus", async () => !(await isFocused()));
    await toast(window).waitFor();
    await other.close();
});

test("the badge of the view counts what waits", async (workbench) => {
    const window = await asked(workbench, {});
    const badge = window.page.locator('.activitybar .action-item:has([aria-label^="Kode"]) .badge-content');
    await eventually("the badge", async () => (await badge.first().textContent()) === "1");
    await window.ask("agent/permission/respond", { permissionId: await window.text("asked"), decision: "deny" });
    await eventually("no badge", async () => !(await badge.first().isVisible()));
});
