// A call that needs the user's yes: exactly what will happen, why it is asked, how far a yes reaches.
//
// Rule: what is judged is shown exactly and whole before the answer. The card never takes the focus; where it has it, Enter
// allows, the arrows choose how far, and Escape denies. Words turn a no into advice.

import type { HunkId, PermissionPrompt, RespondPermissionParams, Scope, Uri } from "kode-protocol";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import type { App } from "../app/app.ts";
import { useApp, useSelect } from "../app/context.ts";
import { Icon } from "../panels/Icon.tsx";
import { counted, exact, exactLine } from "../text.ts";
import { Counts, Diff } from "./Diff.tsx";
import { chosen, hunkName, placed, proposedBy, type Proposed } from "./proposed.ts";
import { readDiff } from "./readDiff.ts";

const SCOPES: Record<Scope, string> = {
    once: "Only this time",
    session: "In this session",
    project: "In this project",
    user: "Everywhere",
};

/** The most files of a change whose diffs can be opened from its card. */
const MOST_DIFFS = 8;

export function PermissionCard({ prompt, others }: { prompt: PermissionPrompt; others: number }) {
    const app = useApp();
    const card = useRef<HTMLElement>(null);
    const [scope, setScope] = useState<Scope>("once");
    const [words, setWords] = useState("");
    const [input, setInput] = useState<string>();
    const [busy, setBusy] = useState(false);
    const edits = useSelect((state) => state.edits);
    const proposed = useMemo(() => proposedBy(edits, prompt.permissionId), [edits, prompt.permissionId]);
    const [left, setLeft] = useState<ReadonlySet<HunkId>>(new Set());
    // Other arguments make another change, of other hunks.
    const hunks = input === undefined ? chosen(proposed, left) : undefined;
    const none = hunks?.length === 0;
    const offer = prompt.offers?.find((offer) => offer.scope === scope);
    const scopes = prompt.scopes.length > 0 ? prompt.scopes : (["once"] as Scope[]);

    useLayoutEffect(() => {
        app.focus.set("waiting", () => card.current?.focus());
        return () => app.focus.delete("waiting");
    }, [app]);

    const answer = async (decision: "allow" | "deny") => {
        setBusy(true);
        const done = await app.attempt(() => respond(app, prompt, { decision, scope, words, input, hunks }));
        if (!done) setBusy(false);
    };
    const onKey = (event: KeyboardEvent) => {
        const target = event.target as HTMLElement;
        const inField = target.tagName === "TEXTAREA" || target.tagName === "INPUT";
        if (event.key === "Escape") {
            event.preventDefault();
            event.stopPropagation();
            void answer("deny");
        } else if (event.key === "Enter" && target === card.current) {
            event.preventDefault();
            if (!none) void answer("allow");
        } else if (!inField && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
            event.preventDefault();
            const at = scopes.indexOf(scope) + (event.key === "ArrowDown" ? 1 : -1);
            setScope(scopes[(at + scopes.length) % scopes.length] ?? "once");
        }
    };
    return (
        <section
            ref={card}
            class="prompt-card permission"
            tabIndex={-1}
            aria-labelledby={`${prompt.permissionId}-title`}
            onKeyDown={onKey}
            data-permission={prompt.permissionId}
        >
            <header>
                <Icon name="shield" />
                <h2 id={`${prompt.permissionId}-title`}>
                    {prompt.preview.type === "command" ? (
                        "Run this command?"
                    ) : (
                        <bdi>{exactLine(prompt.title)}</bdi>
                    )}
                </h2>
                {others > 0 && <span class="badge">{counted(others, "more")}</span>}
            </header>
            <PreviewOf
                prompt={prompt}
                proposed={input === undefined ? proposed : []}
                left={left}
                onLeave={setLeft}
            />
            <p class="reason">{exactLine(prompt.reason)}</p>
            {prompt.risks.length > 0 && (
                <ul class="risks" aria-label="What could go wrong">
                    {prompt.risks.map((risk, index) => (
                        <li key={index}>
                            <Icon name="warning" />
                            {exactLine(risk)}
                        </li>
                    ))}
                </ul>
            )}
            {input !== undefined && (
                <label class="field">
                    Arguments, which are checked again
                    <textarea
                        class="mono"
                        rows={Math.min(12, input.split("\n").length + 1)}
                        value={input}
                        spellcheck={false}
                        onInput={(event) => setInput(event.currentTarget.value)}
                    />
                </label>
            )}
            {scopes.length > 1 && hunks === undefined && (
                <div class="scopes" role="radiogroup" aria-label="How far a yes reaches">
                    {scopes.map((choice) => (
                        <button
                            key={choice}
                            type="button"
                            role="radio"
                            aria-checked={scope === choice}
                            class={scope === choice ? "scope chosen" : "scope"}
                            onClick={() => setScope(choice)}
                        >
                            {SCOPES[choice]}
                        </button>
                    ))}
                </div>
            )}
            {offer && hunks === undefined && (
                <p class="offer">
                    Runs unasked from then on:{" "}
                    {offer.rules.map((rule, index) => (
                        <code key={index}>{exactLine(rule)}</code>
                    ))}
                    {offer.spared && offer.spared.of > 0 && (
                        <span>
                            {" "}
                            It would have spared you {offer.spared.matched} of the last{" "}
                            {counted(offer.spared.of, "question")}.
                        </span>
                    )}
                </p>
            )}
            <div class="answer">
                <button
                    type="button"
                    class="primary"
                    disabled={busy || none}
                    onClick={() => void answer("allow")}
                >
                    Allow
                    {hunks
                        ? ` ${hunks.length} of ${counted(proposed.length, "hunk")}`
                        : scope === "once"
                          ? ""
                          : ` ${SCOPES[scope].toLowerCase()}`}
                </button>
                <button type="button" class="secondary" disabled={busy} onClick={() => void answer("deny")}>
                    {words.trim() === "" ? "Deny" : "Deny and tell"}
                </button>
                <input
                    type="text"
                    class="tell"
                    placeholder="Or say what to do instead"
                    aria-label="Say what to do instead"
                    value={words}
                    onInput={(event) => setWords(event.currentTarget.value)}
                    onKeyDown={(event) => {
                        if (event.key !== "Enter" || event.isComposing || words.trim() === "") return;
                        event.preventDefault();
                        void answer("deny");
                    }}
                />
                <button
                    type="button"
                    class="icon-button"
                    title="Edit the arguments"
                    aria-label="Edit the arguments"
                    aria-pressed={input !== undefined}
                    onClick={() =>
                        setInput(input === undefined ? JSON.stringify(prompt.input, null, 2) : undefined)
                    }
                >
                    <Icon name="edit" />
                </button>
            </div>
        </section>
    );
}

interface PreviewProps {
    prompt: PermissionPrompt;
    proposed: readonly Proposed[];
    /** The hunks that are left out. */
    left: ReadonlySet<HunkId>;
    onLeave: (left: ReadonlySet<HunkId>) => void;
}

function PreviewOf({ prompt, proposed, left, onLeave }: PreviewProps) {
    const { preview } = prompt;
    switch (preview.type) {
        case "command":
            return (
                <div class="preview-command">
                    <pre tabIndex={0} role="region" aria-label="Command">
                        <span class="dollar" aria-hidden="true">
                            ${" "}
                        </span>
                        {exact(preview.command)}
                    </pre>
                    <p class="cwd">
                        in <bdi>{exactLine(preview.cwd)}</bdi>
                    </p>
                </div>
            );
        case "diff":
            return (
                <DiffOf unified={preview.unified} proposed={proposed} left={left} onLeave={onLeave} />
            );
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
            return <pre>{exact(prompt.text ?? prompt.title)}</pre>;
    }
}

/** A change; of one with several hunks, each can be left out. */
function DiffOf({
    unified,
    proposed,
    left,
    onLeave,
}: Omit<PreviewProps, "prompt"> & { unified: string }) {
    const app = useApp();
    const files = useMemo(() => readDiff(unified), [unified]);
    const places = useMemo(() => placed(proposed, files), [proposed, files]);
    const isOneFile = files.length === 1;
    const choice = (hunks: readonly Proposed[] | undefined, withPath: boolean) =>
        proposed.length > 1 && hunks ? (
            <div class="hunk-choice">
                {hunks.map((one) => {
                    const { hunkId, added, removed } = one.hunk;
                    return (
                        <label key={hunkId}>
                            <input
                                type="checkbox"
                                checked={!left.has(hunkId)}
                                onChange={() => onLeave(toggled(left, hunkId))}
                            />
                            {exactLine(hunkName(one, withPath))} <Counts added={added} removed={removed} />
                        </label>
                    );
                })}
            </div>
        ) : null;
    const changed = [...new Map(proposed.map(({ uri, path }) => [uri, path]))];
    const openDiff = (uri: Uri) =>
        void app.attempt(() => app.host.act("openDiff", { sessionId: app.session().sessionId, uri }));
    return (
        <>
            <div class="preview-diff">
                <Diff
                    unified={unified}
                    files={files}
                    named
                    under={(hunk) => choice(places.get(hunk), !isOneFile)}
                />
                {choice(places.get(undefined), true)}
            </div>
            {changed.slice(0, MOST_DIFFS).map(([uri, path]) => (
                <button key={uri} type="button" class="quiet" onClick={() => openDiff(uri)}>
                    Open the diff{isOneFile ? "" : ` of ${exactLine(path)}`} in an editor
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

interface Answer {
    decision: "allow" | "deny";
    scope: Scope;
    words: string;
    input: string | undefined;
    /** The hunks that are meant, where that is not all of them. */
    hunks: HunkId[] | undefined;
}

/** Prompts whose answer is on its way: a second press of the key is none. */
const answering = new Set<string>();

async function respond(app: App, prompt: PermissionPrompt, said: Answer): Promise<void> {
    if (answering.has(prompt.permissionId)) return;
    const { decision, scope, words, input, hunks } = said;
    const answer: RespondPermissionParams = {
        sessionId: prompt.sessionId,
        permissionId: prompt.permissionId,
        decision,
    };
    if (decision === "allow") {
        // A standing yes speaks of whole changes.
        answer.scope = hunks ? "once" : scope;
        if (hunks) answer.hunks = hunks;
        if (input !== undefined) answer.updatedInput = JSON.parse(input) as unknown;
    }
    if (words.trim() !== "") answer.feedback = words;
    answering.add(prompt.permissionId);
    try {
        await app.host.request("agent/permission/respond", answer);
    } finally {
        answering.delete(prompt.permissionId);
    }
}
