// The actions on a call.
//
// Rule: a call is stopped by itself, its siblings continue. A command that is opened in a terminal is typed there and not run;
// one that runs in the background is shown there as it runs.

import type { BackgroundTask, ToolCall } from "kode-protocol";

import type { App } from "../app/app.ts";
import { useApp, useSession } from "../app/context.ts";

/** The tools that run commands. */
const SHELLS = ["Bash", "PowerShell"];

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

/** Has a command outlive its call, which ends and says so. */
export function MoveToBackground({ call }: { call: ToolCall }) {
    const app = useApp();
    if (!SHELLS.includes(call.name) || call.state !== "EXECUTING") return null;
    const move = () =>
        app.attempt(async () => {
            const { sessionId } = app.session();
            const { taskId } = await app.host.request("agent/tasks/background", { sessionId, callId: call.callId });
            app.announce(`Moved to the background as ${taskId}.`);
        });
    return (
        <button
            type="button"
            class="quiet"
            title="The command runs on, and the agent continues"
            onClick={() => void move()}
        >
            Move to background
        </button>
    );
}

/** Opens a terminal with the command typed and not run; with its output where the command runs in the background. */
export function InTerminal({ call }: { call: ToolCall }) {
    const app = useApp();
    const task = useSession((view) => view.tasks.find(({ callId }) => callId === call.callId));
    if (task) return <ShowTask task={task} />;
    return <TypedInTerminal app={app} call={call} />;
}

function ShowTask({ task }: { task: BackgroundTask }) {
    const app = useApp();
    return (
        <button
            type="button"
            class="quiet"
            title="Shows the output in a terminal as it comes; Ctrl+C there ends the command"
            onClick={() => void showTask(app, task)}
        >
            Open in terminal
        </button>
    );
}

/** Shows the output of a command in the background in a terminal. */
export function showTask(app: App, { taskId, title }: BackgroundTask): Promise<boolean> {
    return app.attempt(() => app.host.act("showTask", { sessionId: app.session().sessionId, taskId, title }));
}

function TypedInTerminal({ app, call }: { app: App; call: ToolCall }) {
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
