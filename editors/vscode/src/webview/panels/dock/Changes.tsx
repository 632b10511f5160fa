// The undecided changes of the session: kept and undone file by file, or as a whole.
//
// Rule: a proposed change is on the card that asks, and not here. Nothing disappears in a narrow view.

import type { EditedFile, Uri } from "kode-protocol";
import { useState } from "preact/hooks";

import { useApp, useFollows, useSelect, useToggle } from "../../app/context.ts";
import { markReviewed, resolveEdits } from "../../app/edits.ts";
import { Counts } from "../../cards/Diff.tsx";
import { counted, exactLine } from "../../text.ts";
import { Icon } from "../Icon.tsx";
import { IconAct } from "../IconAct.tsx";

/** The most files that are listed. */
const MOST_FILES = 200;

type Decision = "keep" | "undo";

/** The files in which something can be kept or undone. */
export function useChanges(): readonly EditedFile[] {
    const edits = useSelect((state) => state.edits);
    return (edits?.files ?? []).filter(({ hunks }) => hunks.some(({ state }) => state !== "proposed"));
}

export function Changes() {
    const app = useApp();
    const files = useChanges();
    const busy = useFollows();
    const [open, toggle] = useToggle("dock:changes", false);
    const [words, setWords] = useState("");
    if (files.length === 0) return null;
    const decide = async (decision: Decision, what: { uri: Uri } | "session") => {
        // The draft goes along only while it can be seen.
        if (await resolveEdits(app, decision, what, open ? words : "")) setWords("");
    };
    return (
        <section class="dock-part changes" aria-label="Changed files">
            <div class="dock-line">
                <Summary files={files} open={open} toggle={toggle} />
                <span class="dock-acts">
                    <IconAct icon="undo" label="Undo all" disabled={busy} onClick={() => void decide("undo", "session")} />
                    <IconAct icon="check" label="Keep all" disabled={busy} onClick={() => void decide("keep", "session")} />
                    <button
                        type="button"
                        class="secondary"
                        onClick={() =>
                            void app.attempt(() => app.host.act("reviewChanges", { sessionId: app.session().sessionId }))
                        }
                    >
                        Review
                    </button>
                </span>
            </div>
            {open && (
                <>
                    <ul class="file-list">
                        {files.slice(0, MOST_FILES).map((file) => (
                            <FileRow
                                key={file.uri}
                                file={file}
                                busy={busy}
                                decide={(decision) => void decide(decision, { uri: file.uri })}
                            />
                        ))}
                    </ul>
                    <input
                        type="text"
                        class="tell why"
                        placeholder="Optional note to Kode"
                        aria-label="Optional note to Kode"
                        value={words}
                        onInput={(event) => setWords(event.currentTarget.value)}
                    />
                </>
            )}
        </section>
    );
}

function Summary({ files, open, toggle }: { files: readonly EditedFile[]; open: boolean; toggle: () => void }) {
    const added = files.reduce((sum, file) => sum + file.added, 0);
    const removed = files.reduce((sum, file) => sum + file.removed, 0);
    const reviewed = files.filter((file) => file.reviewed).length;
    return (
        <button type="button" class="dock-open" aria-expanded={open} onClick={toggle}>
            <Icon name="diff" />
            <span class="dock-title">
                {counted(files.length, "file")}
                <span class="roomy"> changed</span>
                {reviewed > 0 && <span class="roomy">, {reviewed} reviewed</span>}
            </span>
            <Counts added={added} removed={removed} />
            <span class="card-chevron">
                <Icon name="chevron" />
            </span>
        </button>
    );
}

interface FileRowProps {
    file: EditedFile;
    busy: boolean;
    decide: (decision: Decision) => void;
}

function FileRow({ file, busy, decide }: FileRowProps) {
    const app = useApp();
    const conflicts = file.hunks.filter((hunk) => hunk.state === "conflict").length;
    const path = exactLine(file.path);
    const cut = path.lastIndexOf("/") + 1;
    return (
        <li class={file.reviewed ? "file-row reviewed" : "file-row"}>
            <button
                type="button"
                class="file-name"
                title={path}
                onClick={() =>
                    void app.attempt(() => app.host.act("openDiff", { sessionId: app.session().sessionId, uri: file.uri }))
                }
            >
                <Icon name="file" />
                <bdi class="title-name">{path.slice(cut)}</bdi>
                {cut > 0 && <bdi class="title-folder">{path.slice(0, cut - 1)}</bdi>}
            </button>
            {conflicts > 0 && <span class="state">{counted(conflicts, "conflict")}</span>}
            {file.diagnostics && (
                <span class="state" title={file.diagnostics.lines.map(exactLine).join("\n")}>
                    {exactLine(file.diagnostics.summary)} in other lines
                </span>
            )}
            <Counts added={file.added} removed={file.removed} />
            <IconAct
                icon="eye"
                label={file.reviewed ? `${path} is reviewed: remove the mark` : `Mark ${path} as reviewed`}
                disabled={busy}
                pressed={file.reviewed ?? false}
                onClick={() => void markReviewed(app, file.uri, !file.reviewed)}
            />
            <IconAct icon="undo" label={`Undo ${path}`} disabled={busy} onClick={() => decide("undo")} />
            <IconAct icon="check" label={`Keep ${path}`} disabled={busy} onClick={() => decide("keep")} />
        </li>
    );
}
