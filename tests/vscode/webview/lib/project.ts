// A workspace in a temporary folder, a state folder, and the scripted model that works on it.
//
// Rule: nothing outside the temporary folder is read or written, and all of it is gone with the project.

import { spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

import { Server } from "./server";

/** A piece of an answer of the model. */
export type Content =
    | { type: "text"; text: string }
    | { type: "thinking"; thinking: string; signature: string }
    | { type: "tool_use"; name: string; input: unknown; id?: string };

/** One answer of the model; see server/docs/scripted-model.md. */
export interface Step {
    content: Content[];
    chunk?: number;
    gate?: string;
    gate_after_events?: number;
    rate?: number;
    headers?: Record<string, string>;
    repeat?: number;
    usage?: Record<string, number>;
    faults?: unknown[];
}

/** The model's answers to some prompts. */
export interface Program {
    when?: string;
    steps: Step[];
}

export const text = (text: string): Content => ({ type: "text", text });
export const call = (name: string, input: unknown): Content => ({ type: "tool_use", name, input });
export const thinking = (thinking: string): Content => ({ type: "thinking", thinking, signature: "c2ln" });

/** The program under test. */
export function program(): string {
    const named = process.env["KODE_LS_BIN"];
    if (!named) throw new Error("KODE_LS_BIN names no program: set it to a built kode-ls");
    return named;
}

/** A project for one test. */
export class Project {
    private constructor(
        readonly root: string,
        private readonly model: ChildProcess,
        private readonly address: string,
    ) {}

    /** Makes an empty workspace and serves the programs. */
    static async create(programs: Program[]): Promise<Project> {
        const root = realpathSync(mkdtempSync(join(tmpdir(), "kode-webview-")));
        mkdirSync(join(root, "workspace", ".git"), { recursive: true });
        const script = join(root, "script.json");
        writeFileSync(script, JSON.stringify({ programs }));
        const model = spawn(program(), ["scripted-model", "--script", script], {
            stdio: ["pipe", "pipe", "inherit"],
        });
        const line = await new Promise<string>((resolve, reject) => {
            createInterface({ input: model.stdout }).once("line", resolve);
            model.once("exit", (code) => reject(new Error(`the scripted model ended with ${code}`)));
        });
        return new Project(root, model, (JSON.parse(line) as { listening: string }).listening);
    }

    get workspace(): string {
        return join(this.root, "workspace");
    }

    path(name: string): string {
        return join(this.workspace, name);
    }

    write(name: string, content: string): this {
        mkdirSync(dirname(this.path(name)), { recursive: true });
        writeFileSync(this.path(name), content);
        return this;
    }

    read(name: string): string {
        return readFileSync(this.path(name), "utf8");
    }

    /** Starts a server that asks the scripted model; `environment` adds to or replaces what it is reported. */
    async start(environment: Record<string, string> = {}): Promise<Server> {
        const home = join(this.root, "home");
        const server = new Server(
            program(),
            {
                HOME: home,
                KODE_LS_HOME: home,
                ANTHROPIC_BASE_URL: this.address,
                ANTHROPIC_API_KEY: "test-key",
                ...environment,
            },
            this.workspace,
        );
        await server.initialize(this.workspace);
        return server;
    }

    /** Resolves when an answer is held at the gate. */
    async held(gate: string): Promise<void> {
        await fetch(`${this.address}/scripted/waiting/${gate}`);
    }

    /** The newest request that the model was sent, as text. */
    async newestRequest(): Promise<string> {
        return (await fetch(`${this.address}/scripted/newest`)).text();
    }

    /** Opens a gate for good. */
    async release(gate: string): Promise<void> {
        await fetch(`${this.address}/scripted/release/${gate}`, { method: "POST" });
    }

    /** Ends the model and removes the folder. */
    close(): void {
        this.model.stdin?.end();
        this.model.kill();
        rmSync(this.root, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    }
}
