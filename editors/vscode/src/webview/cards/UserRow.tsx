// A prompt: the words, what went with them, and the ways back to before it.
//
// Rule: what the user wrote is shown as words, never as Markdown or HTML.

import type { Attachment, Item } from "kode-protocol";

import { useApp, useSelect, useSession } from "../app/context.ts";
import { editMessage } from "../app/prompt.ts";
import { Icon, type IconName } from "../panels/Icon.tsx";
import { IconAct } from "../panels/IconAct.tsx";
import { isRunning } from "../store/session.ts";
import { bytes, counted, exactLine, prose } from "../text.ts";
import { CheckpointPanel } from "./Checkpoint.tsx";
import { Picture } from "./Picture.tsx";

export function UserRow({ item }: { item: Item }) {
    const app = useApp();
    const open = useSelect((state) => state.checkpoint === item.itemId);
    const busy = useSession(isRunning) ?? false;
    const follows = useSession((view) => view.following !== undefined) ?? false;
    const { body } = item;
    if (body.type !== "userMessage") return null;
    return (
        <div class="user">
            <h2 class="unseen">You</h2>
            {!body.steered && !follows && (
                <div class="user-acts">
                    <IconAct
                        icon="edit"
                        label="Edit and resend"
                        title={busy ? "Stop first to edit and resend" : "Edit and resend"}
                        disabled={busy}
                        onClick={() => editMessage(app, item)}
                    />
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
            {body.steered && <span class="steered">to the running turn</span>}
            <div class="user-text" dir="auto">
                {prose(body.text)}
            </div>
            <Attachments item={item} attachments={body.attachments ?? []} />
            {open && <CheckpointPanel itemId={item.itemId} onClose={() => app.set({ checkpoint: undefined })} />}
        </div>
    );
}

function Attachments({ item, attachments }: { item: Item; attachments: readonly Attachment[] }) {
    const shown = attachments.flatMap((attachment, index) => (attachment.kind === "editor" ? [] : [{ attachment, index }]));
    const isPicture = ({ attachment }: { attachment: Attachment }) =>
        attachment.kind === "image" && attachment.problem === undefined;
    const pictures = shown.filter(isPicture);
    const others = shown.filter((one) => !isPicture(one));
    return (
        <>
            {pictures.length > 0 && (
                <div class="pictures">
                    {pictures.map(({ attachment, index }) => (
                        <Picture key={index} itemId={item.itemId} index={index} label={attachment.label} />
                    ))}
                </div>
            )}
            {others.length > 0 && (
                <ul class="attachments" aria-label="Attached">
                    {others.map(({ attachment, index }) => (
                        <AttachmentChip key={index} attachment={attachment} />
                    ))}
                </ul>
            )}
        </>
    );
}

const ICONS: Partial<Record<Attachment["kind"], IconName>> = {
    folder: "folder",
    image: "image",
    diff: "diff",
    diagnostics: "warning",
    session: "history",
    symbol: "symbol",
};

function AttachmentChip({ attachment }: { attachment: Attachment }) {
    const size = attachment.lines === undefined ? bytes(attachment.bytes) : counted(attachment.lines, "line");
    const { problem } = attachment;
    return (
        <li
            class={problem === undefined ? "chip" : "chip failed"}
            title={prose(problem ?? (attachment.cut ? "Only the beginning was attached" : ""))}
        >
            <Icon name={problem === undefined ? (ICONS[attachment.kind] ?? "file") : "warning"} />
            <bdi>{exactLine(attachment.label)}</bdi>
            <span class="chip-size">
                {problem === undefined ? `${size}${attachment.cut ? ", cut" : ""}` : "not attached"}
            </span>
        </li>
    );
}
