// The language client of one life of the server: standard LSP over the process's own streams, and what this client offers
// beyond it.
//
// Rule: it never interrupts the user. Its messages are in the log; the connection has the state of the server. Of the
// library's features those are in the bundle that the server offers; build.mjs names the others.

import {
    PROTOCOL_VERSION,
    type AgentEventParams,
    type CallToolParams,
    type CallToolResult,
    type ClientKode,
    type EditorLspParams,
    type InputPart,
    type ToolCancelledParams,
} from "kode-protocol";
import * as vscode from "vscode";
import {
    BaseLanguageClient,
    CloseAction,
    ErrorAction,
    ResponseError,
    RevealOutputChannelOn,
    TextDocumentContentRequest,
    type InitializeParams,
    type LanguageClientOptions,
    type MessageTransports,
    type StaticFeature,
} from "vscode-languageclient";
import {
    StreamMessageReader,
    StreamMessageWriter,
    type Message,
    type RequestMessage,
} from "vscode-languageserver-protocol/node";
import { withProfiles, type OwnProfile } from "../logic/providers.ts";
import { messageOf, told } from "../logic/words.ts";
import { ASK, inputOf } from "./asking.ts";
import { answerDiagnostics, answerSave } from "./editorRequests.ts";
import type { ServerProcess } from "./process.ts";
import { initializationOptions } from "./settings.ts";

/** The callbacks of a client. */
export interface ClientContext {
    log: vscode.LogOutputChannel;
    /** The user's own profiles, keys included. */
    profiles: readonly OwnProfile[];
    /** The connection is gone, without a request. */
    onClosed: () => Promise<void>;
    /** Something happened in a session. */
    onEvent: (params: AgentEventParams) => void;
    /** The list of sessions is another one. */
    onListChanged: () => void;
    /** A tool that was registered is called. */
    onToolCall: (params: CallToolParams, token: vscode.CancellationToken) => Promise<CallToolResult>;
    /** The user asks something by a code action. */
    onAsked: (input: InputPart[]) => void;
}

/** The language client on the streams of a process. */
export class Client extends BaseLanguageClient {
    constructor(
        private readonly server: ServerProcess,
        private readonly context: ClientContext,
    ) {
        super("kode", "Kode", options(context));
        this.registerFeature(new OfferFeature());
        this.onNotification("agent/event", context.onEvent);
        this.onNotification("agent/session/listChanged", context.onListChanged);
        this.onRequest("agent/tools/call", (params: CallToolParams) => this.callTool(params));
        this.onNotification("agent/tools/cancelled", ({ callId }: ToolCancelledParams) => this.calls.get(callId)?.cancel());
        this.onRequest("agent/editor/diagnostics", answerDiagnostics);
        this.onRequest("agent/editor/save", answerSave);
        this.onRequest("agent/editor/lsp", async (params: EditorLspParams) => {
            const { answerLsp, Refusal } = await import("./languageServers.ts");
            try {
                return await answerLsp(params);
            } catch (error) {
                throw error instanceof Refusal ? new ResponseError(error.code, error.message) : error;
            }
        });
    }

    /** The calls of tools that run, by their ids. */
    private readonly calls = new Map<string, vscode.CancellationTokenSource>();

    private async callTool(params: CallToolParams): Promise<CallToolResult> {
        const source = new vscode.CancellationTokenSource();
        this.calls.set(params.callId, source);
        try {
            return await this.context.onToolCall(params, source.token);
        } finally {
            this.calls.delete(params.callId);
            source.dispose();
        }
    }

    /** Has the editor read the server's virtual documents of these URIs again. */
    refreshDocuments(uris: readonly vscode.Uri[]): void {
        const providers = this.getFeature(TextDocumentContentRequest.method)?.getProviders() ?? [];
        for (const uri of uris) {
            providers.find(({ scheme }) => scheme === uri.scheme)?.onDidChangeEmitter.fire(uri);
        }
    }

    override error(message: string, data?: unknown): void {
        super.error(message, data, false);
    }

    protected override fillInitializeParams(params: InitializeParams): void {
        super.fillInitializeParams(params);
        // The server ends when this process does.
        params.processId = process.pid;
    }

    protected override createMessageTransports(): Promise<MessageTransports> {
        const { stdout, stdin } = this.server.child;
        const writer = new InitializingWriter(stdin, this.context.profiles);
        return Promise.resolve({ reader: new StreamMessageReader(stdout), writer });
    }
}

/** Puts the user's profiles into `initialize` as it is written, behind all that could log its parameters. */
class InitializingWriter extends StreamMessageWriter {
    constructor(
        stream: NodeJS.WritableStream,
        private readonly profiles: readonly OwnProfile[],
    ) {
        super(stream);
    }

    override write(message: Message): Promise<void> {
        const { method, params } = message as RequestMessage;
        if (method !== "initialize") return super.write(message);
        const { initializationOptions, ...rest } = params as InitializeParams;
        const options = withProfiles(initializationOptions as Record<string, unknown>, this.profiles);
        return super.write({ ...message, params: { ...rest, initializationOptions: options } } as RequestMessage);
    }
}

function options({ log, onClosed, onAsked }: ClientContext): LanguageClientOptions {
    return {
        documentSelector: [{ scheme: "file" }, { scheme: "untitled" }],
        outputChannel: log,
        revealOutputChannelOn: RevealOutputChannelOn.Never,
        initializationOptions: initializationOptions(),
        progressOnInitialization: false,
        errorHandler: {
            error: (error) => {
                log.error(`the connection has a fault: ${messageOf(error)}`);
                return { action: ErrorAction.Continue, handled: true };
            },
            closed: async () => {
                await onClosed();
                return { action: CloseAction.DoNotRestart, handled: true };
            },
        },
        middleware: {
            executeCommand: async (command, args, next) => {
                try {
                    if (command !== ASK) return await next(command, args);
                    // The server would have it answered where the user does not see it.
                    onAsked(await inputOf(args[0]));
                    return undefined;
                } catch (error) {
                    void vscode.window.showErrorMessage(`Kode: ${told(error)}`);
                    return undefined;
                }
            },
            window: {
                // Nothing of the server's takes the focus from the user, whatever it asks for.
                showDocument: (params, token, next) => next({ ...params, takeFocus: false }, token),
            },
        },
    };
}

/** Says what this client can do beyond LSP. */
class OfferFeature implements StaticFeature {
    fillClientCapabilities(capabilities: { experimental?: unknown }): void {
        const kode: ClientKode = {
            protocolVersion: PROTOCOL_VERSION,
            events: true,
            permissionUi: true,
            saveDocuments: true,
            diagnostics: true,
            languageServers: true,
            diffUi: true,
            askActions: true,
            // Without a value the server takes the workspace as trusted.
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
