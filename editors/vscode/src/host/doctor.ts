// The server's doctor: the sandbox of this machine, the models and missing parts.
//
// Rule: the program says it all, and is asked in the environment that the server runs in; nothing is judged here.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import * as vscode from "vscode";
import { messageOf, plain } from "../logic/words.ts";
import { serverSettings } from "./settings.ts";
import type { Server } from "./server.ts";
import type { Texts } from "./texts.ts";

const LIMIT_MS = 30_000;
const MOST_BYTES = 1024 * 1024;

const run = promisify(execFile);

/** Asks the doctor. */
export class Doctor {
    constructor(
        private readonly server: Server,
        private readonly texts: Texts,
        private readonly extensionVersion: string,
    ) {}

    /** Asks it and shows what it says. */
    async show(): Promise<void> {
        const { connection, program } = this.server;
        const about = [
            `extension         ${this.extensionVersion}`,
            `server            ${program ?? "not found"}`,
            `connection        ${describe(connection)}`,
            "",
        ];
        await this.texts.show("Kode Doctor", [...about, program ? await ask(program) : ""].join("\n"), "plaintext");
    }
}

async function ask(program: string): Promise<string> {
    const folder = vscode.workspace.workspaceFolders?.find(({ uri }) => uri.scheme === "file")?.uri.fsPath;
    const options = {
        env: { ...process.env, ...serverSettings().environment },
        timeout: LIMIT_MS,
        maxBuffer: MOST_BYTES,
        windowsHide: true,
        ...(folder === undefined ? {} : { cwd: folder }),
    };
    try {
        return (await run(program, ["doctor"], options)).stdout;
    } catch (error) {
        return `The doctor could not run: ${messageOf(error)}`;
    }
}

function describe(connection: Server["connection"]): string {
    switch (connection.state) {
        case "ready":
            return `kode-ls ${plain(connection.serverVersion)}`;
        case "starting":
            return "starting";
        case "crashed":
            return `ended, restarting: ${connection.reason}`;
        case "stopped":
            return `not running: ${connection.reason} ${connection.hint}`;
    }
}
