// The real server as a child process, spoken to by LSP over stdio.
//
// Rule: nothing is answered for the server. Its requests to an editor are answered as a small editor would answer them,
// and what it says is handed on as it came.

import { spawn, type ChildProcessByStdio } from "node:child_process";
import type { Readable, Writable } from "node:stream";

import type { AgentEventParams, ErrorData, Requests } from "../../../../protocol/generated/kode";

type Message = {
    jsonrpc: "2.0";
    id?: number | string;
    method?: string;
    params?: unknown;
    result?: unknown;
    error?: RpcError;
};

/** The error that a request was answered with. */
export interface RpcError {
    code: number;
    message: string;
    data?: ErrorData;
}

/** Cuts a stream of LSP messages into messages. */
class Framing {
    private rest = Buffer.alloc(0);

    *read(chunk: Buffer): Generator<Message> {
        this.rest = Buffer.concat([this.rest, chunk]);
        for (;;) {
            const end = this.rest.indexOf("\r\n\r\n");
            if (end < 0) return;
            const length = Number(/content-length: *(\d+)/i.exec(this.rest.toString("latin1", 0, end))?.[1]);
            const start = end + 4;
            if (this.rest.length < start + length) return;
            yield JSON.parse(this.rest.toString("utf8", start, start + length)) as Message;
            this.rest = this.rest.subarray(start + length);
        }
    }
}

/** A server that was started for one test. */
export class Server {
    /** Resolves when the process has ended. */
    readonly ended: Promise<number | null>;
    private readonly process: ChildProcessByStdio<Writable, Readable, Readable>;
    private readonly waiting = new Map<
        number,
        { resolve: (value: unknown) => void; reject: (error: RpcError) => void }
    >();
    private readonly listeners = new Set<(event: AgentEventParams) => void>();
    private readonly listListeners = new Set<() => void>();
    private newest = 0;
    private log = "";

    constructor(program: string, environment: Record<string, string>, folder: string) {
        const inherited = { PATH: process.env["PATH"] ?? "", LANG: "C.UTF-8" };
        this.process = spawn(program, [], {
            cwd: folder,
            env: { ...inherited, ...environment },
            stdio: ["pipe", "pipe", "pipe"],
        });
        const framing = new Framing();
        this.process.stdout.on("data", (chunk: Buffer) => {
            for (const message of framing.read(chunk)) this.receive(message);
        });
        this.process.stderr.on("data", (chunk: Buffer) => {
            this.log = (this.log + chunk.toString()).slice(-20_000);
        });
        this.ended = new Promise((resolve) => this.process.on("close", resolve));
        void this.ended.then(() => {
            for (const { reject } of this.waiting.values())
                reject({ code: -1, message: `the server has ended\n${this.log}` });
            this.waiting.clear();
        });
    }

    /** Does the handshake as a client with a panel. */
    async initialize(folder: string): Promise<void> {
        const uri = new URL(`file://${folder}`).href;
        const kode = {
            protocolVersion: 1,
            events: true,
            permissionUi: true,
            saveDocuments: false,
            diagnostics: false,
            diffUi: true,
        };
        await this.call("initialize", {
            processId: process.pid,
            clientInfo: { name: "kode-webview-tests" },
            rootUri: uri,
            workspaceFolders: [{ uri, name: "workspace" }],
            capabilities: {
                workspace: { applyEdit: true, workspaceEdit: { documentChanges: true } },
                experimental: { kode },
            },
        });
        this.send({ jsonrpc: "2.0", method: "initialized", params: {} });
    }

    /** Sends a request of the protocol. */
    request<M extends keyof Requests>(
        method: M,
        params: Requests[M]["params"],
    ): Promise<Requests[M]["result"]> {
        return this.call(method, params) as Promise<Requests[M]["result"]>;
    }

    /** Sends any request. */
    call(method: string, params: unknown): Promise<unknown> {
        const id = ++this.newest;
        return new Promise((resolve, reject) => {
            this.waiting.set(id, { resolve, reject });
            this.send({ jsonrpc: "2.0", id, method, params });
        });
    }

    /** Hears every event; answers how to stop. */
    onEvent(listener: (event: AgentEventParams) => void): () => void {
        this.listeners.add(listener);
        return () => this.listeners.delete(listener);
    }

    /** Hears that the list of sessions is another one; answers how to stop. */
    onListChanged(listener: () => void): () => void {
        this.listListeners.add(listener);
        return () => this.listListeners.delete(listener);
    }

    /** Waits for an event. */
    event(
        matches: (event: AgentEventParams) => boolean,
        what: string,
        limit = 20_000,
    ): Promise<AgentEventParams> {
        return new Promise((resolve, reject) => {
            const timer = setTimeout(() => {
                stop();
                reject(new Error(`waited in vain for ${what}\n${this.log}`));
            }, limit);
            const stop = this.onEvent((event) => {
                if (!matches(event)) return;
                clearTimeout(timer);
                stop();
                resolve(event);
            });
        });
    }

    /** Ends the process at once, as a crash would. */
    async kill(): Promise<void> {
        this.process.kill("SIGKILL");
        await this.ended;
    }

    /** Ends it as an editor does that is closed. */
    async close(): Promise<void> {
        if (this.process.exitCode !== null || this.process.signalCode !== null) return;
        const timer = setTimeout(() => this.process.kill("SIGKILL"), 10_000);
        await this.call("shutdown", null).catch(() => undefined);
        this.send({ jsonrpc: "2.0", method: "exit" });
        this.process.stdin.end();
        await this.ended;
        clearTimeout(timer);
    }

    private receive(message: Message): void {
        if (message.method === undefined) {
            const waiting = this.waiting.get(message.id as number);
            this.waiting.delete(message.id as number);
            if (message.error) waiting?.reject(message.error);
            else waiting?.resolve(message.result);
        } else if (message.id !== undefined) {
            const answer =
                message.method === "workspace/applyEdit"
                    ? { applied: false, failureReason: "no document is open" }
                    : null;
            this.send({ jsonrpc: "2.0", id: message.id, result: answer });
        } else if (message.method === "agent/event") {
            for (const listener of [...this.listeners]) listener(message.params as AgentEventParams);
        } else if (message.method === "agent/session/listChanged") {
            for (const listener of [...this.listListeners]) listener();
        }
    }

    private send(message: Message): void {
        if (!this.process.stdin.writable) return;
        const body = Buffer.from(JSON.stringify(message));
        this.process.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
        this.process.stdin.write(body);
    }
}
