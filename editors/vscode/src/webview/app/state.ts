// All that the page knows.
//
// Rule: what the server keeps is here as received; beside it is only the page's own state: the
// draft, open parts, the last failure.

import type {
    CallId,
    Delivery,
    InputPart,
    ItemId,
    ListEditsResult,
    ListModelsResult,
    SelectionPart,
    SessionHit,
    SessionId,
    SessionSummary,
} from "kode-protocol";

import type { FoundModel, HostState } from "../../shared/messages.ts";
import type { Proposed } from "../cards/proposed.ts";
import type { SessionView } from "../store/session.ts";

/** A prompt that is being written. */
export interface Prompt {
    readonly text: string;
    readonly parts: readonly InputPart[];
    /** The message that it is to replace; absent for a new one. */
    readonly instead?: { readonly itemId: ItemId; readonly files: "keep" | "restore" };
    /** Counts changes that did not come from typing, after which the cursor is at the end. */
    readonly revision: number;
}

/** A prompt without text. */
export const BLANK: Prompt = { text: "", parts: [], revision: 0 };

/** A side question with its answer as far as it is here. */
export interface SideQuestion {
    readonly askId: string;
    readonly sessionId: SessionId;
    readonly question: string;
    /** The answer in Markdown. */
    readonly text: string;
    readonly state: "asking" | "answered" | "cut" | "failed";
    /** Why there is no answer. */
    readonly problem?: { readonly message: string; readonly hint: string };
}

/** Something that went wrong with an act of the user. */
export interface Trouble {
    readonly message: string;
    readonly hint: string;
}

/** Something that was done and can be taken back. */
export interface Undoable {
    readonly text: string;
    readonly sessionId: SessionId;
    readonly resolutionId: string;
}

/** Code of an answer that waits for the user's yes to replace something. */
export interface Applying {
    readonly place: SelectionPart;
    readonly code: string;
}

/** The list of sessions as far as it is here. */
export interface SessionList {
    readonly sessions: readonly SessionSummary[];
    readonly cursor?: string;
    readonly query: string;
    readonly hits: readonly SessionHit[];
    readonly archived: boolean;
    readonly busy: boolean;
}

/** A page of its own in the place of the conversation. */
export type Pane = "rules" | "checkpoints";

/** The state of a page. */
export interface AppState {
    readonly host: HostState | undefined;
    /** The session that is shown; absent for one that begins with its first prompt. */
    readonly active: SessionId | undefined;
    /** Whether the shown session is being loaded. */
    readonly loading: boolean;
    readonly sessions: ReadonlyMap<SessionId, SessionView>;
    readonly prompt: Prompt;
    /** The prompt that was submitted while the server was being started, which takes it when it is there. */
    readonly handedIn: { readonly prompt: Prompt; readonly delivery: Delivery } | undefined;
    /** Whether what the editor shows goes with the next prompt. */
    readonly editorContext: boolean;
    readonly edits: ListEditsResult | undefined;
    /** Proposals of calls: as long as they wait, and after they were denied, so that it can be applied after all. */
    readonly proposals: ReadonlyMap<CallId, readonly Proposed[]>;
    readonly models: ListModelsResult | undefined;
    /** Models that could be added, as the newest search found them; absent before the first. */
    readonly found: readonly FoundModel[] | undefined;
    readonly list: SessionList;
    readonly listOpen: boolean;
    /** The pane instead of the conversation; absent for the conversation, or the list of sessions. */
    readonly pane: Pane | undefined;
    readonly trouble: Trouble | undefined;
    readonly undoable: Undoable | undefined;
    readonly applying: Applying | undefined;
    /** The side questions that were not closed yet, oldest first. */
    readonly asides: readonly SideQuestion[];
    /** Rows of the transcript that are open or closed against their default, by a key of the row. */
    readonly toggled: ReadonlyMap<string, boolean>;
    /** The message whose checkpoint is being viewed. */
    readonly checkpoint: ItemId | undefined;
    /** The announcement for screen readers, with a number so that the same text is read again. */
    readonly announcement: { readonly text: string; readonly number: number };
}

export const INITIAL: AppState = {
    host: undefined,
    active: undefined,
    loading: false,
    sessions: new Map(),
    prompt: BLANK,
    handedIn: undefined,
    editorContext: true,
    edits: undefined,
    proposals: new Map(),
    models: undefined,
    found: undefined,
    list: { sessions: [], query: "", hits: [], archived: false, busy: false },
    listOpen: false,
    pane: undefined,
    trouble: undefined,
    undoable: undefined,
    applying: undefined,
    asides: [],
    toggled: new Map(),
    checkpoint: undefined,
    announcement: { text: "", number: 0 },
};

/** The session that is shown. */
export function activeSession(state: AppState): SessionView | undefined {
    return state.active === undefined ? undefined : state.sessions.get(state.active);
}
