// A call that needs the user's yes: exactly what will happen, why it is asked, how far a yes reaches.
//
// Rule: Allow works only once the allowed text was in sight. The card takes the focus only after another card was
// answered by the keyboard; where it has it, Enter allows, the arrows choose how far, Escape denies, and typed words
// turn a no into advice.

import type { PermissionPrompt, ProposedDiagnostics } from "kode-protocol";
import { useRef } from "preact/hooks";

import { useApp, useSelect } from "../app/context.ts";
import { Icon } from "../panels/Icon.tsx";
import { Words } from "../panels/Words.tsx";
import { counted, exact, exactLine, pathOf, relativePaths } from "../text.ts";
import { useAskingCard, useSight, type Sight } from "./asking.ts";
import { CallTitle } from "./parts.tsx";
import { commandOf, editable, type PermissionState, usePermission } from "./permission.ts";
import { Preview } from "./PermissionPreview.tsx";
import { moved, ReachChoice, REACHES } from "./PermissionReach.tsx";

const TOO_EARLY = "This just appeared. Press Enter again to allow it.";

interface Props {
    prompt: PermissionPrompt;
    /** How many more prompts wait. */
    others: number;
}

export function PermissionCard({ prompt, others }: Props) {
    const card = useRef<HTMLElement>(null);
    const body = useRef<HTMLDivElement>(null);
    const tell = useRef<HTMLInputElement>(null);
    const state = usePermission(prompt);
    const sight = useSight(prompt.permissionId);
    const isSettled = useAskingCard(card);
    const app = useApp();
    const canAllow = isAllowable(state, sight);
    const onKey = (event: KeyboardEvent) => {
        const target = event.target as HTMLElement;
        const inField = target.tagName === "TEXTAREA" || target.tagName === "INPUT";
        const onCard = target === card.current;
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (event.key === "Escape") void state.answer("deny");
        else if (event.key === "Enter" && onCard) {
            if (event.repeat || !isSettled()) app.announce(TOO_EARLY);
            else if (canAllow) void state.answer("allow");
            else if (!sight.seen && !readOn(body.current)) app.announce(TOO_EARLY);
        } else if (!inField && step !== undefined) state.setReach(moved(state.reaches, state.reach, step));
        else if (onCard && isWritten(event)) {
            // The letter goes where the focus is when the key's default comes.
            tell.current?.focus();
            return;
        } else return;
        event.preventDefault();
        event.stopPropagation();
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
                    {prompt.preview.type === "command" ? "Run this command?" : <CallTitle text={prompt.title} asks />}
                </h2>
                {isHidden(state, sight) && <span class="unread">Scroll to read all of it</span>}
                {others > 0 && <span class="badge">{counted(others, "more")}</span>}
            </header>
            <div ref={body} class="prompt-body">
                <About prompt={prompt} />
                <Preview prompt={prompt} state={state} sight={sight} />
                <Reasons prompt={prompt} />
                <Arguments prompt={prompt} state={state} />
            </div>
            <ReachChoice prompt={prompt} state={state} />
            <Answer prompt={prompt} state={state} sight={sight} tell={tell} />
        </section>
    );
}

/** The model's purpose of its command. */
function About({ prompt: { input } }: { prompt: PermissionPrompt }) {
    const description = (input as { description?: unknown } | null)?.description;
    if (typeof description !== "string" || description.trim() === "") return null;
    return <p class="about">{exact(description.trim())}</p>;
}

/** Whether Allow can be given: something is left of the change, and the allowed text was in sight or is being written. */
function isAllowable(state: PermissionState, sight: Sight): boolean {
    const { busy, hunks } = state;
    return !busy && hunks?.length !== 0 && !isHidden(state, sight);
}

/** Whether a part of the request was not in sight yet. */
function isHidden({ input }: PermissionState, { seen }: Sight): boolean {
    return !seen && input === undefined;
}

/** Scrolls to the part that was not in sight yet. Whether there is one: a request that fits is only not drawn yet. */
function readOn(body: HTMLElement | null): boolean {
    if (!body || body.scrollTop + body.clientHeight >= body.scrollHeight - 1) return false;
    body.scrollBy({ top: Math.max(40, body.clientHeight - 40) });
    return true;
}

function isWritten({ key, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
    return key.length === 1 && key !== " " && !ctrlKey && !metaKey && !altKey;
}

function Reasons({ prompt }: { prompt: PermissionPrompt }) {
    const folders = useSelect((state) => state.host?.folders) ?? [];
    const { preview, reason, risks } = prompt;
    return (
        <>
            {risks.length > 0 && (
                <ul class="risks" aria-label="Risks">
                    {risks.map((risk, index) => (
                        <li key={index}>
                            <Icon name="warning" />
                            <span>
                                <Words text={exactLine(risk)} />
                            </span>
                        </li>
                    ))}
                </ul>
            )}
            {preview.type === "command" && <Limits preview={preview} />}
            {prompt.diagnostics && <Diagnostics diagnostics={prompt.diagnostics} />}
            <p class="reason">
                Asked because <Words text={relativePaths(exactLine(reason), folders)} />.
            </p>
        </>
    );
}

/** The diagnostics that the change would add and remove; it fills in when a language server has reported it. */
function Diagnostics({ diagnostics }: { diagnostics: ProposedDiagnostics }) {
    const { summary, lines } = diagnostics;
    return (
        <div class="diagnostics" role="status">
            <p class="reason">This change {exactLine(summary)}.</p>
            {lines.length > 0 && (
                <ul class="reason">
                    {lines.map((line, index) => (
                        <li key={index}>
                            <Words text={exactLine(line)} />
                        </li>
                    ))}
                </ul>
            )}
        </div>
    );
}

/** Where a command runs, and what confines it; an older server names the sandbox among the risks. */
function Limits({ preview }: { preview: Extract<PermissionPrompt["preview"], { type: "command" }> }) {
    const folders = useSelect((state) => state.host?.folders) ?? [];
    const isRoot = folders.length === 1 && folders.every(({ uri }) => pathOf(uri) === preview.cwd);
    if (preview.sandboxed === undefined && isRoot) return null;
    return (
        <p class="reason">
            {preview.sandboxed === true && "Runs in the sandbox: it can change the workspace and has no network. "}
            {preview.sandboxed === false && "Runs with your permissions, outside the sandbox. "}
            {!isRoot && (
                <>
                    Folder: <bdi>{relativePaths(exactLine(preview.cwd), folders)}</bdi>.
                </>
            )}
        </p>
    );
}

function Arguments({ prompt, state: { input, setInput } }: { prompt: PermissionPrompt; state: PermissionState }) {
    if (input === undefined) return null;
    return (
        <label class="field">
            {commandOf(prompt) === undefined ? "Arguments" : "Command"}; the rules are checked again
            <textarea
                class="mono"
                rows={Math.min(12, input.split("\n").length + 1)}
                value={input}
                spellcheck={false}
                onInput={(event) => setInput(event.currentTarget.value)}
            />
        </label>
    );
}

interface AnswerProps {
    prompt: PermissionPrompt;
    state: PermissionState;
    sight: Sight;
    tell: { current: HTMLInputElement | null };
}

function Answer({ prompt, state, sight, tell }: AnswerProps) {
    const { busy, words, answer } = state;
    return (
        <div class="answer">
            <button
                type="button"
                class="primary"
                disabled={!isAllowable(state, sight)}
                title={isHidden(state, sight) ? "Scroll to the end of the request first" : ""}
                onClick={() => void answer("allow")}
            >
                Allow{reachLabel(state)}
            </button>
            <button type="button" class="secondary deny" disabled={busy} onClick={() => void answer("deny")}>
                {words.trim() === "" ? "Deny" : "Deny and tell"}
            </button>
            <input
                ref={tell}
                type="text"
                class="tell"
                placeholder="Tell Kode what to do instead"
                aria-label="Tell Kode what to do instead"
                value={words}
                onInput={(event) => state.setWords(event.currentTarget.value)}
                onKeyDown={(event) => {
                    if (event.key !== "Enter" || event.isComposing || words.trim() === "") return;
                    event.preventDefault();
                    void answer("deny");
                }}
            />
            <EditButton prompt={prompt} state={state} />
        </div>
    );
}

/** Edits the arguments: those of a change in a diff editor, others on the card. */
function EditButton({ prompt, state }: { prompt: PermissionPrompt; state: PermissionState }) {
    const app = useApp();
    const { input, proposed } = state;
    const [first] = proposed;
    const label = first ? "Edit the change in a diff editor" : "Edit the arguments";
    const edit = () => {
        if (!first) state.setInput(input === undefined ? editable(prompt) : undefined);
        else void app.attempt(() => app.host.act("openDiff", { sessionId: prompt.sessionId, uri: first.uri }));
    };
    return (
        <button
            type="button"
            class="icon-button"
            title={label}
            aria-label={label}
            aria-pressed={input !== undefined}
            onClick={edit}
        >
            <Icon name="edit" />
        </button>
    );
}

function reachLabel({ hunks, proposed, reach }: PermissionState): string {
    if (hunks) return ` ${hunks.length} of ${counted(proposed.length, "hunk")}`;
    return reach === "once" ? "" : ` ${REACHES[reach].toLowerCase()}`;
}
