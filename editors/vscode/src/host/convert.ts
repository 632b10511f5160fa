// Places and documents of the editor in the words of the protocol, and back.
//
// Rule: positions count UTF-16 code units on both sides, which is what the client negotiates. URIs are compared parsed,
// never as the server wrote them.

import type { Range } from "kode-protocol";
import * as vscode from "vscode";

/** A range as the protocol has it. */
export function toRange(range: vscode.Range): Range {
    return {
        start: { line: range.start.line, character: range.start.character },
        end: { line: range.end.line, character: range.end.character },
    };
}

/** A range as the editor has it. */
export function fromRange({ start, end }: Range): vscode.Range {
    return new vscode.Range(start.line, start.character, end.line, end.character);
}

/** The one spelling of a URI that things are kept under. */
export function keyOf(uri: vscode.Uri | string): string {
    return (typeof uri === "string" ? vscode.Uri.parse(uri) : uri).toString();
}
