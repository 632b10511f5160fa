// The contract between the extension host and a page of the chat: every message either of them may send.
//
// Rule: no editor API and no DOM in here; the types of the protocol are imported, never written again. The host relays
// requests and events as they are, and decides nothing about them. Both sides skip what they do not know.

import type {
    AgentEventParams,
    EditorContext,
    ErrorData,
    InputPart,
    Range,
    Requests,
    SelectionPart,
    SessionId,
    TaskId,
    Uri,
} from "kode-protocol";

/** The requests a page may make of the server. */
export const METHODS = [
    "agent/session/new",
    "agent/session/list",
    "agent/session/rename",
    "agent/session/archive",
    "agent/session/delete",
    "agent/session/search",
    "agent/session/load",
    "agent/session/takeOver",
    "agent/session/items",
    "agent/session/close",
    "agent/session/fork",
    "agent/session/export",
    "agent/session/import",
    "agent/session/configure",
    "agent/session/compact",
    "agent/session/ask",
    "agent/subagent/load",
    "agent/usage/get",
    "agent/context/get",
    "agent/context/window",
    "agent/turn/start",
    "agent/turn/cancel",
    "agent/turn/retry",
    "agent/attachment/read",
    "agent/tool/cancel",
    "agent/complete",
    "agent/queue/update",
    "agent/draft/set",
    "agent/permission/respond",
    "agent/permission/list",
    "agent/permission/rules",
    "agent/permission/addRule",
    "agent/permission/removeRule",
    "agent/permission/explain",
    "agent/trust/list",
    "agent/trust/approve",
    "agent/trust/revoke",
    "agent/trust/dismiss",
    "agent/question/respond",
    "agent/todos/list",
    "agent/edits/list",
    "agent/edits/resolve",
    "agent/edits/review",
    "agent/edits/revert",
    "agent/document/baseline",
    "agent/document/proposed",
    "agent/checkpoint/list",
    "agent/checkpoint/restore",
    "agent/tasks/list",
    "agent/tasks/stop",
    "agent/tasks/background",
    "agent/team/send",
    "agent/output/read",
    "agent/tools/list",
    "agent/models/list",
    "agent/agents/list",
] as const satisfies readonly (keyof Requests)[];

/** A request a page may make. */
export type Method = (typeof METHODS)[number];

/** The parameters of a request. */
export type Params<M extends Method> = Requests[M]["params"];

/** The result of a request. */
export type Result<M extends Method> = Requests[M]["result"];

/** Pairs messages with their answers; chosen by the page, unique as long as the page lives. */
export type MessageId = number;

/** The error of a request or an action. */
export interface Failure {
    /** The code of JSON-RPC; 0 when it never reached the server. */
    code: number;
    /** The event, for people. */
    message: string;
    /** The data for the next step; absent when it never reached the server. */
    data?: ErrorData;
}

// From the page to the host.

/**
 * The page is drawn and takes messages from now on; everything that was sent before it was drawn is lost. One in an editor
 * tab keeps `{ sessionId }` with `setState`, to be shown again after a restart of the editor; every page keeps its draft
 * while there is no server.
 */
export interface Ready {
    type: "ready";
}

/** The page got the focus of the keyboard, or lost it: sent with the `focus` and `blur` of its window. */
export interface FocusMessage {
    type: "focus";
    focused: boolean;
}

/** A request to the server. */
export type RequestMessage<M extends Method = Method> = {
    [K in M]: { type: "request"; id: MessageId; method: K; params: Params<K> };
}[M];

/** A request is not wanted any more; it is answered all the same, mostly with a failure. */
export interface CancelMessage {
    type: "cancel";
    id: MessageId;
}

/** A key in the environment, or a model of a server on this machine, that could be used. */
export interface FoundModel {
    /** The server's name of the provider. */
    provider: string;
    /** The same for people. */
    label: string;
    /** The model; absent where the trial chooses one. */
    model?: string;
    /** Where it was found, for people. */
    detail: string;
}

/** A symbol of the workspace. */
export interface FoundSymbol {
    name: string;
    /** Its kind, what it is in, and its place, for people. */
    detail: string;
    uri: Uri;
    range: Range;
}

/** Acts in the editor for a page: `payload` goes in, `result` comes out. All of it follows an act of the user. */
export interface HostActions {
    /** Opens a file and gives it the focus. */
    openFile: { payload: { uri: Uri; range?: Range; preview?: boolean }; result: null };
    /** Opens a changed file beside its baseline, the right side editable. */
    openDiff: { payload: { sessionId: SessionId; uri: Uri }; result: null };
    /** Opens all files the session has changed as one diff. */
    reviewChanges: { payload: { sessionId: SessionId }; result: null };
    /** Reads an image of the workspace as a data URL; null for a file that is not an image, is elsewhere, or is too large. */
    readImage: { payload: { uri: Uri }; result: { url: string | null } };
    /** Opens a text that is in no file, such as the whole output of a command. */
    openText: { payload: { title: string; text: string; languageId?: string }; result: null };
    /** Opens a terminal in the first workspace folder with a command typed, for the user to run. */
    openTerminal: { payload: { command: string }; result: null };
    /** Shows the output of a command in the background in a terminal, as it comes. */
    showTask: { payload: { sessionId: SessionId; taskId: TaskId; title: string }; result: null };
    /** Puts text in place of the selection of the editor used last. */
    insert: { payload: { text: string }; result: null };
    /**
     * Puts text in place of the selection, as a change of the session that is reviewed like the agent's; refused when the
     * place is another text than it was.
     */
    replace: { payload: { sessionId: SessionId; place: SelectionPart; text: string }; result: null };
    /** Puts text into the clipboard. */
    copy: { payload: { text: string }; result: null };
    /** Opens an `http`, `https` or `mailto` link outside of the editor. */
    openLink: { payload: { href: string }; result: null };
    /** Lets the user choose files of the workspace; empty when they chose none. */
    pickFiles: { payload: Record<never, never>; result: { uris: Uri[] } };
    /** Lets the user choose a place to write a text to; false when they chose none. */
    saveText: { payload: { fileName: string; text: string }; result: { saved: boolean } };
    /** The editor's state, with the selected text: `context` of the next prompt. */
    editorContext: { payload: Record<never, never>; result: EditorContext };
    /** Symbols that a name matches; those of the active file for an empty one. */
    findSymbols: { payload: { query: string }; result: { symbols: FoundSymbol[] } };
    /** The current selection, to go with the prompt; null when nothing is. */
    selection: { payload: Record<never, never>; result: SelectionPart | null };
    /** Where in an open document a text was copied from; null when that cannot be told for sure. */
    findCopied: { payload: { text: string }; result: SelectionPart | null };
    /** Asks a yes or no of the user in a dialog. */
    confirm: {
        payload: { message: string; detail?: string; yes: string };
        result: { confirmed: boolean };
    };
    /** Asks for a key in the editor's own fields; the page never sees it. */
    addKey: { payload: Record<never, never>; result: { added: boolean } };
    /** Looks for keys in the environment and for servers on this machine; `fresh` also where they answered a moment ago. */
    findModels: { payload: { fresh: boolean }; result: { found: FoundModel[] } };
    /** Makes a profile of a found key or model, and returns its name; absent where the trial failed or the user gave up. */
    useModel: { payload: FoundModel; result: { profile?: string } };
    /** Lets the user choose the program of the server; false when they chose none. */
    chooseServer: { payload: Record<never, never>; result: { chosen: boolean } };
    /** Opens the editor's own page about trust in the workspace. */
    manageTrust: { payload: Record<never, never>; result: null };
    /** Opens the settings, at those whose names match the query. */
    openSettings: { payload: { query?: string }; result: null };
    /** Opens the first steps. */
    openWalkthrough: { payload: Record<never, never>; result: null };
    /** Shows the log of the connection. */
    showLogs: { payload: Record<never, never>; result: null };
    /** Runs the server's doctor and shows what it says. */
    doctor: { payload: Record<never, never>; result: null };
    /** Starts the server again, also after it was given up. */
    restart: { payload: Record<never, never>; result: null };
    /** Opens a session in an editor tab; a new one without an id. */
    openInEditor: { payload: { sessionId?: SessionId }; result: null };
    /**
     * Says which session this page shows; null for none. The host shows it again after a reload, and commands such as
     * “stop” mean the one whose page was used last.
     */
    showing: { payload: { sessionId: SessionId | null; title: string }; result: null };
}

/** The name of an action. */
export type Action = keyof HostActions;

/** Has the editor do something. */
export type HostMessage<A extends Action = Action> = {
    [K in A]: { type: "host"; id: MessageId; action: K; payload: HostActions[K]["payload"] };
}[A];

/** All that a page sends. */
export type FromPage = Ready | FocusMessage | RequestMessage | CancelMessage | HostMessage;

// From the host to the page.

/** The answer to a request or an action, in whichever order they come. */
export type ResponseMessage =
    | { type: "response"; id: MessageId; result: unknown }
    | { type: "response"; id: MessageId; error: Failure };

/** Something happened in a session that this window follows, whether or not the page shows it. */
export interface EventMessage {
    type: "event";
    params: AgentEventParams;
}

/** The list of sessions is another one than it was when it was asked for. */
export interface ListChangedMessage {
    type: "listChanged";
}

/** How the server is. */
export type Connection =
    /** It is being started, for the first time or again; requests fail. */
    | { state: "starting" }
    /** It answers. Sessions are followed again by `agent/session/load`. */
    | { state: "ready"; serverVersion: string }
    /** It ended by itself and is started again in this many milliseconds; followed sessions are resumed then. */
    | { state: "crashed"; reason: string; restartInMs: number; attempt: number }
    /** It is not started again by itself. */
    | { state: "stopped"; reason: string; hint: string; setup: Setup | null };

/** The missing setup. */
export type Setup =
    /** No program of the server was found. */
    | "serverMissing"
    /** The found program does not run, or is no server that this extension can talk to. */
    | "serverUnusable";

/** The editor used last, as far as a page needs it for its chip. */
export interface ActiveEditor {
    uri: Uri;
    /** Its path relative to the workspace, for people. */
    path: string;
    /** The selection, empty for a cursor. */
    range: Range;
    languageId: string;
}

/** Settings of the editor that change how a page looks or behaves. */
export interface ViewSettings {
    /** Whether Enter sends and Shift+Enter makes a line; otherwise Ctrl+Enter sends. */
    enterSends: boolean;
    /** Whether what the editor shows goes with prompts unless the user takes it off. */
    includeEditorContext: boolean;
    /** Whether what the model thought is shown open. */
    expandThinking: boolean;
    /** The size of the text in pixels, 0 for that of the editor's views. */
    fontSize: number;
    /** Whether both sides of a diff stand beside each other; `auto` decides by the width. */
    diffLayout: "auto" | "unified" | "split";
}

/** The state of the editor for a page. Sent whole, first after `ready` and then whenever it changed. */
export interface HostState {
    connection: Connection;
    /** Where the page is shown. */
    surface: "view" | "editor";
    /** The session to show; absent for a new one. The page says `showing` when it shows another. */
    sessionId?: SessionId;
    folders: { uri: Uri; name: string }[];
    /** Sessions of this window in which a turn ended that the user has not seen yet. */
    unseen: SessionId[];
    trusted: boolean;
    settings: ViewSettings;
    /** Absent when no editor with a text was used. */
    editor?: ActiveEditor;
    theme: "light" | "dark" | "highContrast" | "highContrastLight";
    /** Colors of code in the editor's theme, as hexadecimal values by the kind of token; kinds without one are absent. */
    tokenColors: Record<string, string>;
}

/** The editor's state. */
export interface StateMessage {
    type: "host";
    state: HostState;
}

/** Requests of the user to the page by a command or a key of the editor. */
export type Command =
    /** The prompt is to get the focus. */
    | { name: "focusInput" }
    /** A new session is to be shown; in a git worktree of its own if it says so. */
    | { name: "newSession"; worktree?: true }
    /** This session is to be shown; at an item, if there is one. */
    | { name: "showSession"; sessionId: SessionId }
    /** The list of sessions is to be shown. */
    | { name: "showSessions" }
    /** Selected text is to go with the prompt. */
    | { name: "addSelection"; part: SelectionPart }
    /** Files are to go with the prompt. */
    | { name: "addFiles"; uris: Uri[] }
    /** Text is to be put into the prompt where the cursor is, unsent. */
    | { name: "insertText"; text: string }
    /** This is to be submitted as a prompt of the session that is shown; the draft stays. */
    | { name: "ask"; input: InputPart[] }
    /** The permission prompt or question that waits longest is to be shown and get the focus. */
    | { name: "focusWaiting" }
    /** The choice of a mode is to be opened. */
    | { name: "chooseMode" }
    /** The choice of a model is to be opened. */
    | { name: "chooseModel" }
    /** The rules in force, and what waits for approval, are to be shown. */
    | { name: "showRules" }
    /** The list of checkpoints is to be opened. */
    | { name: "showCheckpoints" }
    /** The focus is to go to the last message, for screen readers. */
    | { name: "focusLastMessage" };

/** Passes a command of the user on to the page that was used last. */
export type CommandMessage = { type: "command" } & Command;

/** All that the host sends. */
export type ToPage = ResponseMessage | EventMessage | ListChangedMessage | StateMessage | CommandMessage;
