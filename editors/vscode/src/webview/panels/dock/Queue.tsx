// Prompts that wait: for the running turn, or for a turn of their own.
//
// Rule: each can be edited, moved, sent and removed, by keys as by the pointer.

import type { QueueOp, QueuedPrompt } from "kode-protocol";
import { useState } from "preact/hooks";

import { useApp, useSession } from "../../app/context.ts";
import type { App } from "../../app/app.ts";
import { counted, prose } from "../../text.ts";
import { Icon } from "../Icon.tsx";
import { IconAct } from "../IconAct.tsx";

export function Queue() {
    const app = useApp();
    const queue = useSession((view) => view.queue) ?? [];
    const steering = useSession((view) => view.steering) ?? [];
    const paused = useSession((view) => view.queuePaused) ?? false;
    if (queue.length + steering.length === 0) return null;
    const [first] = queue;
    const title = [
        steering.length > 0 ? `${counted(steering.length, "message")} to the running turn` : "",
        queue.length > 0 ? `${queue.length} queued${paused ? " (paused)" : ""}` : "",
    ];
    return (
        <section class="dock-part queue" aria-label="Queue">
            <div class="dock-line">
                <Icon name="queue" />
                <span class="dock-title">{title.filter(Boolean).join(", ")}</span>
                {paused && first && (
                    <button type="button" class="quiet" onClick={() => change(app, { type: "promote", queueId: first.queueId })}>
                        Resume
                    </button>
                )}
            </div>
            <ol class="queue-list">
                {steering.map((prompt) => (
                    <Queued key={prompt.queueId} prompt={prompt} places={undefined} />
                ))}
                {queue.map((prompt, index) => (
                    <Queued key={prompt.queueId} prompt={prompt} places={placesOf(queue, index)} />
                ))}
            </ol>
        </section>
    );
}

/** Where a queued prompt can go. */
interface Places {
    /** The prompt it would come before when it moves up; absent for the first. */
    above?: string;
    /** The prompt it would come before when it moves down; null for none, absent for the last. */
    below?: string | null;
}

function placesOf(queue: readonly QueuedPrompt[], index: number): Places {
    const above = queue[index - 1]?.queueId;
    return {
        ...(above === undefined ? {} : { above }),
        ...(index < queue.length - 1 ? { below: queue[index + 2]?.queueId ?? null } : {}),
    };
}

function change(app: App, op: QueueOp): void {
    void app.attempt(() => app.host.request("agent/queue/update", { sessionId: app.session().sessionId, op }));
}

interface QueuedProps {
    prompt: QueuedPrompt;
    /** Absent for a message to the running turn, which has no place. */
    places: Places | undefined;
}

function Queued({ prompt, places }: QueuedProps) {
    const app = useApp();
    const [editing, setEditing] = useState(false);
    const { queueId } = prompt;
    const text = prose(prompt.text);
    if (editing) return <Editing prompt={prompt} onClose={() => setEditing(false)} />;
    const move = (before: string | null | undefined) =>
        before !== undefined && change(app, { type: "move", queueId, ...(before === null ? {} : { before }) });
    return (
        <li class="queued">
            <span class="queued-text" title={text}>
                {text}
            </span>
            <span class="queued-acts">
                {places && (
                    <>
                        <IconAct icon="up" label="Move up" disabled={places.above === undefined} onClick={() => move(places.above)} />
                        <IconAct
                            icon="down"
                            label="Move down"
                            disabled={places.below === undefined}
                            onClick={() => move(places.below)}
                        />
                        <IconAct icon="play" label="Send now" onClick={() => change(app, { type: "promote", queueId })} />
                    </>
                )}
                <IconAct icon="edit" label="Edit" onClick={() => setEditing(true)} />
                <IconAct icon="close" label="Remove" onClick={() => change(app, { type: "remove", queueId })} />
            </span>
        </li>
    );
}

function Editing({ prompt, onClose }: { prompt: QueuedPrompt; onClose: () => void }) {
    const app = useApp();
    const [text, setText] = useState(prompt.text);
    const save = () => {
        onClose();
        if (text.trim() !== "" && text !== prompt.text) change(app, { type: "edit", queueId: prompt.queueId, text });
    };
    return (
        <li class="queued editing">
            <textarea
                aria-label="Queued prompt"
                value={text}
                rows={Math.min(8, text.split("\n").length + 1)}
                ref={(element) => {
                    if (element && document.activeElement !== element) element.focus();
                }}
                onInput={(event) => setText(event.currentTarget.value)}
                onKeyDown={(event) => {
                    if (event.key === "Escape") onClose();
                    else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) save();
                    else return;
                    event.preventDefault();
                    event.stopPropagation();
                }}
            />
            <div class="actions">
                <button type="button" class="primary" onClick={save}>
                    Save
                </button>
                <button type="button" class="quiet" onClick={onClose}>
                    Cancel
                </button>
            </div>
        </li>
    );
}
