// Going back to before a message: what that would do, and doing it.
//
// Rule: nothing goes back that was not shown before, with the user's own changes named. They stay unless the user says they go.

import type { ItemId, RestorePreview, RestoreWhat } from "kode-protocol";
import { useEffect, useState } from "preact/hooks";

import { useApp } from "../app/context.ts";
import { offerUndo } from "../app/edits.ts";
import { fork } from "../app/sessions.ts";
import type { App } from "../app/app.ts";
import { Icon } from "../panels/Icon.tsx";
import { counted, exact, exactLine } from "../text.ts";
import { Diff } from "./Diff.tsx";

const CHOICES: { what: RestoreWhat; label: string }[] = [
    { what: "both", label: "Conversation and files" },
    { what: "files", label: "Files only" },
    { what: "conversation", label: "Conversation only" },
];

/** The choices at a message. */
export function CheckpointPanel({ itemId, onClose }: { itemId: ItemId; onClose: () => void }) {
    const app = useApp();
    const [what, setWhat] = useState<RestoreWhat>("both");
    const [discard, setDiscard] = useState(false);
    const [preview, setPreview] = useState<RestorePreview | string>();
    useEffect(() => {
        const stale = { current: false };
        setPreview(undefined);
        void lookBack(app, itemId, what, discard).then((found) => {
            if (!stale.current) setPreview(found);
        });
        return () => {
            stale.current = true;
        };
    }, [itemId, what, discard]);
    const ownEdits =
        typeof preview === "object" ? preview.files.filter((file) => file.userEdits !== undefined).length : 0;
    return (
        <section
            class="checkpoint"
            aria-label="Go back to before this message"
            onKeyDown={(event) => {
                if (event.key !== "Escape") return;
                event.stopPropagation();
                onClose();
            }}
        >
            <fieldset>
                <legend>Go back to before this message</legend>
                {CHOICES.map((choice) => (
                    <label key={choice.what}>
                        <input
                            type="radio"
                            name={`back-${itemId}`}
                            checked={what === choice.what}
                            onChange={() => setWhat(choice.what)}
                        />
                        {choice.label}
                    </label>
                ))}
            </fieldset>
            {what !== "conversation" && (ownEdits > 0 || discard) && (
                <label class="warned">
                    <input type="checkbox" checked={discard} onChange={() => setDiscard(!discard)} />
                    Undo my own changes in these files too
                </label>
            )}
            <Preview preview={preview} what={what} />
            <div class="actions">
                <button
                    type="button"
                    class="primary"
                    disabled={typeof preview !== "object"}
                    onClick={() => void goBack(app, itemId, what, discard)}
                >
                    Go back
                </button>
                <button
                    type="button"
                    class="secondary"
                    onClick={() => void fork(app, app.session().sessionId, itemId)}
                >
                    <Icon name="fork" /> Fork here
                </button>
                <button type="button" class="quiet" onClick={onClose}>
                    Close
                </button>
            </div>
        </section>
    );
}

function Preview({ preview, what }: { preview: RestorePreview | string | undefined; what: RestoreWhat }) {
    if (preview === undefined) return <p class="hint">Checking what would change…</p>;
    if (typeof preview === "string") return <p class="hint">{preview}</p>;
    return (
        <div class="preview">
            {what !== "files" && (
                <p class="hint">{counted(preview.items, "item")} of the conversation would go.</p>
            )}
            {what !== "conversation" && preview.files.length === 0 && (
                <p class="hint">No file would change.</p>
            )}
            {preview.files.map((file) => (
                <details key={file.uri}>
                    <summary>
                        <bdi>{exactLine(file.path)}</bdi>
                        {file.userEdits !== undefined && <span class="state">with your changes</span>}
                        {file.problem !== undefined && <span class="state">{exact(file.problem)}</span>}
                    </summary>
                    {file.unified !== "" && <Diff unified={file.unified} named={false} />}
                    {file.userEdits !== undefined && (
                        <>
                            <p class="hint">Your own changes since then:</p>
                            <Diff unified={file.userEdits} named={false} />
                        </>
                    )}
                </details>
            ))}
        </div>
    );
}

async function checkpointBefore(app: App, before: ItemId): Promise<string> {
    const { sessionId } = app.session();
    const { checkpoints } = await app.host.request("agent/checkpoint/list", { sessionId });
    const found = checkpoints.find(({ itemId }) => itemId === before);
    if (!found) throw new Error("No checkpoint was kept for this message.");
    return found.checkpointId;
}

async function lookBack(
    app: App,
    itemId: ItemId,
    what: RestoreWhat,
    discard: boolean,
): Promise<RestorePreview | string> {
    try {
        const result = await app.host.request("agent/checkpoint/restore", {
            sessionId: app.session().sessionId,
            checkpointId: await checkpointBefore(app, itemId),
            what,
            userEdits: discard ? "discard" : "keep",
            dryRun: true,
        });
        return result.type === "preview"
            ? result
            : "The server started the restore although only a preview was requested.";
    } catch (error) {
        return error instanceof Error ? error.message : String(error);
    }
}

async function goBack(app: App, itemId: ItemId, what: RestoreWhat, discard: boolean): Promise<void> {
    await app.attempt(async () => {
        const begun = await app.host.request("agent/checkpoint/restore", {
            sessionId: app.session().sessionId,
            checkpointId: await checkpointBefore(app, itemId),
            what,
            userEdits: discard ? "discard" : "keep",
        });
        app.set({ checkpoint: undefined, pane: undefined });
        if (begun.type === "started") offerUndo(app, "Went back.", begun.resolutionId);
    });
}
