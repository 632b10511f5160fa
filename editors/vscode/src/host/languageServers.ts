// Requests of the server for the language servers of the editor, answered by the editor's provider commands.
//
// Rule: nothing is changed, shown or focused for a request. The editor does not tell a language without a server from a symbol
// without a result: a document that has an outline counts as served.

import type { EditorLspParams, EditorLspResult, Range } from "kode-protocol";
import * as vscode from "vscode";
import { fromRange, toRange } from "./convert.ts";

/** The codes of refusals, as LSP has them. */
const CONTENT_MODIFIED = -32801;
const SERVER_CANCELLED = -32802;
const REQUEST_FAILED = -32803;

/** The name of the servers in answers: the editor merges their results. */
const SERVER = "VS Code";
/** The most code actions whose edits are computed. */
const MOST_RESOLVED = 20;
/** The most items of call hierarchies that are kept for the requests that follow. */
const MOST_ITEMS = 1_000;

/** The parameters of the methods, as far as they are read here. */
interface MethodParams {
    textDocument?: { uri: string; version?: number };
    position?: { line: number; character: number };
    range?: Range;
    context?: { only?: string[] };
    options?: vscode.FormattingOptions;
    newName?: string;
    query?: string;
    item?: { data?: number };
}

/** The items of call hierarchies: the editor knows its own objects alone. */
const items = new Map<number, vscode.CallHierarchyItem>();
let lastItem = 0;

/** The commands that return places. */
const PLACES: Record<string, string> = {
    "textDocument/declaration": "vscode.executeDeclarationProvider",
    "textDocument/definition": "vscode.executeDefinitionProvider",
    "textDocument/implementation": "vscode.executeImplementationProvider",
    "textDocument/references": "vscode.executeReferenceProvider",
    "textDocument/typeDefinition": "vscode.executeTypeDefinitionProvider",
};

/** Why a request has no answer. */
export class Refusal extends Error {
    constructor(
        readonly code: number,
        message: string,
    ) {
        super(message);
    }
}

/** Answers `agent/editor/lsp`. */
export async function answerLsp({ method, params, limitMs }: EditorLspParams): Promise<EditorLspResult> {
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<never>((_, reject) => {
        const late = () => reject(new Refusal(SERVER_CANCELLED, `no server answered within ${limitMs} ms`));
        timer = setTimeout(late, limitMs);
    });
    try {
        return await Promise.race([answer(method, params as MethodParams), limit]);
    } finally {
        clearTimeout(timer);
    }
}

async function answer(method: string, params: MethodParams): Promise<EditorLspResult> {
    const { textDocument } = params;
    if (!textDocument) return wrapped(await withoutDocument(method, params));
    const uri = vscode.Uri.parse(textDocument.uri, true);
    const check = () => {
        const { version } = textDocument;
        const now = openDocument(uri)?.version;
        if (version === undefined || now === undefined || version === now) return;
        throw new Refusal(CONTENT_MODIFIED, "the document has changed");
    };
    check();
    const result = await ofDocument(method, uri, params);
    check();
    const isEmpty = result === undefined || (Array.isArray(result) && result.length === 0);
    return isEmpty && !(await isServed(uri)) ? { answers: [] } : wrapped(result);
}

function openDocument(uri: vscode.Uri): vscode.TextDocument | undefined {
    const text = uri.toString();
    return vscode.workspace.textDocuments.find((document) => document.uri.toString() === text);
}

function wrapped(result: unknown): EditorLspResult {
    return { answers: [{ server: SERVER, result: result ?? null }] };
}

async function isServed(uri: vscode.Uri): Promise<boolean> {
    const outline = await run<unknown[]>("vscode.executeDocumentSymbolProvider", uri);
    return (outline?.length ?? 0) > 0;
}

function run<T>(command: string, ...args: unknown[]): Thenable<T | undefined> {
    return vscode.commands.executeCommand<T | undefined>(command, ...args);
}

async function withoutDocument(method: string, { query, item }: MethodParams): Promise<unknown> {
    const known = item?.data === undefined ? undefined : items.get(item.data);
    switch (method) {
        case "workspace/symbol": {
            const found = await run<vscode.SymbolInformation[]>("vscode.executeWorkspaceSymbolProvider", query ?? "");
            return found?.map(toSymbolInformation);
        }
        case "callHierarchy/incomingCalls": {
            const calls = await run<vscode.CallHierarchyIncomingCall[]>("vscode.provideIncomingCalls", known);
            return calls?.map(({ from, fromRanges }) => ({ from: toItem(from), fromRanges: fromRanges.map(toRange) }));
        }
        case "callHierarchy/outgoingCalls": {
            const calls = await run<vscode.CallHierarchyOutgoingCall[]>("vscode.provideOutgoingCalls", known);
            return calls?.map(({ to, fromRanges }) => ({ to: toItem(to), fromRanges: fromRanges.map(toRange) }));
        }
        // The edits of actions are in the list already.
        case "codeAction/resolve":
            return undefined;
        default:
            throw new Refusal(REQUEST_FAILED, `\`${method}\` is not passed on`);
    }
}

async function ofDocument(method: string, uri: vscode.Uri, params: MethodParams): Promise<unknown> {
    const { line, character } = params.position ?? { line: 0, character: 0 };
    const position = new vscode.Position(line, character);
    const range = params.range && fromRange(params.range);
    const places = PLACES[method];
    if (places) {
        const found = await run<(vscode.Location | vscode.LocationLink)[]>(places, uri, position);
        return found?.map(toPlace);
    }
    switch (method) {
        case "textDocument/hover": {
            const hovers = await run<vscode.Hover[]>("vscode.executeHoverProvider", uri, position);
            const contents = hovers?.flatMap((hover) => hover.contents.map(toMarkdown)).filter((text) => text !== "");
            return contents?.length ? { contents: { kind: "markdown", value: contents.join("\n\n") } } : undefined;
        }
        case "textDocument/documentSymbol": {
            const found = await run<(vscode.DocumentSymbol | vscode.SymbolInformation)[]>(
                "vscode.executeDocumentSymbolProvider",
                uri,
            );
            return found?.map((symbol) => ("selectionRange" in symbol ? toDocumentSymbol(symbol) : toSymbolInformation(symbol)));
        }
        case "textDocument/prepareCallHierarchy": {
            const found = await run<vscode.CallHierarchyItem[]>("vscode.prepareCallHierarchy", uri, position);
            return found?.map(toItem);
        }
        case "textDocument/rename": {
            const name = params.newName;
            const edit = await run<vscode.WorkspaceEdit>("vscode.executeDocumentRenameProvider", uri, position, name);
            return edit && toWorkspaceEdit(edit);
        }
        case "textDocument/formatting":
            return (await run<vscode.TextEdit[]>("vscode.executeFormatDocumentProvider", uri, params.options))?.map(toTextEdit);
        case "textDocument/rangeFormatting": {
            const edits = await run<vscode.TextEdit[]>("vscode.executeFormatRangeProvider", uri, range, params.options);
            return edits?.map(toTextEdit);
        }
        case "textDocument/codeAction": {
            const kind = params.context?.only?.[0];
            // The other commands open the document for their own time; this one wants it open.
            await vscode.workspace.openTextDocument(uri);
            const found = await run<(vscode.CodeAction | vscode.Command)[]>(
                "vscode.executeCodeActionProvider",
                uri,
                range,
                kind,
                MOST_RESOLVED,
            );
            return found?.filter((action) => !isOurs(action)).map(toAction);
        }
        default:
            throw new Refusal(REQUEST_FAILED, `\`${method}\` is not passed on`);
    }
}

/** Whether our own server proposes an action. */
function isOurs({ command }: vscode.CodeAction | vscode.Command): boolean {
    const name = typeof command === "string" ? command : command?.command;
    return name?.startsWith("kode.") ?? false;
}

function toPlace(place: vscode.Location | vscode.LocationLink): unknown {
    if (!("targetUri" in place)) return { uri: place.uri.toString(), range: toRange(place.range) };
    return {
        targetUri: place.targetUri.toString(),
        targetRange: toRange(place.targetRange),
        targetSelectionRange: toRange(place.targetSelectionRange ?? place.targetRange),
    };
}

function toMarkdown(content: vscode.MarkdownString | vscode.MarkedString): string {
    if (typeof content === "string") return content;
    return "language" in content ? `\`\`\`${content.language}\n${content.value}\n\`\`\`` : content.value;
}

function toDocumentSymbol({ name, detail, kind, range, selectionRange, children }: vscode.DocumentSymbol): unknown {
    return {
        name,
        detail,
        kind: kind + 1,
        range: toRange(range),
        selectionRange: toRange(selectionRange),
        children: children.map(toDocumentSymbol),
    };
}

function toSymbolInformation({ name, kind, containerName, location }: vscode.SymbolInformation): unknown {
    const { uri, range } = location;
    return { name, kind: kind + 1, containerName, location: { uri: uri.toString(), range: toRange(range) } };
}

function toItem(item: vscode.CallHierarchyItem): unknown {
    lastItem += 1;
    items.set(lastItem, item);
    items.delete(lastItem - MOST_ITEMS);
    const { name, kind, detail, uri, range, selectionRange } = item;
    return {
        name,
        kind: kind + 1,
        detail,
        uri: uri.toString(),
        range: toRange(range),
        selectionRange: toRange(selectionRange),
        data: lastItem,
    };
}

function toTextEdit({ range, newText }: vscode.TextEdit): unknown {
    return { range: toRange(range), newText };
}

function toWorkspaceEdit(edit: vscode.WorkspaceEdit): unknown {
    const documentChanges = edit.entries().map(([uri, edits]) => {
        const version = openDocument(uri)?.version ?? null;
        return { textDocument: { uri: uri.toString(), version }, edits: edits.map(toTextEdit) };
    });
    return { documentChanges };
}

function toAction(action: vscode.CodeAction | vscode.Command): unknown {
    if (typeof action.command === "string") return { title: action.title, command: action.command };
    const { title, kind, isPreferred, disabled, edit, command } = action as vscode.CodeAction;
    return {
        title,
        kind: kind?.value,
        isPreferred,
        disabled,
        edit: edit && toWorkspaceEdit(edit),
        command: command && { title: command.title, command: command.command },
    };
}
