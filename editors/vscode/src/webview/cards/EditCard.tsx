// A change of a file that was made: the diff, its state, and what can be done about it.
//
// Rule: the state is the ledger's. A change that is small enough to be read at a glance is open, others are closed.

import type { CallEdits, HunkId, ToolCall } from "kode-protocol";
import { useMemo } from "preact/hooks";

import type { App } from "../app/app.ts";
import { useApp, useFollows, useSelect, useToggle } from "../app/context.ts";
import { resolveEdits } from "../app/edits.ts";
import { openPath } from "../app/open.ts";
import { Icon, Spinner } from "../panels/Icon.tsx";
import { IconAct } from "../panels/IconAct.tsx";
import { Counts, Diff } from "./Diff.tsx";
import { Aside, CallTitle, toneOf, type CallItem } from "./parts.tsx";
import { readDiff, type DiffFile } from "./readDiff.ts";

/** The most lines of a change that are shown unasked. */
const GLANCE = 16;

/** The change that a call has made; undefined for a call that made none. */
export function changeOf(call: ToolCall): { path: string; unified: string } | undefined {
    const result = call.structured as { path?: unknown; unified?: unknown } | undefined;
    return typeof result?.unified === "string" && typeof result.path === "string" && result.unified !== ""
        ? { path: result.path, unified: result.unified }
        : undefined;
}

export function EditCard({ item }: { item: CallItem }) {
    const app = useApp();
    const { body } = item;
    const change = changeOf(body);
    const files = useMemo(() => readDiff(change?.unified ?? ""), [change?.unified]);
    const [added, removed] = sizeOf(files);
    const state = useEditState(body.callId);
    const tone = toneOf(body);
    const [open, toggle] = useToggle(item.itemId, added + removed <= GLANCE || tone === "failed");
    if (!change) return null;
    return (
        <div class={`card edit ${tone} ${state.name}${open ? " open" : ""}`}>
            <button type="button" class="card-line" aria-expanded={open} onClick={toggle}>
                <span class="card-icon">{tone === "running" ? <Spinner /> : <Icon name="edit" />}</span>
                <span class="card-title">
                    <CallTitle text={body.title || body.name} />
                </span>
                <span class="card-aside">
                    {state.label !== "" && <span class={`state ${state.tone}`}>{state.label}</span>}
                    <Counts added={added} removed={removed} />
                    <Aside call={body} />
                </span>
                <span class="card-chevron">
                    <Icon name="chevron" />
                </span>
            </button>
            {open && (
                <div class="card-body">
                    <Diff
                        unified={change.unified}
                        files={files}
                        path={change.path}
                        named={false}
                        onOpen={(_path, line) => void openPath(app, change.path, line)}
                    />
                    <EditActs path={change.path} line={files[0]?.hunks[0]?.line ?? 1} hunkIds={state.open} />
                </div>
            )}
        </div>
    );
}

function EditActs({ path, line, hunkIds }: { path: string; line: number; hunkIds: HunkId[] }) {
    const app = useApp();
    const follows = useFollows();
    const decide = (action: "keep" | "undo") => void resolveEdits(app, action, { hunkIds });
    return (
        <div class="edit-acts">
            <IconAct icon="diff" label="Open diff" onClick={() => void openDiff(app, path, line)} />
            <IconAct icon="file" label="Open file" onClick={() => void openPath(app, path, line)} />
            {hunkIds.length > 0 && !follows && (
                <span class="end">
                    <button type="button" class="quiet" onClick={() => decide("undo")}>
                        <Icon name="undo" /> Undo
                    </button>
                    <button type="button" class="quiet" onClick={() => decide("keep")}>
                        <Icon name="check" /> Keep
                    </button>
                </span>
            )}
        </div>
    );
}

function openDiff(app: App, path: string, line: number): Promise<boolean> {
    return app.attempt(async () => {
        const { sessionId } = app.session();
        const known = app.state.edits?.files.find((file) => file.path === path);
        if (known) await app.host.act("openDiff", { sessionId, uri: known.uri });
        else await openPath(app, path, line);
    });
}

/** Where the change of a call is in its life. */
interface EditState {
    readonly name: "open" | "kept" | "undone" | "mixed" | "unknown";
    readonly label: string;
    readonly tone: string;
    /** The hunks that can be kept or undone. */
    readonly open: HunkId[];
}

function useEditState(callId: string): EditState {
    const edits = useSelect((state) => state.edits);
    return useMemo(() => {
        const hunks = (edits?.files ?? []).flatMap((file) => file.hunks).filter((hunk) => hunk.callId === callId);
        const open = hunks.filter(({ state }) => state === "applied" || state === "conflict");
        const counts = edits?.calls?.find((call) => call.callId === callId);
        return { ...nameOf(open.length, counts), open: open.map(({ hunkId }) => hunkId) };
    }, [edits, callId]);
}

function nameOf(open: number, counts: CallEdits | undefined): Omit<EditState, "open"> {
    const { kept = 0, undone = 0 } = counts ?? {};
    if (kept > 0 && undone > 0) return { name: "mixed", label: `${kept} kept, ${undone} undone`, tone: "off" };
    if (open > 0 && undone + kept > 0) {
        return { name: "open", label: undone > 0 ? `${undone} undone` : `${kept} kept`, tone: "off" };
    }
    if (undone > 0) return { name: "undone", label: "Undone", tone: "off" };
    if (kept > 0) return { name: "kept", label: "Kept", tone: "good" };
    return { name: open > 0 ? "open" : "unknown", label: "", tone: "" };
}

function sizeOf(files: readonly DiffFile[]): [number, number] {
    return files.reduce<[number, number]>(([more, less], file) => [more + file.added, less + file.removed], [0, 0]);
}
