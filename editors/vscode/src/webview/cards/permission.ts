// The state of a permission card: its choices, and the answer.
//
// Rule: one answer for each prompt, however often the key is pressed. Edited arguments and left-out hunks are never kept as rules.

import type { HunkId, Mode, PermissionPrompt, RespondPermissionParams, Scope } from "kode-protocol";
import { useMemo, useState } from "preact/hooks";

import type { App } from "../app/app.ts";
import { useApp, useSelect, useSession } from "../app/context.ts";
import { chosen, proposedBy, type Proposed } from "./proposed.ts";

/** How far an Allow reaches: a scope of the prompt, or all edits of the session by a change of mode. */
export type Reach = Scope | "edits";

/** Modes in which edits ask and `acceptEdits` would have them run. */
const ASKING: ReadonlySet<Mode> = new Set<Mode>(["default", "approval"]);

/** The mode in which edits in the workspace run without asking. */
const EDITING: Mode = "acceptEdits";

/** The choices on a card, and its actions. */
export interface PermissionState {
    readonly reaches: readonly Reach[];
    readonly reach: Reach;
    setReach(reach: Reach): void;
    /** Words for the model. */
    readonly words: string;
    setWords(words: string): void;
    /** The arguments while they are edited. */
    readonly input: string | undefined;
    setInput(input: string | undefined): void;
    /** The hunks that the prompt asks about; empty while other arguments are written. */
    readonly proposed: readonly Proposed[];
    readonly left: ReadonlySet<HunkId>;
    setLeft(left: ReadonlySet<HunkId>): void;
    /** The hunks that are meant, where those are not all. */
    readonly hunks: HunkId[] | undefined;
    readonly busy: boolean;
    answer(decision: "allow" | "deny"): Promise<void>;
}

/** The state of the card of one prompt. */
export function usePermission(prompt: PermissionPrompt): PermissionState {
    const app = useApp();
    const [reach, setReach] = useState<Reach>("once");
    const [words, setWords] = useState("");
    const [input, setInput] = useState<string>();
    const [left, setLeft] = useState<ReadonlySet<HunkId>>(new Set());
    const [busy, setBusy] = useState(false);
    const mode = useSession((view) => view.mode);
    const edits = useSelect((state) => state.edits);
    const all = useMemo(() => proposedBy(edits, prompt.permissionId), [edits, prompt.permissionId]);
    // Other arguments make another change, of other hunks.
    const proposed = input === undefined ? all : [];
    const hunks = chosen(proposed, left);
    const reaches = useMemo(() => reachesOf(prompt, mode), [prompt, mode]);
    const answer = async (decision: "allow" | "deny") => {
        setBusy(true);
        const done = await app.attempt(() => respond(app, prompt, { decision, reach, words, input, hunks }));
        if (!done) setBusy(false);
    };
    const chosenNow = { reach, setReach, words, setWords, input, setInput, left, setLeft };
    return { ...chosenNow, reaches, proposed, hunks, busy, answer };
}

/** How far an Allow can reach. A prompt for an edit can switch the mode, for all edits. */
function reachesOf(prompt: PermissionPrompt, mode: Mode | undefined): readonly Reach[] {
    const scopes: readonly Reach[] = prompt.scopes.length > 0 ? prompt.scopes : ["once"];
    const isEdit = prompt.preview.type === "diff" && prompt.agentId === undefined;
    if (!isEdit || mode === undefined || !ASKING.has(mode)) return scopes;
    return [...scopes.slice(0, 1), "edits", ...scopes.slice(1)];
}

interface Answer {
    decision: "allow" | "deny";
    reach: Reach;
    words: string;
    input: string | undefined;
    hunks: HunkId[] | undefined;
}

/** Prompts whose answer is on its way. */
const answering = new Set<string>();

async function respond(app: App, prompt: PermissionPrompt, answer: Answer): Promise<void> {
    const { permissionId, sessionId } = prompt;
    if (answering.has(permissionId)) return;
    answering.add(permissionId);
    try {
        const params = paramsOf(prompt, answer);
        // First: where it fails, nothing was allowed.
        if (answer.decision === "allow" && answer.reach === "edits" && !answer.hunks)
            await app.host.request("agent/session/configure", { sessionId, mode: EDITING });
        await app.host.request("agent/permission/respond", params);
    } finally {
        answering.delete(permissionId);
    }
}

function paramsOf(prompt: PermissionPrompt, answer: Answer): RespondPermissionParams {
    const { decision, reach, words, input, hunks } = answer;
    const params: RespondPermissionParams = {
        sessionId: prompt.sessionId,
        permissionId: prompt.permissionId,
        decision,
    };
    if (decision === "allow") {
        // A permanent permission covers whole changes.
        params.scope = hunks || reach === "edits" ? "once" : reach;
        if (hunks) params.hunks = hunks;
        if (input !== undefined) params.updatedInput = written(prompt, input);
    }
    if (words.trim() !== "") params.feedback = words;
    return params;
}

/** The arguments as text to edit: of a command its line, of others JSON. */
export function editable(prompt: PermissionPrompt): string {
    return commandOf(prompt) ?? JSON.stringify(prompt.input, null, 2);
}

/** The arguments that edited text represents. */
function written(prompt: PermissionPrompt, text: string): unknown {
    return commandOf(prompt) === undefined ? (JSON.parse(text) as unknown) : { ...(prompt.input as object), command: text };
}

/** The command line of a call; undefined for calls without one. */
export function commandOf({ input }: PermissionPrompt): string | undefined {
    const command = (input as { command?: unknown } | null)?.command;
    return typeof command === "string" ? command : undefined;
}
