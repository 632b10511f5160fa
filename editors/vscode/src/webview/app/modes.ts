// The modes of a session: names for people, and the way from one to the next.
//
// Rule: a mode is called the same everywhere on the page. The key goes through the modes of daily work only; a mode that asks
// nothing is chosen from the list.

import type { ConfigureSessionParams, Mode } from "kode-protocol";

import type { App } from "./app.ts";
import { ensureSession } from "./sessionStore.ts";
import { activeSession } from "./state.ts";

/** A mode as it is offered. */
export interface ModeChoice {
    readonly value: Mode;
    readonly label: string;
    readonly detail: string;
}

export const MODES: readonly ModeChoice[] = [
    { value: "default", label: "Ask", detail: "Reads; asks before edits and commands" },
    { value: "acceptEdits", label: "Edit", detail: "Edits in the workspace without asking; asks before commands" },
    { value: "plan", label: "Plan", detail: "Reads and plans; changes nothing" },
    { value: "readonly", label: "Read only", detail: "Edits nothing; asks before commands" },
    { value: "approval", label: "Ask for all", detail: "Asks before everything, reads too" },
    { value: "dontAsk", label: "Never ask", detail: "Runs what rules allow; refuses the rest" },
    { value: "bypassPermissions", label: "Bypass", detail: "Runs everything that no rule or guard holds back" },
];

/** The modes that the key goes through. */
const CYCLE: readonly Mode[] = ["default", "acceptEdits", "plan"];

/** The name of a mode for people. */
export function modeLabel(mode: Mode): string {
    return MODES.find(({ value }) => value === mode)?.label ?? mode;
}

/** Goes to the next mode of daily work. */
export function nextMode(app: App): void {
    const view = activeSession(app.state);
    if (view?.following) return;
    const mode = CYCLE[(CYCLE.indexOf(view?.mode ?? "default") + 1) % CYCLE.length] ?? "default";
    configure(app, { mode });
    app.announce(`Mode: ${modeLabel(mode)}.`);
}

/** Changes mode, model or effort of the session, which begins now if absent. */
export function configure(app: App, change: Omit<ConfigureSessionParams, "sessionId">): void {
    void app.attempt(async () => {
        const { mode, model } = change;
        const how = { ...(mode === undefined ? {} : { mode }), ...(model === undefined ? {} : { model }) };
        const sessionId = await ensureSession(app, how);
        const now = await app.host.request("agent/session/configure", { sessionId, ...change });
        app.changeSession(sessionId, (view) => ({
            ...view,
            mode: now.mode,
            model: now.model.name,
            effort: now.effort,
            outputStyle: now.outputStyle,
            sandbox: now.sandbox,
        }));
    });
}
