// The connection to the server: one process, one LSP connection with the `agent/*` methods in it.
//
// Rule: one value has the state of the connection, and all that happens goes through `set`. Each start is a run of its
// own; what an older run still says is not listened to.

import { existsSync } from "node:fs";
import * as os from "node:os";
import {
    PROTOCOL_VERSION,
    type AgentEventParams,
    type CallToolParams,
    type CallToolResult,
    type InputPart,
    type LeaveResult,
    type ProposeEditsParams,
    type RegisterToolsParams,
    type Requests,
    type ServerKode,
} from "kode-protocol";
import * as vscode from "vscode";
import { locate } from "../logic/locate.ts";
import type { OwnProfile } from "../logic/providers.ts";
import { RestartPolicy, MAX_CRASHES } from "../logic/restart.ts";
import { messageOf } from "../logic/words.ts";
import type { Connection, Method, Params, Result, Setup } from "../shared/messages.ts";
import type { Client } from "./client.ts";
import { isFile, isProgram, makeProgram, ServerProcess } from "./process.ts";
import { serverSettings } from "./settings.ts";

/** How long the server may take to end when asked. */
const STOP_LIMIT_MS = 5_000;

/** How long the server may take to say whether it outlives the window. */
const LEAVE_LIMIT_MS = 1_000;

const NOT_RUNNING = "The server is not running. Run “Kode: Restart Server” to start it.";

/** The requests about models to set up. */
type SetupMethod = Extract<keyof Requests, `agent/setup/${string}` | "agent/models/discover">;

/** One life of the process. */
interface Run {
    /** Absent until the process runs. */
    client: Client | undefined;
    process: ServerProcess | undefined;
    /** Whether its end was dealt with. */
    ended: boolean;
}

/** The server of this window. */
export class Server implements vscode.Disposable {
    private readonly connectionChanged = new vscode.EventEmitter<Connection>();
    private readonly eventCame = new vscode.EventEmitter<AgentEventParams>();
    private readonly listChanged = new vscode.EventEmitter<void>();
    private readonly asked = new vscode.EventEmitter<InputPart[]>();
    private readonly policy = new RestartPolicy();
    private state: Connection = { state: "starting" };
    private run: Run | undefined;
    private timer: NodeJS.Timeout | undefined;
    private file: string | undefined;
    private disposed = false;
    /** The profiles that the user has made in the editor; they go with `initialize`. */
    profiles: () => Promise<OwnProfile[]> = () => Promise.resolve([]);

    /** The connection is something else now. */
    readonly onConnection = this.connectionChanged.event;
    /** Something happened in a session. */
    readonly onEvent = this.eventCame.event;
    /** The list of sessions is another one than it was when it was asked for. */
    readonly onListChanged = this.listChanged.event;
    /** The user asks something by a code action. */
    readonly onAsked = this.asked.event;

    /** Carries out a call of a tool that was registered. */
    onToolCall: ((params: CallToolParams, token: vscode.CancellationToken) => Promise<CallToolResult>) | undefined;

    constructor(
        private readonly extensionFolder: string,
        private readonly log: vscode.LogOutputChannel,
    ) {}

    /** How the server is. */
    get connection(): Connection {
        return this.state;
    }

    /** The program that was started last. */
    get program(): string | undefined {
        return this.file;
    }

    /** Starts the server; how it went is reported by the connection. */
    async start(): Promise<void> {
        if (this.disposed || this.run) return;
        clearTimeout(this.timer);
        this.set({ state: "starting" });
        const settings = serverSettings();
        const found = locate({
            setting: settings.path,
            extensionFolder: this.extensionFolder,
            home: os.homedir(),
            workspaceFolder: firstFolder(),
            searchPath: process.env["PATH"] ?? "",
            platform: process.platform,
            arch: process.arch,
            // The editor decides by the same file.
            isAlpine: process.platform === "linux" && existsSync("/etc/alpine-release"),
            isProgram,
            isFile,
            makeProgram,
        });
        if (!found.found) {
            this.stopped(found.reason, found.hint, "serverMissing");
            return;
        }
        this.file = found.file;
        this.log.info(`starting ${found.file} (${found.source})`);

        const run: Run = { client: undefined, process: undefined, ended: false };
        this.run = run;
        try {
            await this.spawn(found.file, run);
            // The library is large: it is loaded while the process starts, and the activation does not wait for it.
            const { Client } = await import("./client.ts");
            if (this.run !== run || !run.process) return;
            const profiles = await this.profiles();
            run.client = new Client(run.process, {
                log: this.log,
                profiles,
                onClosed: () => this.ended(run),
                onEvent: (params) => {
                    if (this.run === run) this.eventCame.fire(params);
                },
                onListChanged: () => {
                    if (this.run === run) this.listChanged.fire();
                },
                onAsked: (input) => this.asked.fire(input),
                onToolCall: (params, token) => {
                    if (!this.onToolCall) return Promise.reject(new Error("the tools are gone"));
                    return this.onToolCall(params, token);
                },
            });
            await run.client.start();
        } catch (error) {
            await this.couldNotStart(run, error);
            return;
        }
        if (this.run === run) await this.greet(run);
    }

    /** Ends the server and starts it again, also after it was given up. */
    async restart(): Promise<void> {
        this.policy.forgive();
        await this.stop();
        await this.start();
    }

    /** Makes a request; fails when the server is not there. */
    async request<M extends Method>(
        method: M,
        params: Params<M>,
        token?: vscode.CancellationToken,
    ): Promise<Result<M>> {
        const client = this.run?.client;
        if (!client || this.state.state !== "ready") {
            throw new Error(NOT_RUNNING);
        }
        return token ? client.sendRequest(method, params, token) : client.sendRequest(method, params);
    }

    /** Makes a request about models to set up; no page may, because keys are part of some. */
    async setUp<M extends SetupMethod>(
        method: M,
        params: Requests[M]["params"],
        token?: vscode.CancellationToken,
    ): Promise<Requests[M]["result"]> {
        const client = this.run?.client;
        if (!client || this.state.state !== "ready") throw new Error(NOT_RUNNING);
        return token ? client.sendRequest(method, params, token) : client.sendRequest(method, params);
    }

    /** Tells the server that the user trusts the workspace now; no page may. */
    async trustWorkspace(): Promise<void> {
        const client = this.run?.client;
        if (client && this.state.state === "ready") await client.sendRequest("agent/trust/workspace", { trusted: true });
    }

    /** Tells the server whether the window is in front: while it is, nothing alerts the user. */
    async reportFocus(): Promise<void> {
        const client = this.run?.client;
        if (!client || this.state.state !== "ready") return;
        try {
            await client.sendRequest("agent/client/focus", { focused: vscode.window.state.focused });
        } catch (error) {
            // An older server does not know it.
            this.log.debug(`the focus was not reported: ${messageOf(error)}`);
        }
    }

    /** Replaces the tools of a provider; one that is not running gets them when it is ready. */
    async registerTools(params: RegisterToolsParams): Promise<void> {
        const client = this.run?.client;
        if (client && this.state.state === "ready") await client.sendRequest("agent/tools/register", params);
    }

    /** Puts a text of the user's choice into a document as a change of a session; pages may only where they have shown it. */
    async putIn(change: ProposeEditsParams): Promise<void> {
        const client = this.run?.client;
        if (!client || this.state.state !== "ready") throw new Error(NOT_RUNNING);
        await client.sendRequest("agent/edits/propose", change);
    }

    /** Has the editor read the server's virtual documents of these URIs again. */
    refreshDocuments(uris: readonly vscode.Uri[]): void {
        this.run?.client?.refreshDocuments(uris);
    }

    /** Ends the server. */
    async stop(): Promise<void> {
        clearTimeout(this.timer);
        const run = this.run;
        this.run = undefined;
        if (!run) return;
        run.ended = true;
        try {
            await run.client?.dispose(STOP_LIMIT_MS);
        } catch (error) {
            this.log.warn(`the server did not stop on request: ${messageOf(error)}`);
        } finally {
            run.process?.kill();
        }
    }

    /** The window goes, and may come back: a turn that runs continues, and the next window follows it. */
    async dispose(): Promise<void> {
        this.disposed = true;
        if (await this.leaves()) this.letGo();
        else await this.stop();
        this.connectionChanged.dispose();
        this.eventCame.dispose();
        this.listChanged.dispose();
        this.asked.dispose();
    }

    /** Whether the server outlives the window. */
    private async leaves(): Promise<boolean> {
        const client = this.run?.client;
        if (!client || this.state.state !== "ready") return false;
        // A server that answers late has the request: it decides at the end of its input.
        const limit = new Promise<{ outlives: boolean }>((resolve) => {
            setTimeout(() => resolve({ outlives: true }), LEAVE_LIMIT_MS).unref();
        });
        try {
            const { outlives } = await Promise.race([client.sendRequest<LeaveResult>("agent/client/leave", {}), limit]);
            return outlives;
        } catch (error) {
            // An older server does not know it, and ends with the window.
            this.log.debug(`the server ends with the window: ${messageOf(error)}`);
            return false;
        }
    }

    /** Leaves the process to itself; it learns by its streams that the window is gone. */
    private letGo(): void {
        clearTimeout(this.timer);
        const run = this.run;
        this.run = undefined;
        if (!run) return;
        run.ended = true;
        this.log.info("a turn runs: the server outlives the window until it is over");
        run.process?.letGo();
    }

    private set(connection: Connection): void {
        this.state = connection;
        this.connectionChanged.fire(connection);
    }

    private stopped(reason: string, hint: string, setup: Setup | null): void {
        this.log.error(`${reason} ${hint}`);
        this.set({ state: "stopped", reason, hint, setup });
    }

    private async spawn(file: string, run: Run): Promise<void> {
        const { environment, logLevel } = serverSettings();
        const variables = { KODE_LS_LOG: logLevel, ...process.env, ...environment };
        run.process = await ServerProcess.start(file, firstFolder(), variables, (line) => this.noteLine(line));
        // It was stopped before it ran.
        if (run.ended) run.process.kill();
    }

    /** Puts a line of the server's log into ours, as serious as the server says it is. */
    private noteLine(line: string): void {
        const [, level = "", text = line] = /^\S+Z\s+(ERROR|WARN|INFO|DEBUG|TRACE)\s+(.*)$/.exec(line) ?? [];
        switch (level) {
            case "WARN":
                this.log.warn(text);
                break;
            case "INFO":
                this.log.info(text);
                break;
            case "DEBUG":
                this.log.debug(text);
                break;
            case "TRACE":
                this.log.trace(text);
                break;
            default:
                this.log.error(text);
        }
    }

    /** Looks whether the server speaks our protocol. */
    private async greet(run: Run): Promise<void> {
        const kode = (run.client?.initializeResult?.capabilities.experimental as { kode?: ServerKode } | undefined)?.kode;
        if (kode?.protocolVersion === PROTOCOL_VERSION) {
            this.log.info(`connected to kode-ls ${kode.serverVersion}`);
            this.set({ state: "ready", serverVersion: kode.serverVersion });
            await this.reportFocus();
            return;
        }
        const speaks = kode ? `version ${kode.protocolVersion} of the protocol` : "no protocol of Kode";
        await this.stop();
        this.stopped(
            `\`${this.file ?? ""}\` speaks ${speaks}; this extension needs version ${PROTOCOL_VERSION}.`,
            "Install the version of kode-ls that matches this extension.",
            "serverUnusable",
        );
    }

    private async couldNotStart(run: Run, error: unknown): Promise<void> {
        if (this.run !== run || run.ended) return;
        if (run.process) {
            // It ran, and ended or broke off during the handshake.
            await this.ended(run);
            return;
        }
        run.ended = true;
        this.run = undefined;
        this.stopped(
            `\`${this.file ?? ""}\` could not be started: ${messageOf(error)}.`,
            "Check that it is a program for this machine, or set `kode.server.path` to another one.",
            "serverUnusable",
        );
    }

    /** The server ended without being asked to. */
    private async ended(run: Run): Promise<void> {
        if (run.ended) return;
        run.ended = true;
        if (this.run === run) this.run = undefined;
        const wasReady = this.state.state === "ready";
        const reason = (await run.process?.reason()) ?? "The server ended.";
        run.process?.kill();
        if (this.disposed || this.run) return;
        const decision = this.policy.crashed(Date.now());
        if (!decision.again) {
            const hint = "Run “Kode: Show Logs” for details, or “Kode: Restart Server” to try again.";
            this.stopped(`${reason} It ended ${MAX_CRASHES} times within a few minutes.`, hint, wasReady ? null : "serverUnusable");
            return;
        }
        this.log.error(`${reason} Restarting in ${decision.delayMs} ms…`);
        this.set({ state: "crashed", reason, restartInMs: decision.delayMs, attempt: decision.attempt });
        this.timer = setTimeout(() => void this.start(), decision.delayMs);
    }
}

function firstFolder(): string | undefined {
    return vscode.workspace.workspaceFolders?.find(({ uri }) => uri.scheme === "file")?.uri.fsPath;
}
