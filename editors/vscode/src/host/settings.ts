// The settings of the extension, read where they are needed.
//
// Rule: one function for each reader; nothing is kept, so that a change counts with the next look. What the server knows
// by itself is not set unless the user says so.

import * as vscode from "vscode";
import type { ViewSettings } from "../shared/messages.ts";

function section(): vscode.WorkspaceConfiguration {
    return vscode.workspace.getConfiguration("kode");
}

/** The look and behavior of the page. */
export function viewSettings(): ViewSettings {
    const kode = section();
    return {
        enterSends: kode.get("chat.enterSends", true),
        includeEditorContext: kode.get("chat.includeEditorContext", true),
        expandThinking: kode.get("chat.expandThinking", false),
        fontSize: kode.get("chat.fontSize", 0),
        diffLayout: kode.get("chat.diffLayout", "auto"),
    };
}

/** How the server is started. */
export interface ServerSettings {
    path: string;
    environment: Record<string, string>;
    logLevel: string;
}

/** How the server is started. */
export function serverSettings(): ServerSettings {
    const kode = section();
    return {
        path: kode.get("server.path", ""),
        environment: { ...kode.get<Record<string, string>>("server.environment", {}) },
        logLevel: kode.get("server.logLevel", "info"),
    };
}

/** `initializationOptions` of the server: what the user has set, and nothing else. */
export function initializationOptions(): Record<string, unknown> {
    const kode = section();
    const options: Record<string, unknown> = { ...kode.get<Record<string, unknown>>("server.options", {}) };
    const set = (name: string, setting: string, unset: unknown) => {
        const value = kode.get(setting);
        if (value !== undefined && value !== null && value !== unset) options[name] = value;
    };
    set("profile", "agent.model", "");
    set("mode", "agent.mode", "auto");
    set("saveBeforeCommands", "agent.saveBeforeCommands", true);
    const delivery = kode.get<unknown[]>("agent.delivery", []);
    if (delivery.length > 0) options["delivery"] = delivery;
    return options;
}

/** When a permission prompt is reported by a notification. */
export function notifies(): "auto" | "always" | "never" {
    return section().get("notifications.permissions", "auto");
}

/** Whether changed files are marked in lists of files. */
export function decorates(): boolean {
    return section().get("review.fileDecorations", true);
}

/** Opens the settings whose names match. Those of the machine stand on another page in a remote window. */
export async function openSettings(query = "@ext:kode-ls.kode"): Promise<void> {
    const isRemote = vscode.env.remoteName !== undefined && query.startsWith("kode.server");
    const command = isRemote ? "workbench.action.openRemoteSettings" : "workbench.action.openSettings";
    await vscode.commands.executeCommand(command, isRemote ? { query } : query);
}

/** Has the user choose the program of the server; the editor keeps it among the settings of the machine. */
export async function chooseServer(): Promise<boolean> {
    const [uri] = (await vscode.window.showOpenDialog({ title: "Choose the kode-ls Program", openLabel: "Use" })) ?? [];
    if (!uri) return false;
    await section().update("server.path", uri.fsPath, vscode.ConfigurationTarget.Global);
    return true;
}

/** Whether changes are marked in the text of files. */
export function marksInline(): boolean {
    return section().get("review.inlineChanges", true);
}

/** The settings that only a new server takes. */
export const NEEDS_RESTART = ["kode.server", "kode.agent"] as const;
