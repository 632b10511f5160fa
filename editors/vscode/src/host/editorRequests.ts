// The server's requests to the editor: diagnostics of files, and to save documents.
//
// Rule: answers are bounded, leave out what came from our own server, and never open, show or focus anything.

import type {
    EditorDiagnostic,
    EditorDiagnosticsParams,
    EditorDiagnosticsResult,
    SaveDocumentsParams,
    SaveDocumentsResult,
} from "kode-protocol";
import * as vscode from "vscode";
import { messageOf } from "../logic/words.ts";
import { keyOf, toRange } from "./convert.ts";

const MOST_FILES = 200;
const MOST_OF_A_FILE = 100;

/** The source of the diagnostics that our server publishes. */
const OUR_SOURCE = "kode";

/** How long no diagnostics have to come for those of a change to be complete. */
const QUIET_MS = 200;

/** Answers `agent/editor/diagnostics`. */
export async function answerDiagnostics({ uris, settleMs }: EditorDiagnosticsParams): Promise<EditorDiagnosticsResult> {
    if (settleMs !== undefined) await settled(new Set(uris.map(keyOf)), settleMs);
    return known(uris);
}

/** Waits until diagnostics of these documents have come and no more come, or the limit is over. */
function settled(keys: ReadonlySet<string>, limitMs: number): Promise<void> {
    return new Promise((resolve) => {
        const end = () => {
            clearTimeout(limit);
            clearTimeout(quiet);
            listener.dispose();
            resolve();
        };
        const limit = setTimeout(end, limitMs);
        let quiet: NodeJS.Timeout | undefined;
        const listener = vscode.languages.onDidChangeDiagnostics(({ uris }) => {
            if (!uris.some((uri) => keys.has(keyOf(uri)))) return;
            clearTimeout(quiet);
            quiet = setTimeout(end, QUIET_MS);
        });
    });
}

function known(uris: readonly string[]): EditorDiagnosticsResult {
    const all: [vscode.Uri, readonly vscode.Diagnostic[]][] =
        uris.length === 0
            ? vscode.languages.getDiagnostics()
            : uris.map((text) => {
                  const uri = vscode.Uri.parse(text, true);
                  return [uri, vscode.languages.getDiagnostics(uri)];
              });
    const files = all
        .map(([uri, diagnostics]) => ({
            uri,
            diagnostics: diagnostics.filter(({ source }) => source?.toLowerCase() !== OUR_SOURCE),
        }))
        .filter(({ diagnostics }) => uris.length > 0 || diagnostics.length > 0)
        .slice(0, MOST_FILES)
        .map(({ uri, diagnostics }) => {
            const worst = diagnostics.toSorted((a, b) => a.severity - b.severity).slice(0, MOST_OF_A_FILE);
            const version = openDocument(uri)?.version;
            const file = { uri: uri.toString(), diagnostics: worst.map(toDiagnostic) };
            return version === undefined ? file : { ...file, version };
        });
    return { files };
}

/** Answers `agent/editor/save`. */
export async function answerSave({ uris }: SaveDocumentsParams): Promise<SaveDocumentsResult> {
    const saved: string[] = [];
    const failed: { uri: string; reason: string }[] = [];
    for (const uri of uris) {
        const problem = await save(vscode.Uri.parse(uri, true));
        if (problem === undefined) saved.push(uri);
        else failed.push({ uri, reason: problem });
    }
    return { saved, failed };
}

async function save(uri: vscode.Uri): Promise<string | undefined> {
    const document = openDocument(uri);
    if (!document) return "It is not open.";
    // Saving it would open a dialog.
    if (document.isUntitled) return "It has no file yet.";
    if (!document.isDirty) return undefined;
    try {
        return (await document.save()) ? undefined : "The editor refused to save it.";
    } catch (error) {
        return messageOf(error);
    }
}

function openDocument(uri: vscode.Uri): vscode.TextDocument | undefined {
    const text = uri.toString();
    return vscode.workspace.textDocuments.find((document) => document.uri.toString() === text);
}

function toDiagnostic(diagnostic: vscode.Diagnostic): EditorDiagnostic {
    const { code, source } = diagnostic;
    const name = typeof code === "object" ? code.value : code;
    return {
        range: toRange(diagnostic.range),
        // The editor counts from 0, LSP from 1.
        severity: diagnostic.severity + 1,
        message: diagnostic.message,
        ...(source === undefined ? {} : { source }),
        ...(name === undefined ? {} : { code: String(name) }),
    };
}
