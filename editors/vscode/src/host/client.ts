// The language client of one life of the server: standard LSP over the process's own streams, and what this client offers
// beyond it.
//
// Rule: it interrupts nobody. What it has to say stands in the log; how the server is, is said by the connection. Of the
// library's features those are in the bundle that the server offers; build.mjs names the others.

import { PROTOCOL_VERSION, type ClientKode } from "kode-protocol";
import * as vscode from "vscode";
import {
    BaseLanguageClient,
    type InitializeParams,
    type LanguageClientOptions,
    type MessageTransports,
    type StaticFeature,
} from "vscode-languageclient";
import { StreamMessageReader, StreamMessageWriter } from "vscode-languageserver-protocol/node";
import type { ServerProcess } from "./process.ts";

/** What this client offers, beyond LSP. `workspaceTrusted` is told to servers that want to know. */
interface Offer extends ClientKode {
    workspaceTrusted: boolean;
}

/** The language client on the streams of a process. */
export class Client extends BaseLanguageClient {
    constructor(
        options: LanguageClientOptions,
        private readonly startProcess: () => Promise<ServerProcess>,
    ) {
        super("kode", "Kode", options);
        this.registerFeature(new OfferFeature());
    }

    override error(message: string, data?: unknown): void {
        super.error(message, data, false);
    }

    protected override fillInitializeParams(params: InitializeParams): void {
        super.fillInitializeParams(params);
        // The server ends when this process does.
        params.processId = process.pid;
    }

    protected override async createMessageTransports(): Promise<MessageTransports> {
        const { child } = await this.startProcess();
        return {
            reader: new StreamMessageReader(child.stdout),
            writer: new StreamMessageWriter(child.stdin),
        };
    }
}

/** Says what this client can do beyond LSP. */
class OfferFeature implements StaticFeature {
    fillClientCapabilities(capabilities: { experimental?: unknown }): void {
        const kode: Offer = {
            protocolVersion: PROTOCOL_VERSION,
            events: true,
            permissionUi: true,
            saveDocuments: true,
            diagnostics: true,
            diffUi: true,
            workspaceTrusted: vscode.workspace.isTrusted,
        };
        capabilities.experimental = { ...(capabilities.experimental as object | undefined), kode };
    }

    initialize(): void {
        // Nothing to be done with what the server can.
    }

    getState() {
        return { kind: "static" as const };
    }

    clear(): void {
        // Nothing is kept.
    }
}
