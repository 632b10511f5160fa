// What stands between the transcript and the prompt: what waits for the user, what is to be done, what waits in the queue, what
// was changed, and what went wrong.
//
// Rule: each part is there only while there is something in it, and shows what it has in one line until it is opened.

import type { EditedFile, QueueOp, QueuedPrompt, Todo, Uri } from "kode-protocol";
import { useState } from "preact/hooks";

import { useApp, useFollows, useSelect, useSession, useToggle } from "../app/context.ts";
import { decideProposals, resolveEdits, takeBack, unresolved } from "../app/edits.ts";
import { PermissionCard } from "../cards/Permission.tsx";
import { QuestionCard } from "../cards/Question.tsx";
import { Counts } from "../cards/Diff.tsx";
import { counted, exact, exactLine, prose } from "../text.ts";
import { Icon, type IconName, Spinner } from "./Icon.tsx";
import { Words } from "./Words.tsx";

/** The permission prompt or question that waits longest. */
export function Waiting() {
    const permissions = useSession((view) => view.permissions) ?? [];
    const questions = useSession((view) => view.questions) ?? [];
    const others = permissions.length + questions.length - 1;
    const [permission] = permissions;
    const [question] = questions;
    if (permission && (!question || permission.timestamp <= question.timestamp)) {
        return <PermissionCard key={permission.permissionId} prompt={permission} others={others} />;
    }
    return question ? <QuestionCard key={question.questionId} question={question} others={others} /> : null;
}

const TODO_WORDS: Record<Todo["status"], string> = {
    completed: "done",
    in_progress: "being done",
    pending: "to do",
};

/** The list of what is to be done. */
export function Todos() {
    const todos = useSession((view) => view.todos) ?? [];
    const [open, toggle] = useToggle("dock:todos", false);
    if (todos.length === 0) return null;
    const done = todos.filter((todo) => todo.status === "completed").length;
    const current = todos.find((todo) => todo.status === "in_progress");
    return (
        <section class="dock-part todos" aria-label="To do">
            <button type="button" class="dock-line" aria-expanded={open} onClick={toggle}>
                <Icon name="list" />
                <span class="dock-title">
                    {current ? prose(current.activeForm) : done === todos.length ? "All done" : "To do"}
                </span>
                <span class="dock-aside">
                    {done} of {todos.length}
                </span>
                <span class="card-chevron">
                    <Icon name="chevron" />
                </span>
            </button>
            {open && (
                <ol class="todo-list">
                    {todos.map((todo, index) => (
                        <li key={index} class={todo.status}>
                            <span class="todo-mark" role="img" aria-label={TODO_WORDS[todo.status]}>
                                {todo.status === "completed" ? (
                                    <Icon name="check" />
                                ) : todo.status === "in_progress" ? (
                                    <Spinner />
                                ) : null}
                            </span>
                            {prose(todo.content)}
                        </li>
                    ))}
                </ol>
            )}
        </section>
    );
}

/** Commands that go on behind the conversation. */
export function Tasks() {
    const app = useApp();
    const tasks = useSession((view) => view.tasks) ?? [];
    if (tasks.length === 0) return null;
    const show = (taskId: string, title: string) =>
        void app.attempt(async () => {
            const { sessionId } = app.session();
            const page = await app.host.request("agent/output/read", { sessionId, taskId, limit: 65_536 });
            await app.host.act("openText", { title, text: page.text });
        });
    const stop = (taskId: string) =>
        void app.attempt(() =>
            app.host.request("agent/tasks/stop", { sessionId: app.session().sessionId, taskId }),
        );
    return (
        <section class="dock-part tasks" aria-label="In the background">
            <ul class="file-list">
                {tasks.map((task) => (
                    <li key={task.taskId} class="file-row">
                        <Spinner />
                        <span class="queued-text mono" title={exactLine(task.title)}>
                            {exactLine(task.title)}
                        </span>
                        <button type="button" class="quiet" onClick={() => show(task.taskId, task.title)}>
                            Output
                        </button>
                        <IconAct
                            icon="stop"
                            label={`Stop ${exactLine(task.title)}`}
                            onClick={() => stop(task.taskId)}
                        />
                    </li>
                ))}
            </ul>
        </section>
    );
}

/** What waits for its turn. */
export function Queue() {
    const app = useApp();
    const queue = useSession((view) => view.queue) ?? [];
    const steering = useSession((view) => view.steering) ?? [];
    const paused = useSession((view) => view.queuePaused) ?? false;
    if (queue.length + steering.length === 0) return null;
    const [first] = queue;
    return (
        <section class="dock-part queue" aria-label="Queue">
            <div class="dock-line">
                <Icon name="steer" />
                <span class="dock-title">
                    {[
                        steering.length > 0 ? `${counted(steering.length, "word")} to the running turn` : "",
                        queue.length > 0 ? `${queue.length} waiting` : "",
                    ]
                        .filter(Boolean)
                        .join(", ")}
                    {paused && queue.length > 0 ? " (paused)" : ""}
                </span>
                {paused && first && (
                    <button
                        type="button"
                        class="quiet"
                        onClick={() =>
                            void app.attempt(() =>
                                app.host.request("agent/queue/update", {
                                    sessionId: app.session().sessionId,
                                    op: { type: "promote", queueId: first.queueId },
                                }),
                            )
                        }
                    >
                        Go on
                    </button>
                )}
            </div>
            <ol class="queue-list">
                {steering.map((prompt) => (
                    <Queued key={prompt.queueId} prompt={prompt} steering />
                ))}
                {queue.map((prompt, index) => (
                    <Queued
                        key={prompt.queueId}
                        prompt={prompt}
                        steering={false}
                        {...(index > 0 && queue[index - 1]
                            ? { above: queue[index - 1]?.queueId as string }
                            : {})}
                        {...(index < queue.length - 1 ? { below: queue[index + 2]?.queueId ?? null } : {})}
                    />
                ))}
            </ol>
        </section>
    );
}

interface QueuedProps {
    prompt: QueuedPrompt;
    steering: boolean;
    /** The prompt it would come before when it moves up. */
    above?: string;
    /** The prompt it would come before when it moves down; null for none. */
    below?: string | null;
}

function Queued({ prompt, steering, above, below }: QueuedProps) {
    const app = useApp();
    const [text, setText] = useState<string>();
    const act = (op: QueueOp) =>
        void app.attempt(() =>
            app.host.request("agent/queue/update", { sessionId: app.session().sessionId, op }),
        );
    const { queueId } = prompt;
    const words = prose(prompt.text);
    if (text !== undefined) {
        const save = () => {
            setText(undefined);
            if (text.trim() !== "" && text !== prompt.text) act({ type: "edit", queueId, text });
        };
        return (
            <li class="queued editing">
                <textarea
                    aria-label="Words that wait"
                    value={text}
                    rows={Math.min(8, text.split("\n").length + 1)}
                    ref={(element) => element?.focus()}
                    onInput={(event) => setText(event.currentTarget.value)}
                    onKeyDown={(event) => {
                        if (event.key === "Escape") setText(undefined);
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
                    <button type="button" class="quiet" onClick={() => setText(undefined)}>
                        Leave it
                    </button>
                </div>
            </li>
        );
    }
    return (
        <li class="queued">
            <span class="queued-text" title={words}>
                {words}
            </span>
            <span class="queued-acts">
                {!steering && (
                    <>
                        <IconAct
                            icon="up"
                            label="Move up"
                            disabled={above === undefined}
                            onClick={() =>
                                above !== undefined && act({ type: "move", queueId, before: above })
                            }
                        />
                        <IconAct
                            icon="down"
                            label="Move down"
                            disabled={below === undefined}
                            onClick={() =>
                                act({ type: "move", queueId, ...(below ? { before: below } : {}) })
                            }
                        />
                        <IconAct
                            icon="send"
                            label="Send now"
                            onClick={() => act({ type: "promote", queueId })}
                        />
                    </>
                )}
                <IconAct icon="edit" label="Edit" onClick={() => setText(prompt.text)} />
                <IconAct icon="close" label="Remove" onClick={() => act({ type: "remove", queueId })} />
            </span>
        </li>
    );
}

function IconAct({
    icon,
    label,
    onClick,
    disabled = false,
}: {
    icon: IconName;
    label: string;
    onClick: () => void;
    disabled?: boolean;
}) {
    return (
        <button
            type="button"
            class="icon-button"
            title={label}
            aria-label={label}
            disabled={disabled}
            onClick={onClick}
        >
            <Icon name={icon} />
        </button>
    );
}

/** What is decided on changes; on what is only proposed, to make it or to drop it. */
type Decision = "keep" | "undo";

/** What the session has changed and nobody has decided on. */
export function Changes() {
    const app = useApp();
    const edits = useSelect((state) => state.edits);
    const busy = useFollows();
    const [open, toggle] = useToggle("dock:changes", false);
    const [words, setWords] = useState("");
    const files = edits?.files ?? [];
    if (files.length === 0) return null;
    const decide = async (decision: Decision, what: { uri: Uri } | "session") => {
        const meant = what === "session" ? files : files.filter(({ uri }) => uri === what.uri);
        const hunks = meant.flatMap((file) => file.hunks);
        const proposed = hunks.filter(({ state }) => state === "proposed").map(({ hunkId }) => hunkId);
        // What is being written goes along only while it can be seen.
        const why = open ? words : "";
        const kept = proposed.length === hunks.length || (await resolveEdits(app, decision, what, why));
        const action = decision === "keep" ? "accept" : "reject";
        const answered = proposed.length === 0 || (await decideProposals(app, action, proposed, why));
        if (kept && answered) setWords("");
    };
    const added = files.reduce((sum, file) => sum + file.added, 0);
    const removed = files.reduce((sum, file) => sum + file.removed, 0);
    return (
        <section class="dock-part changes" aria-label="Changed files">
            <div class="dock-line">
                <button type="button" class="dock-open" aria-expanded={open} onClick={toggle}>
                    <Icon name="diff" />
                    <span class="dock-title">
                        {counted(files.length, "file")}
                        <span class="roomy"> {files.every(isProposed) ? "proposed" : "changed"}</span>
                    </span>
                    <Counts added={added} removed={removed} />
                    <span class="card-chevron">
                        <Icon name="chevron" />
                    </span>
                </button>
                <span class="dock-acts">
                    <button
                        type="button"
                        class="quiet"
                        disabled={busy}
                        onClick={() => void decide("undo", "session")}
                    >
                        Undo all
                    </button>
                    <button
                        type="button"
                        class="quiet"
                        disabled={busy}
                        onClick={() => void decide("keep", "session")}
                    >
                        Keep all
                    </button>
                    <button
                        type="button"
                        class="secondary"
                        onClick={() =>
                            void app.attempt(() =>
                                app.host.act("reviewChanges", { sessionId: app.session().sessionId }),
                            )
                        }
                    >
                        Review
                    </button>
                </span>
            </div>
            {open && (
                <>
                    <ul class="file-list">
                        {files.slice(0, 200).map((file) => (
                            <FileRow
                                key={file.uri}
                                file={file}
                                busy={busy}
                                decide={(action) => void decide(action, { uri: file.uri })}
                            />
                        ))}
                    </ul>
                    <input
                        type="text"
                        class="tell why"
                        placeholder="Why, for the agent: goes with what you decide here"
                        aria-label="Say to the agent why"
                        value={words}
                        onInput={(event) => setWords(event.currentTarget.value)}
                    />
                </>
            )}
        </section>
    );
}

/** Whether nothing of a file is changed yet. */
function isProposed(file: EditedFile): boolean {
    return file.hunks.every(({ state }) => state === "proposed");
}

interface FileRowProps {
    file: EditedFile;
    busy: boolean;
    decide: (decision: Decision) => void;
}

function FileRow({ file, busy, decide }: FileRowProps) {
    const app = useApp();
    const conflicts = file.hunks.filter((hunk) => hunk.state === "conflict").length;
    const proposed = isProposed(file);
    return (
        <li class="file-row">
            <button
                type="button"
                class="file-name"
                title="Open the diff"
                onClick={() =>
                    void app.attempt(() =>
                        app.host.act("openDiff", { sessionId: app.session().sessionId, uri: file.uri }),
                    )
                }
            >
                <Icon name="file" />
                <bdi>{exactLine(file.path)}</bdi>
            </button>
            {proposed && <span class="state">proposed</span>}
            {conflicts > 0 && <span class="state">{counted(conflicts, "conflict")}</span>}
            <Counts added={file.added} removed={file.removed} />
            <IconAct
                icon="undo"
                label={`${proposed ? "Discard" : "Undo"} ${exactLine(file.path)}`}
                disabled={busy}
                onClick={() => decide("undo")}
            />
            <IconAct
                icon="check"
                label={`${proposed ? "Apply" : "Keep"} ${exactLine(file.path)}`}
                disabled={busy}
                onClick={() => decide("keep")}
            />
        </li>
    );
}

/** What went wrong last, and what can be taken back. */
export function Toasts() {
    const app = useApp();
    const trouble = useSelect((state) => state.trouble);
    const undoable = useSelect((state) => state.undoable);
    const storage = useSession((view) => view.storage);
    const resolved = useSession((view) => view.resolved);
    const problem =
        resolved && undoable?.resolutionId === resolved.resolutionId ? unresolved(resolved) : undefined;
    return (
        <>
            {storage && (
                <div class="toast error">
                    <Icon name="warning" />
                    <p>{exact(storage.message)}</p>
                </div>
            )}
            {trouble && (
                <div class="toast error">
                    <Icon name="warning" />
                    <p>
                        <Words text={exact(trouble.message)} />{" "}
                        {trouble.hint !== "" && (
                            <span class="hint">
                                <Words text={exact(trouble.hint)} />
                            </span>
                        )}
                    </p>
                    <IconAct icon="close" label="Close" onClick={() => app.set({ trouble: undefined })} />
                </div>
            )}
            {undoable && (
                <div class="toast">
                    <p>
                        {undoable.text} {problem !== undefined && <span class="hint">{exact(problem)}</span>}
                    </p>
                    <button type="button" class="quiet" onClick={() => void takeBack(app)}>
                        Take back
                    </button>
                    <IconAct icon="close" label="Close" onClick={() => app.set({ undoable: undefined })} />
                </div>
            )}
        </>
    );
}
