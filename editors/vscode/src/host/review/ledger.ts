// The undecided changes of the agent, file by file, as the server listed it last.
//
// Rule: the server's ledger is the truth and this is its newest copy. It is asked again for what `edits_changed` names and
// no more; a caller that acts on hunks asks for a fresh list of the file first.

import type { AgentEventParams, EditedFile, EditSelection, ReviewAction, SessionId } from "kode-protocol";
import * as vscode from "vscode";
import { messageOf } from "../../logic/words.ts";
import { keyOf } from "../convert.ts";
import type { Server } from "../server.ts";
import type { Sessions } from "../sessions.ts";

/** How long changes are gathered before the list is asked for. */
const GATHER_MS = 40;

/** More files than this, and the whole list is asked for at once. */
const MANY_FILES = 8;

/** The most files of a session that are kept. */
const MOST_FILES = 1_000;

/** A file with hunks, and whose they are. */
export interface Entry {
    sessionId: SessionId;
    file: EditedFile;
}

/** The files of one session by the one spelling of their URIs. */
type Files = Map<string, EditedFile>;

/** The files to request: some files, or all. */
type Stale = Set<string> | "all";

/** The newest lists. */
export class Ledger implements vscode.Disposable {
    private readonly sessionsFiles = new Map<SessionId, Files>();
    private readonly stale = new Map<SessionId, Stale>();
    private readonly changed = new vscode.EventEmitter<vscode.Uri[]>();
    private readonly subscriptions: vscode.Disposable[];
    private timer: NodeJS.Timeout | undefined;
    private asking: Promise<void> = Promise.resolve();

    /** These files have other hunks now. */
    readonly onChange = this.changed.event;

    constructor(
        private readonly server: Server,
        private readonly sessions: Sessions,
        private readonly log: vscode.LogOutputChannel,
    ) {
        this.subscriptions = [
            sessions.onLoaded((sessionId) => this.mark(sessionId, "all")),
            sessions.onEvent((params) => this.fold(params)),
            sessions.onStep(() => this.forgetGone()),
        ];
    }

    /** All files with hunks, in the order of their names; those of several sessions one after the other. */
    all(): Entry[] {
        return [...this.sessionsFiles].flatMap(([sessionId, files]) =>
            [...files.values()].map((file) => ({ sessionId, file })),
        );
    }

    /** The files of one session. */
    ofSession(sessionId: SessionId): Entry[] {
        return [...(this.sessionsFiles.get(sessionId)?.values() ?? [])].map((file) => ({ sessionId, file }));
    }

    /** The known hunks of a file, the newest session last. */
    ofFile(uri: vscode.Uri): Entry[] {
        const key = keyOf(uri);
        return this.all().filter(({ file }) => keyOf(file.uri) === key);
    }

    /** The server's state of a file: of the sessions that are known to have changed it, and of this one. */
    async fresh(uri: vscode.Uri, also?: SessionId): Promise<Entry[]> {
        const text = uri.toString();
        const ids = this.ofFile(uri).map(({ sessionId }) => sessionId);
        if (also !== undefined) ids.push(also);
        await Promise.all([...new Set(ids)].map((sessionId) => this.ask(sessionId, new Set([text]))));
        return this.ofFile(uri);
    }

    /** Begins to do something about hunks. */
    async resolve(selection: EditSelection, action: ReviewAction, amended?: "undo"): Promise<void> {
        const params = amended === undefined ? { selection, action } : { selection, action, amended };
        await this.sessions.request("agent/edits/resolve", params);
    }

    dispose(): void {
        clearTimeout(this.timer);
        for (const subscription of this.subscriptions) subscription.dispose();
        this.changed.dispose();
    }

    private fold({ sessionId, event }: AgentEventParams): void {
        if (event.type === "edits_changed") this.mark(sessionId, new Set(event.uris));
        else if (event.type === "gap") this.mark(sessionId, "all");
    }

    private mark(sessionId: SessionId, uris: Stale): void {
        const before = this.stale.get(sessionId) ?? new Set<string>();
        if (before === "all" || uris === "all") {
            this.stale.set(sessionId, "all");
        } else {
            const both = new Set([...before, ...uris]);
            this.stale.set(sessionId, both.size > MANY_FILES ? "all" : both);
        }
        this.timer ??= setTimeout(() => this.catchUp(), GATHER_MS);
    }

    private catchUp(): void {
        this.timer = undefined;
        const stale = [...this.stale];
        this.stale.clear();
        // One after the other: an older answer must not come after a newer one.
        this.asking = this.asking.then(async () => {
            for (const [sessionId, uris] of stale) await this.ask(sessionId, uris);
        });
    }

    private async ask(sessionId: SessionId, uris: Stale): Promise<void> {
        if (this.server.connection.state !== "ready") return;
        try {
            if (uris === "all") {
                const { files } = await this.sessions.request("agent/edits/list", { sessionId });
                this.take(sessionId, "all", files);
                return;
            }
            for (const uri of uris) {
                const { files } = await this.sessions.request("agent/edits/list", { sessionId, uri });
                this.take(sessionId, uri, files);
            }
        } catch (error) {
            this.log.warn(`the changes of the session ${sessionId} could not be listed: ${messageOf(error)}`);
        }
    }

    private take(sessionId: SessionId, what: string, files: readonly EditedFile[]): void {
        const before: Files = this.sessionsFiles.get(sessionId) ?? new Map<string, EditedFile>();
        const after: Files = what === "all" ? new Map<string, EditedFile>() : new Map(before);
        if (what !== "all") after.delete(keyOf(what));
        for (const file of files.slice(0, MOST_FILES)) after.set(keyOf(file.uri), file);
        this.sessionsFiles.set(sessionId, new Map([...after].toSorted(([, a], [, b]) => order(a.path, b.path))));

        const touched = what === "all" ? [...before.keys(), ...after.keys()] : [keyOf(what)];
        this.tell(touched, [...before.values(), ...files]);
    }

    private forgetGone(): void {
        for (const [sessionId, files] of [...this.sessionsFiles]) {
            if (this.sessions.attention.sessions.has(sessionId)) continue;
            this.sessionsFiles.delete(sessionId);
            this.tell([...files.keys()], [...files.values()]);
        }
    }

    private tell(keys: readonly string[], files: readonly EditedFile[]): void {
        if (keys.length === 0) return;
        const wanted = new Set(keys);
        const sides = files
            .filter(({ uri }) => wanted.has(keyOf(uri)))
            .flatMap(({ baselineUri, proposedUri }) => [baselineUri, proposedUri]);
        this.server.refreshDocuments([...new Set(sides)].map((uri) => vscode.Uri.parse(uri)));
        this.changed.fire([...wanted].map((key) => vscode.Uri.parse(key)));
    }
}

function order(a: string, b: string): number {
    return a < b ? -1 : a > b ? 1 : 0;
}
