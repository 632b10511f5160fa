// What was said and thought, and what happened that nobody said.
//
// Rule: a message is known by its heading. What the user said is shown as words, never as Markdown or HTML.

import type { Attachment, CommandOutput, Item } from "kode-protocol";
import { memo } from "preact/compat";

import { useApp, useSelect, useSession } from "../app/context.ts";
import { editMessage } from "../app/prompt.ts";
import { showSession } from "../app/sessions.ts";
import { Markdown } from "../markdown/Markdown.tsx";
import { Icon, type IconName } from "../panels/Icon.tsx";
import { Words } from "../panels/Words.tsx";
import { isRunning } from "../store/session.ts";
import type { Row } from "../store/rows.ts";
import { bytes, counted, exact, exactLine, prose, span } from "../text.ts";
import { Card } from "./Card.tsx";
import { CheckpointPanel } from "./Checkpoint.tsx";
import { LooksCard, ToolCard } from "./ToolCard.tsx";

/** A row of the transcript. */
export const RowView = memo(function RowView({ row }: { row: Row }) {
    if (row.kind === "looks") return <LooksCard name={row.key} items={row.items} />;
    const { item } = row;
    const { body } = item;
    switch (body.type) {
        case "userMessage":
            return <UserRow item={item} />;
        case "agentMessage":
            return (
                <div class="said">
                    <h2 class="unseen">Kode</h2>
                    <Markdown text={body.text} complete={body.complete} />
                    {body.interrupted && <p class="broke-off">Broke off here.</p>}
                </div>
            );
        case "thinking":
            return <ThinkingRow item={item} text={body.text} complete={body.complete} />;
        case "toolCall":
            return <ToolCard item={{ ...item, body }} />;
        case "notice":
            return (
                <div class={`notice ${body.level}`} role="note">
                    <Icon name={body.level === "info" ? "info" : "warning"} />
                    <div>
                        <p>
                            <Words text={exact(body.text)} />
                        </p>
                        {body.hint !== undefined && (
                            <p class="hint">
                                <Words text={exact(body.hint)} />
                            </p>
                        )}
                    </div>
                </div>
            );
        case "command":
            return <CommandRow command={body} />;
        default:
            return null;
    }
});

/** What a row is called, for those who go from row to row. */
export function rowLabel(row: Row): string {
    if (row.kind === "looks") return counted(row.items.length, "look at the project", "looks at the project");
    const { body } = row.item;
    switch (body.type) {
        case "userMessage":
            return "You";
        case "agentMessage":
            return "Kode";
        case "thinking":
            return "Thinking";
        case "toolCall":
            return `Tool: ${exactLine(body.title)}`;
        case "notice":
            return `Notice: ${exactLine(body.text).slice(0, 80)}`;
        case "command":
            return `What the command ${exactLine(body.name)} says`;
        default:
            return "Item";
    }
}

function UserRow({ item }: { item: Item }) {
    const app = useApp();
    const open = useSelect((state) => state.checkpoint === item.itemId);
    const busy = useSession(isRunning) ?? false;
    const followed = useSession((view) => view.following !== undefined) ?? false;
    const { body } = item;
    if (body.type !== "userMessage") return null;
    const attachments = (body.attachments ?? []).filter((attachment) => attachment.kind !== "editor");
    return (
        <div class="user">
            <div class="user-head">
                <h2>You{body.steered ? <span class="steered"> to the running turn</span> : null}</h2>
                {!body.steered && !followed && (
                    <div class="user-acts">
                        <button
                            type="button"
                            class="icon-button"
                            disabled={busy}
                            title={busy ? "Stop first to edit and resend" : "Edit and resend"}
                            aria-label="Edit and resend"
                            onClick={() => editMessage(app, item)}
                        >
                            <Icon name="edit" />
                        </button>
                        <button
                            type="button"
                            class="icon-button"
                            title="Go back to before this message"
                            aria-label="Go back to before this message"
                            aria-expanded={open}
                            onClick={() => app.set({ checkpoint: open ? undefined : item.itemId })}
                        >
                            <Icon name="history" />
                        </button>
                    </div>
                )}
            </div>
            <div class="user-text" dir="auto">
                {prose(body.text)}
            </div>
            {attachments.length > 0 && (
                <ul class="attachments" aria-label="Attached">
                    {attachments.map((attachment, index) => (
                        <AttachmentView key={index} attachment={attachment} />
                    ))}
                </ul>
            )}
            {open && <CheckpointPanel itemId={item.itemId} onClose={() => app.set({ checkpoint: undefined })} />}
        </div>
    );
}

/** What a command has to say; no model has heard of it. */
function CommandRow({ command }: { command: CommandOutput }) {
    const app = useApp();
    const failed = command.failed === true;
    const { goTo } = command;
    return (
        <section class={failed ? "command-output failed" : "command-output"}>
            <h2 class="command-name">
                <Icon name={failed ? "warning" : "command"} />
                <bdi>/{exactLine(command.name)}</bdi>
                {failed && <span class="state">not carried out</span>}
            </h2>
            <Markdown text={command.text} complete />
            {goTo !== undefined && (
                <button type="button" class="quiet" onClick={() => void showSession(app, goTo)}>
                    Show that session
                </button>
            )}
        </section>
    );
}

const ATTACHMENT_ICONS: Partial<Record<Attachment["kind"], IconName>> = {
    folder: "folder",
    image: "image",
    diff: "diff",
    diagnostics: "warning",
    session: "history",
};

function AttachmentView({ attachment }: { attachment: Attachment }) {
    const size = attachment.lines === undefined ? bytes(attachment.bytes) : counted(attachment.lines, "line");
    const problem = attachment.problem;
    return (
        <li
            class={problem === undefined ? "chip" : "chip failed"}
            title={prose(problem ?? (attachment.cut ? "Only the beginning was attached" : ""))}
        >
            <Icon name={problem === undefined ? (ATTACHMENT_ICONS[attachment.kind] ?? "file") : "warning"} />
            <bdi>{exactLine(attachment.label)}</bdi>
            <span class="chip-size">
                {problem === undefined ? `${size}${attachment.cut ? ", cut" : ""}` : "not attached"}
            </span>
        </li>
    );
}

function ThinkingRow({ item, text, complete }: { item: Item; text: string; complete: boolean }) {
    const habit = useSelect((state) => state.host?.settings.expandThinking ?? false);
    const last = complete ? "" : exactLine(text.trimEnd().split("\n").at(-1) ?? "");
    return (
        <Card
            name={item.itemId}
            icon="think"
            tone={complete ? "quiet" : "running"}
            habit={habit}
            title={
                complete ? (
                    "Thought"
                ) : (
                    <>
                        Thinking <span class="thought-tail">{last}</span>
                    </>
                )
            }
        >
            {() => (
                <div class="thought">
                    <Markdown text={text} complete={complete} />
                </div>
            )}
        </Card>
    );
}

/** What stands below the last row while a turn runs. */
export function Working() {
    const state = useSession((view) => view.state);
    const retry = useSession((view) => view.retry);
    const compressing = useSession((view) => view.compressing);
    if (state !== "WORKING") return null;
    const text = compressing
        ? "Compacting the conversation"
        : retry
          ? `Asking the model again in ${span(retry.delayMs)} (${retry.attempt} of ${retry.of}): ${exactLine(retry.reason)}`
          : "Working";
    return (
        <div class="working">
            <span class="dots" aria-hidden="true">
                <i />
                <i />
                <i />
            </span>
            <span>{text}</span>
        </div>
    );
}
