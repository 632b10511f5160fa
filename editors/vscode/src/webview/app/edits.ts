// The changes of the session, and their handling.
//
// Rule: the list is asked for again when an event says it is out of date; one request at a time, and one more when something
// changed meanwhile.

import type { EditSelection, HunkId, ListEditsResult, ReviewAction, Uri } from "kode-protocol";

import { counted, exactLine } from "../text.ts";
import type { App } from "./app.ts";
import type { AppState } from "./state.ts";

/** The most calls whose proposals are remembered. */
const MAX_PROPOSALS = 100;

let asking = false;
let again = false;

/** Gets the list of changed files of the session that is shown. */
export async function refreshEdits(app: App): Promise<void> {
    if (asking) {
        again = true;
        return;
    }
    asking = true;
    do {
        again = false;
        const sessionId = app.state.active;
        if (sessionId === undefined) break;
        await app.attempt(async () => {
            const edits = await app.host.request("agent/edits/list", { sessionId });
            if (app.state.active === sessionId) app.set({ edits, proposals: withProposals(app.state.proposals, edits) });
        });
    } while (again);
    asking = false;
}

/** Keeps or undoes what a file, the session or some hunks have; with words to the agent, if there are any. */
export async function resolveEdits(
    app: App,
    action: ReviewAction,
    what: { uri: Uri } | { hunkIds: HunkId[] } | "session",
    words = "",
): Promise<boolean> {
    const { sessionId } = app.session();
    const selection: EditSelection =
        what === "session"
            ? { type: "session", sessionId }
            : "uri" in what
              ? { type: "file", sessionId, uri: what.uri }
              : { type: "hunks", sessionId, hunkIds: what.hunkIds };
    const subject = subjectOf(app, what);
    return app.attempt(async () => {
        const result = await app.host.request("agent/edits/resolve", { selection, action, ...said(words) });
        const [resolution] = result.resolutions;
        if (resolution) offerUndo(app, `${DONE[action]} ${subject}.`, resolution.resolutionId);
    });
}

/** Marks the changes of a file as reviewed, or removes the mark; the list is asked for again by the event about it. */
export function markReviewed(app: App, uri: Uri, reviewed: boolean): Promise<boolean> {
    const { sessionId } = app.session();
    return app.attempt(() => app.host.request("agent/edits/review", { sessionId, uri, reviewed }));
}

const DONE: Record<ReviewAction, string> = { keep: "Kept", undo: "Undone:", accept: "Applied", reject: "Undone:" };

/** The subject of a decision, for people. */
function subjectOf(app: App, what: { uri: Uri } | { hunkIds: HunkId[] } | "session"): string {
    const files = app.state.edits?.files ?? [];
    if (what === "session") return counted(files.length, "file");
    if ("hunkIds" in what) {
        const ids = new Set(what.hunkIds);
        const file = files.find(({ hunks }) => hunks.some(({ hunkId }) => ids.has(hunkId)));
        const changes = counted(what.hunkIds.length, "change");
        return file ? `${changes} in ${exactLine(file.path)}` : changes;
    }
    return exactLine(files.find(({ uri }) => uri === what.uri)?.path ?? what.uri);
}

/** Words to the agent, if there are any. */
function said(words: string): { text?: string } {
    return words.trim() === "" ? {} : { text: words.trim() };
}

/** The former and the current proposals: a place that was dropped is listed no more. */
function withProposals(before: AppState["proposals"], { files }: ListEditsResult): AppState["proposals"] {
    const all = new Map(before);
    for (const { path, uri, hunks } of files) {
        for (const hunk of hunks.filter(({ state }) => state === "proposed")) {
            const known = all.get(hunk.callId) ?? [];
            if (known.every((one) => one.hunk.hunkId !== hunk.hunkId)) all.set(hunk.callId, [...known, { path, uri, hunk }]);
        }
    }
    return new Map([...all].slice(-MAX_PROPOSALS));
}

/** Offers to take an act back. */
export function offerUndo(app: App, text: string, resolutionId: string): void {
    const { sessionId } = app.session();
    app.set({ undoable: { text, sessionId, resolutionId } });
    app.announce(`${text} It can be taken back.`);
}

/** Takes the act back that was offered. */
export async function takeBack(app: App): Promise<void> {
    const { undoable } = app.state;
    if (!undoable) return;
    app.set({ undoable: undefined });
    const { sessionId, resolutionId } = undoable;
    if (await app.attempt(() => app.host.request("agent/edits/revert", { sessionId, resolutionId }))) {
        app.announce("Taken back.");
    }
}

/** Says what of an act did not work; undefined when all of it did. */
export function unresolved(result: {
    conflicts: unknown[];
    failed: { uri: Uri; reason: string }[];
}): string | undefined {
    const failed = result.failed.map(({ uri, reason }) => `${exactLine(uri)}: ${reason}`);
    if (failed.length > 0) return failed.join("\n");
    return result.conflicts.length > 0
        ? "You edited some of these places. They are unchanged and marked as conflicts."
        : undefined;
}
