// The agent's changes in the editor's own places: bars at the lines with an inline view of each change, and the list of
// changed files in the source control view.
//
// Rule: drawn from the ledger alone. The list has no number of its own on the source control icon: nothing has to be done
// about it.

import * as vscode from "vscode";
import { count, plain } from "../../logic/words.ts";
import { isApplied } from "../../logic/hunks.ts";
import { keyOf } from "../convert.ts";
import type { Entry, Ledger } from "./ledger.ts";

/** The most files whose baselines are remembered. */
const MOST_BASELINES = 1_000;

/** A changed file in the list. */
export interface ChangedFile extends vscode.SourceControlResourceState {
    entry: Entry;
}

/** Shows what waits to be kept or undone. */
export class Changes implements vscode.QuickDiffProvider, vscode.Disposable {
    private source: vscode.SourceControl | undefined;
    private group: vscode.SourceControlResourceGroup | undefined;
    private readonly subscription: vscode.Disposable;
    /** The baseline of each file that had changes to be decided on, by the one spelling of its URI. */
    private readonly baselines = new Map<string, vscode.Uri>();

    constructor(private readonly ledger: Ledger) {
        this.subscription = ledger.onChange(() => this.draw());
    }

    provideOriginalResource(uri: vscode.Uri): vscode.Uri | undefined {
        const key = keyOf(uri);
        const entry = this.ledger.ofFile(uri).findLast(({ file }) => file.hunks.some(isApplied));
        // A file keeps its baseline when all is decided: an editor that once got no baseline does not look again
        // when there are changes again. Without changes the baseline is the text as it is.
        if (entry) this.baselines.set(key, vscode.Uri.parse(entry.file.baselineUri));
        const oldest = this.baselines.keys().next().value;
        if (this.baselines.size > MOST_BASELINES && oldest !== undefined) this.baselines.delete(oldest);
        return this.baselines.get(key);
    }

    dispose(): void {
        this.subscription.dispose();
        this.source?.dispose();
    }

    private draw(): void {
        const entries = this.ledger.all();
        // Before the first change it would be in the source control view for nothing. Once there it stays: editors
        // that are open do not ask a provider that is made again.
        if (entries.length === 0 && !this.group) return;
        this.begin().resourceStates = entries.map(resource);
    }

    private begin(): vscode.SourceControlResourceGroup {
        if (this.group) return this.group;
        const source = vscode.scm.createSourceControl("kode", "Kode");
        source.quickDiffProvider = this;
        source.count = 0;
        source.inputBox.visible = false;
        this.source = source;
        this.group = source.createResourceGroup("changes", "Changes to Review");
        this.group.hideWhenEmpty = true;
        return this.group;
    }
}

function resource(entry: Entry): ChangedFile {
    const { file } = entry;
    const proposed = file.hunks.filter(({ state }) => state === "proposed").length;
    const conflicts = file.hunks.filter(({ state }) => state === "conflict").length;
    const parts = [
        `${count(file.hunks.length, "change")} by Kode, +${file.added} -${file.removed}`,
        proposed > 0 ? `${proposed} proposed` : "",
        conflicts > 0 ? `${conflicts} to decide, where you typed` : "",
        file.diagnostics ? `${plain(file.diagnostics.summary)} in other lines` : "",
    ];
    return {
        entry,
        resourceUri: vscode.Uri.parse(file.uri),
        contextValue: proposed === file.hunks.length ? "proposed" : "applied",
        decorations: { tooltip: parts.filter((part) => part !== "").join(", ") },
        command: { command: "kode.review.openFileDiff", title: "Open Changes", arguments: [entry] },
    };
}
