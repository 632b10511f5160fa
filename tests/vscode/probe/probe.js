// An extension for tests alone: runs functions of the test in the extension host, where the editor's whole API is, and has a
// view with next to nothing in it, to be measured beside ours, and a language-model tool.
//
// Rule: it listens on a socket in the folder of the test's own, and only where the test has said so by a variable.
"use strict";
const fs = require("node:fs");
const http = require("node:http");
const path = require("node:path");
const vscode = require("vscode");

const FLOOR = '<!DOCTYPE html><html lang="en"><body><label>Prompt <textarea></textarea></label></body></html>';

exports.activate = () => {
    vscode.window.registerWebviewViewProvider("kodeTestProbe.floor", {
        resolveWebviewView({ webview }) {
            webview.html = FLOOR;
        },
    });
    vscode.lm.registerTool("probe_note", {
        invoke: ({ input }) =>
            new vscode.LanguageModelToolResult([new vscode.LanguageModelTextPart(`noted: ${input.text}`)]),
    });
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
    if (!process.env.KODE_TEST_SOCKETS || !folder) return;
    const socket = path.join(process.env.KODE_TEST_SOCKETS, path.basename(folder));
    fs.rmSync(socket, { force: true });
    // The state of a test between two calls.
    const memory = {};
    http.createServer(async (request, response) => {
        let body = "";
        for await (const piece of request) body += piece;
        try {
            const { code, args } = JSON.parse(body);
            const result = await new Function(`return (${code})`)()(vscode, memory, ...args);
            response.end(JSON.stringify({ result: result ?? null }));
        } catch (error) {
            response.end(JSON.stringify({ error: String(error?.stack ?? error) }));
        }
    }).listen(socket);
};
