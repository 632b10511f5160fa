// Tells the user that the server is older than the extension, and how to bring it up to date.
//
// Rule: the server never updates itself and nothing is fetched or looked up. The user is notified at most once an hour,
// and not again of a version that they skip.

import * as vscode from "vscode";
import { tellsOfOld, type Told } from "../logic/versions.ts";
import { messageOf, plain } from "../logic/words.ts";
import type { Connection } from "../shared/messages.ts";
import type { Server } from "./server.ts";

const KEPT = "kode.upgrade";

/** Checks the version of each server that is connected. */
export function upgrades(
    server: Server,
    extension: string,
    kept: vscode.Memento,
    log: vscode.LogOutputChannel,
): vscode.Disposable {
    return server.onConnection((connection) => {
        tell(connection, extension, kept).catch((error) => log.warn(`the notice about the version was not shown: ${messageOf(error)}`));
    });
}

async function tell(connection: Connection, extension: string, kept: vscode.Memento): Promise<void> {
    if (connection.state !== "ready") return;
    const told = kept.get<Told>(KEPT) ?? {};
    if (!tellsOfOld(connection.serverVersion, extension, told, Date.now())) return;
    await kept.update(KEPT, { ...told, at: Date.now() });
    const how = "How to Upgrade";
    const skip = "Skip This Version";
    const text = `Kode: the server is version ${plain(connection.serverVersion, 40)}, the extension ${extension}.`;
    const chosen = await vscode.window.showInformationMessage(text, how, skip);
    if (chosen === skip) await kept.update(KEPT, { skipped: extension });
    if (chosen === how) {
        await vscode.commands.executeCommand(
            "workbench.action.openWalkthrough",
            { category: "kode-ls.kode#kode.start", step: "kode-ls.kode#kode.start#server" },
            false,
        );
    }
}
