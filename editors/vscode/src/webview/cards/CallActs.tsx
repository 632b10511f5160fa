// The actions on a call.
//
// Rule: a call is stopped by itself, its siblings continue; a command that is opened in a terminal is typed there and
// not run.

import type { ToolCall } from "kode-protocol";

import { useApp } from "../app/context.ts";

export function CancelCall({ callId }: { callId: string }) {
    const app = useApp();
    const cancel = () =>
        app.attempt(() => app.host.request("agent/tool/cancel", { sessionId: app.session().sessionId, callId }));
    return (
        <button type="button" class="quiet" onClick={() => void cancel()}>
            Stop this call
        </button>
    );
}

/** Opens a terminal with the command typed and not run. */
export function InTerminal({ call }: { call: ToolCall }) {
    const app = useApp();
    const { command } = (call.input ?? {}) as { command?: unknown };
    if (call.kind !== "execute" || typeof command !== "string") return null;
    return (
        <button
            type="button"
            class="quiet"
            title="Opens a terminal with this command typed, for you to run"
            onClick={() => void app.attempt(() => app.host.act("openTerminal", { command }))}
        >
            Open in terminal
        </button>
    );
}
