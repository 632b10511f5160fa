// The process of the server: started, watched, and asked why it ended.
//
// Rule: it has the user's environment and what the settings add, and no shell between. Its end is reported once, with
// the last it said; what it says beyond a bound is dropped here and kept in the log.

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { accessSync, chmodSync, constants, statSync } from "node:fs";
import { createInterface } from "node:readline";

/** Maximum length of its last output. */
const LAST_WORDS = 2_000;

/** Lines of its log that report nothing bad. */
const CHATTER = /^\S+Z\s+(INFO|DEBUG|TRACE)\b/;

/** How long it may take from the end of the connection to the end of the process. */
const END_LIMIT_MS = 1_000;

/** Whether there is a file that may be run. */
export function isProgram(file: string): boolean {
    try {
        if (!statSync(file).isFile()) return false;
        accessSync(file, constants.X_OK);
        return true;
    } catch {
        // Not there, or not for us: both mean no.
        return false;
    }
}

/** Whether there is a file, which may be run or not. */
export function isFile(file: string): boolean {
    return statSync(file, { throwIfNoEntry: false })?.isFile() ?? false;
}

/** Makes a file one that may be run; false when the system refuses. */
export function makeProgram(file: string): boolean {
    try {
        chmodSync(file, 0o755);
    } catch {
        // A folder of the administrator's: the caller reports the file.
        return false;
    }
    return isProgram(file);
}

/** A running server. */
export class ServerProcess {
    readonly child: ChildProcessWithoutNullStreams;
    private lastWords = "";
    private readonly ended: Promise<string>;

    /**
     * Starts it; `onLine` gets each line it writes into its log.
     *
     * @throws when the program cannot be started at all.
     */
    static async start(
        file: string,
        cwd: string | undefined,
        environment: NodeJS.ProcessEnv,
        onLine: (line: string) => void,
    ): Promise<ServerProcess> {
        const child = spawn(file, [], { cwd, env: environment, stdio: "pipe", windowsHide: true });
        const process = new ServerProcess(child, onLine);
        await new Promise((resolve, reject) => {
            child.once("spawn", resolve);
            child.once("error", reject);
        });
        return process;
    }

    private constructor(child: ChildProcessWithoutNullStreams, onLine: (line: string) => void) {
        this.child = child;
        createInterface({ input: child.stderr, crlfDelay: Infinity }).on("line", (line) => {
            this.lastWords = `${this.lastWords}${line}\n`.slice(-LAST_WORDS);
            onLine(line);
        });
        this.ended = new Promise((resolve) => {
            child.once("exit", (code, signal) => resolve(howItEnded(code, signal)));
        });
    }

    /** How it ended and what it said last; call it once the connection is gone. */
    async reason(): Promise<string> {
        const limit = new Promise<string>((resolve) => {
            setTimeout(() => resolve("The server closed the connection but is still running."), END_LIMIT_MS).unref();
        });
        const reason = await Promise.race([this.ended, limit]);
        const last = this.lastWords.trimEnd().split("\n").findLast((line) => line.trim() !== "" && !CHATTER.test(line))?.trim();
        return last ? `${reason} Last output: ${last}` : reason;
    }

    /** Closes its streams and lets this process end without it. */
    letGo(): void {
        this.child.stdin.destroy();
        this.child.stdout.destroy();
        this.child.stderr.destroy();
        this.child.unref();
    }

    /** Ends it, whether or not it listens. */
    kill(): void {
        if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill("SIGKILL");
    }
}

function howItEnded(code: number | null, signal: NodeJS.Signals | null): string {
    if (signal !== null) return `The server was ended by signal ${signal}.`;
    return `The server ended with exit code ${code ?? "unknown"}.`;
}
