// The prompts of the server's code actions: "fix this problem", "explain the selection", the user's own commands on a
// place.
//
// Rule: it is a prompt like one that is typed, in a session that the user sees. The target goes beside the text,
// unchanged in the buffer at this moment.

import type { InputPart, Range } from "kode-protocol";
import * as vscode from "vscode";
import { fromRange } from "./convert.ts";

/** The command of the code actions that ask. */
export const ASK = "kode.ask";

/** The argument of the command: of a code action, or of a key of the user's own. */
interface Ask {
    text?: unknown;
    /** The document that is meant, the part of it, and what a language server says there. */
    uri?: string;
    range?: Range;
    message?: string;
}

/** The parts of the prompt; fails when nothing is asked. */
export async function inputOf(argument: unknown): Promise<InputPart[]> {
    const { text, uri, range, message } = (argument ?? {}) as Ask;
    if (typeof text !== "string" || text.trim() === "")
        throw new Error(`\`${ASK}\` needs an argument with the prompt: { "text": "…" }.`);
    const words: InputPart = { type: "text", text };
    if (uri === undefined) return [words];
    if (message !== undefined) return [words, { type: "diagnostics", uri, message, ...(range ? { range } : {}) }];
    if (!range) return [words, { type: "mention", uri }];
    const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(uri, true));
    return [words, { type: "selection", uri, range, text: document.getText(fromRange(range)) }];
}
