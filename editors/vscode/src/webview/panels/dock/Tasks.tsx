// Commands that run in the background.
//
// Rule: each can be read, shown in a terminal and stopped; the transcript reports its end.

import type { BackgroundTask } from "kode-protocol";

import type { App } from "../../app/app.ts";
import { useApp, useSession } from "../../app/context.ts";
import { showTask } from "../../cards/CallActs.tsx";
import { exactLine } from "../../text.ts";
import { Spinner } from "../Icon.tsx";
import { IconAct } from "../IconAct.tsx";

/** Bytes of output that are opened in an editor. */
const SHOWN = 65_536;

export function Tasks() {
    const app = useApp();
    const tasks = useSession((view) => view.tasks) ?? [];
    if (tasks.length === 0) return null;
    return (
        <section class="dock-part tasks" aria-label="In the background">
            <ul class="file-list">
                {tasks.map((task) => (
                    <li key={task.taskId} class="file-row">
                        <Spinner />
                        <span class="queued-text mono" title={exactLine(task.title)}>
                            {exactLine(task.title)}
                        </span>
                        <button type="button" class="quiet" onClick={() => void show(app, task)}>
                            Output
                        </button>
                        <IconAct
                            icon="command"
                            label={`Open ${exactLine(task.title)} in a terminal`}
                            title="Open in terminal"
                            onClick={() => void showTask(app, task)}
                        />
                        <IconAct icon="stop" label={`Stop ${exactLine(task.title)}`} onClick={() => void stop(app, task)} />
                    </li>
                ))}
            </ul>
        </section>
    );
}

function show(app: App, { taskId, title }: BackgroundTask): Promise<boolean> {
    return app.attempt(async () => {
        const { sessionId } = app.session();
        const page = await app.host.request("agent/output/read", { sessionId, taskId, limit: SHOWN });
        await app.host.act("openText", { title, text: page.text });
    });
}

function stop(app: App, { taskId }: BackgroundTask): Promise<boolean> {
    return app.attempt(() => app.host.request("agent/tasks/stop", { sessionId: app.session().sessionId, taskId }));
}
