// The effect of a call that asks: the command line, the change, or the paths.
//
// Rule: the judged text is shown exactly and whole. Marks at its ends report whether it was in sight: of a command and
// of paths the end counts, of a change the beginning, because a change can be read in an editor and undone.

import type { HunkId, Uri } from "kode-protocol";
import { useMemo } from "preact/hooks";

import { useApp } from "../app/context.ts";
import { exact, exactLine } from "../text.ts";
import type { PermissionPrompt } from "kode-protocol";
import type { Sight } from "./asking.ts";
import { Counts, Diff } from "./Diff.tsx";
import type { PermissionState } from "./permission.ts";
import { hunkName, placed, type Proposed } from "./proposed.ts";
import { readDiff } from "./readDiff.ts";

/** The most files of a change whose diffs can be opened from its card. */
const MOST_DIFFS = 8;

interface PreviewProps {
    prompt: PermissionPrompt;
    state: PermissionState;
    sight: Sight;
}

export function Preview({ prompt, state, sight }: PreviewProps) {
    const isChange = prompt.preview.type === "diff";
    return (
        <div class="judged">
            <span ref={sight.first} class="sight-mark first" aria-hidden="true" />
            <PreviewOf prompt={prompt} state={state} />
            <span ref={sight.last} class={isChange ? "sight-mark near" : "sight-mark last"} aria-hidden="true" />
        </div>
    );
}

function PreviewOf({ prompt, state }: Omit<PreviewProps, "sight">) {
    const { preview } = prompt;
    switch (preview.type) {
        case "command":
            return (
                <pre class="preview-command" tabIndex={0} role="region" aria-label="Command">
                    <span class="dollar" aria-hidden="true">
                        ${" "}
                    </span>
                    {exact(preview.command)}
                </pre>
            );
        case "diff":
            return <Change unified={preview.unified} state={state} />;
        case "paths":
            return (
                <ul class="paths">
                    {preview.paths.map((path, index) => (
                        <li key={index}>
                            <code>{exactLine(path)}</code>
                        </li>
                    ))}
                </ul>
            );
        default:
            return <pre class="preview-command">{exact(prompt.text ?? prompt.title)}</pre>;
    }
}

/** A change; of one with several hunks, each can be left out. */
function Change({ unified, state }: { unified: string; state: PermissionState }) {
    const { proposed } = state;
    const files = useMemo(() => readDiff(unified), [unified]);
    const places = useMemo(() => placed(proposed, files), [proposed, files]);
    const isOneFile = files.length === 1;
    const choice = (hunks: readonly Proposed[] | undefined, withPath: boolean) =>
        proposed.length > 1 && hunks ? <HunkChoice hunks={hunks} withPath={withPath} state={state} /> : null;
    return (
        <>
            <Diff unified={unified} files={files} named under={(hunk) => choice(places.get(hunk), !isOneFile)} />
            {choice(places.get(undefined), true)}
            <OpenDiffs proposed={proposed} isOneFile={isOneFile} />
        </>
    );
}

/** The boxes that leave hunks out. */
function HunkChoice({ hunks, withPath, state }: { hunks: readonly Proposed[]; withPath: boolean; state: PermissionState }) {
    return (
        <div class="hunk-choice">
            {hunks.map((one) => {
                const { hunkId, added, removed } = one.hunk;
                return (
                    <label key={hunkId}>
                        <input
                            type="checkbox"
                            checked={!state.left.has(hunkId)}
                            onChange={() => state.setLeft(toggled(state.left, hunkId))}
                        />
                        {exactLine(hunkName(one, withPath))} <Counts added={added} removed={removed} />
                    </label>
                );
            })}
        </div>
    );
}

function OpenDiffs({ proposed, isOneFile }: { proposed: readonly Proposed[]; isOneFile: boolean }) {
    const app = useApp();
    const changed = [...new Map(proposed.map(({ uri, path }) => [uri, path]))];
    const open = (uri: Uri) =>
        void app.attempt(() => app.host.act("openDiff", { sessionId: app.session().sessionId, uri }));
    return (
        <>
            {changed.slice(0, MOST_DIFFS).map(([uri, path]) => (
                <button key={uri} type="button" class="quiet" onClick={() => open(uri)}>
                    Open {isOneFile ? "" : `${exactLine(path)} `}in a diff editor
                </button>
            ))}
        </>
    );
}

function toggled(ids: ReadonlySet<HunkId>, id: HunkId): ReadonlySet<HunkId> {
    const other = new Set(ids);
    if (!other.delete(id)) other.add(id);
    return other;
}
