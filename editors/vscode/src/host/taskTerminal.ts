// Commands in the background, shown live in a terminal of the editor.
//
// Rule: the terminal reads and never types: Ctrl+C ends the command, any other key does nothing. Closing it ends its reading
// and not the command. A command has one terminal.

import type { BackgroundTask, SessionId, TaskId } from "kode-protocol";
import * as vscode from "vscode";
import { TerminalText } from "../logic/terminalText.ts";
import { plain, told } from "../logic/words.ts";
import type { Server } from "./server.ts";

/** How long it waits before it asks again for output of a command that has written nothing. */
const POLL_MS = 250;

/** How many bytes of output are asked for at once. */
const PAGE = 65_536;

/** The most bytes of earlier output that are shown; later output is shown as it comes. */
const MOST_BEFORE = 1_048_576;

const CTRL_C = "\u0003";

/** The longest name of a terminal. */
const LONGEST_NAME = 40;

/** The command that a terminal shows. */
export interface ShownTask {
    sessionId: SessionId;
    taskId: TaskId;
    title: string;
}

/** The terminals of background commands. */
export class TaskTerminals implements vscode.Disposable {
    private readonly open = new Map<string, vscode.Terminal>();
    private readonly subscription: vscode.Disposable;

    constructor(private readonly server: Server) {
        this.subscription = vscode.window.onDidCloseTerminal((closed) => {
            for (const [key, terminal] of this.open) if (terminal === closed) this.open.delete(key);
        });
    }

    /** Shows the output of a command as it comes. */
    show(task: ShownTask): void {
        const key = `${task.sessionId} ${task.taskId}`;
        let terminal = this.open.get(key);
        if (!terminal) {
            const name = `Kode: ${plain(task.title, LONGEST_NAME)}`;
            const pty = new TaskReader(this.server, task);
            terminal = vscode.window.createTerminal({ name, pty, isTransient: true, iconPath: new vscode.ThemeIcon("server-process") });
            this.open.set(key, terminal);
        }
        terminal.show(false);
    }

    dispose(): void {
        this.subscription.dispose();
        for (const terminal of this.open.values()) terminal.dispose();
    }
}

/** Reads the output of one command. */
class TaskReader implements vscode.Pseudoterminal {
    private readonly written = new vscode.EventEmitter<string>();
    private readonly text = new TerminalText();
    private readonly closed = new vscode.CancellationTokenSource();
    private isOver = false;

    readonly onDidWrite = this.written.event;

    constructor(
        private readonly server: Server,
        private readonly task: ShownTask,
    ) {}

    open(): void {
        this.note(`The output of \`${plain(this.task.title)}\`. Ctrl+C ends the command; closing this terminal does not.`);
        void this.read();
    }

    close(): void {
        this.closed.cancel();
        this.written.dispose();
    }

    handleInput(data: string): void {
        if (data === CTRL_C && !this.isOver) void this.stop();
    }

    private async stop(): Promise<void> {
        const { sessionId, taskId } = this.task;
        try {
            await this.server.request("agent/tasks/stop", { sessionId, taskId });
        } catch (error) {
            this.note(`The command was not ended: ${told(error)}`);
        }
    }

    private async read(): Promise<void> {
        const { sessionId, taskId } = this.task;
        const { token } = this.closed;
        try {
            let offset = await this.beginning();
            while (!token.isCancellationRequested) {
                const page = await this.server.request("agent/output/read", { sessionId, taskId, offset, limit: PAGE }, token);
                this.write(this.text.next(page.text));
                offset = page.nextOffset;
                if (offset < page.totalBytes && page.text !== "") continue;
                if (page.complete) {
                    this.write(this.text.end());
                    this.note(await this.end());
                    return;
                }
                await new Promise((resolve) => setTimeout(resolve, POLL_MS));
            }
        } catch (error) {
            this.note(`No more output can be read: ${told(error)}`);
        } finally {
            this.isOver = true;
        }
    }

    /** Where the reading begins: of long output only the end is shown. */
    private async beginning(): Promise<number> {
        const { sessionId, taskId } = this.task;
        const { totalBytes } = await this.server.request("agent/output/read", { sessionId, taskId, offset: 0, limit: 4 });
        if (totalBytes <= MOST_BEFORE) return 0;
        this.note(`Only the last ${MOST_BEFORE} of ${totalBytes} bytes; all of it is in the session's output folder.`);
        return totalBytes - MOST_BEFORE;
    }

    private async end(): Promise<string> {
        const { sessionId, taskId } = this.task;
        const { tasks } = await this.server.request("agent/tasks/list", { sessionId });
        return endOf(tasks.find((task) => task.taskId === taskId));
    }

    private write(text: string): void {
        if (text !== "" && !this.closed.token.isCancellationRequested) this.written.fire(text);
    }

    /** Writes a line of ours, dim, on a line of its own. */
    private note(words: string): void {
        this.write(`\u001b[0m\r\n\u001b[2m${words}\u001b[0m\r\n`);
    }
}

function endOf(task: BackgroundTask | undefined): string {
    const end = task?.end;
    switch (end?.status) {
        case "exited":
            return `The command ended with exit code ${end.exitCode ?? 0}.`;
        case "signaled":
            return `The command was ended by signal ${end.signal ?? 0}.`;
        case "killed":
            return "The command was stopped.";
        case "endedWithSession":
            return "The command ended with its session.";
        case "failed":
            return plain(`The command failed: ${end.reason ?? ""}`);
        default:
            return "The command has ended.";
    }
}
