// Symbols of the workspace, found by the editor's own providers.
//
// Rule: nothing is indexed here. Without a name the symbols of the active file are listed; only files of the workspace count.

import * as vscode from "vscode";
import type { FoundSymbol } from "../shared/messages.ts";
import { toRange } from "./convert.ts";

/** The most symbols of an answer. */
const MOST = 40;

/** The symbols that a name matches, best first. */
export async function findSymbols(query: string, active: vscode.Uri | undefined): Promise<FoundSymbol[]> {
    const found = query === "" ? await ofDocument(active) : await ofWorkspace(query);
    return found.slice(0, MOST);
}

async function ofWorkspace(query: string): Promise<FoundSymbol[]> {
    const symbols = await vscode.commands.executeCommand<vscode.SymbolInformation[] | undefined>(
        "vscode.executeWorkspaceSymbolProvider",
        query,
    );
    const own = (symbols ?? []).filter(({ location }) => vscode.workspace.getWorkspaceFolder(location.uri));
    const wanted = query.toLowerCase();
    const rank = ({ name }: vscode.SymbolInformation) => {
        const lower = name.toLowerCase();
        return lower === wanted ? 0 : lower.startsWith(wanted) ? 1 : lower.includes(wanted) ? 2 : 3;
    };
    return own
        .toSorted((a, b) => rank(a) - rank(b))
        .map(({ name, kind, containerName, location: { uri, range } }) => symbol(name, kind, containerName, uri, range));
}

async function ofDocument(uri: vscode.Uri | undefined): Promise<FoundSymbol[]> {
    if (!uri) return [];
    const symbols = await vscode.commands.executeCommand<(vscode.DocumentSymbol | vscode.SymbolInformation)[] | undefined>(
        "vscode.executeDocumentSymbolProvider",
        uri,
    );
    const all: FoundSymbol[] = [];
    const add = (list: readonly (vscode.DocumentSymbol | vscode.SymbolInformation)[], container: string) => {
        for (const one of list) {
            if (all.length === MOST) return;
            const range = "range" in one ? one.range : one.location.range;
            all.push(symbol(one.name, one.kind, container, uri, range));
            if ("children" in one) add(one.children, one.name);
        }
    };
    add(symbols ?? [], "");
    return all;
}

function symbol(name: string, kind: vscode.SymbolKind, container: string, uri: vscode.Uri, range: vscode.Range): FoundSymbol {
    const place = `${vscode.workspace.asRelativePath(uri)}:${range.start.line + 1}`;
    const detail = [vscode.SymbolKind[kind]?.toLowerCase() ?? "", container, place].filter(Boolean).join(" · ");
    return { name, detail, uri: uri.toString(), range: toRange(range) };
}
