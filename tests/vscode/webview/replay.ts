// Records the session that every client replays: tests/fixtures/replay/session.json, see README.md there.
//
// Rule: the session passes through every state that an item or a hunk can be in at its end; what clients have to come to is
// written by hand in expected.json, and never taken from a client.

import type { AgentEventParams, Hunk, Snapshot } from "../../../protocol/generated/kode";
import { call, Project, text, thinking, type Program } from "./lib/project";
import { Recorder, type EditsAt } from "./lib/recorder";

/** The input of a replaying client. */
export interface Replay {
    /** The initial snapshot of the session. */
    first: Snapshot;
    /** Everything it told, in order. */
    events: AgentEventParams[];
    /** The answer of `agent/edits/list`, and after which event. */
    edits: EditsAt[];
}

const edit = (name: string, from: string, to: string) => ({ old_string: from, new_string: to, name });
const change = (file: string, ...edits: ReturnType<typeof edit>[]) =>
    call("MultiEdit", {
        file_path: `{{cwd}}/${file}`,
        edits: edits.map(({ name: _name, ...rest }) => rest),
    });

const programs: Program[] = [
    {
        when: "^paint",
        steps: [
            {
                content: [
                    thinking("The door first."),
                    text("I look at the **door**."),
                    call("Read", { file_path: "{{cwd}}/door.txt" }),
                    call("Read", { file_path: "{{cwd}}/missing.txt" }),
                ],
            },
            {
                content: [
                    change(
                        "door.txt",
                        edit("first", "line 2\n", "line 2, red\n"),
                        edit("second", "line 9\n", "line 9, red\n"),
                    ),
                ],
            },
            { content: [call("Bash", { command: "touch made" })] },
            { content: [call("Write", { file_path: "{{cwd}}/lamp.txt", content: "a lamp\n" })] },
            { content: [call("Bash", { command: "touch other && echo out && exit 3" })] },
            { content: [text("The door is red.")] },
        ],
    },
    {
        when: "^slow",
        steps: [
            // Only the first piece comes before the gate, so that the interrupted part is always the same.
            { content: [text("one two three four five six")], chunk: 8, gate: "slow", gate_after_events: 4 },
        ],
    },
    {
        when: "table too",
        steps: [
            { content: [call("Read", { file_path: "{{cwd}}/table.txt" })] },
            {
                content: [
                    change(
                        "table.txt",
                        edit("first", "line 2\n", "line 2, oak\n"),
                        edit("second", "line 9\n", "line 9, oak\n"),
                        edit("third", "line 16\n", "line 16, oak\n"),
                        edit("fourth", "line 20\n", "line 20, oak\n"),
                    ),
                ],
            },
            { content: [text("The table is of oak.")] },
        ],
    },
    { steps: [{ content: [text("Well.")] }] },
];

const lines = Array.from({ length: 20 }, (_, index) => `line ${index + 1}\n`).join("");

/** The hunk of a file that has some text. */
function hunkWith(hunks: readonly Hunk[], words: string): string {
    const hunk = hunks.find(({ newText }) => newText.includes(words));
    if (!hunk) throw new Error(`no hunk has ${words}`);
    return hunk.hunkId;
}

class Play {
    constructor(
        readonly project: Project,
        readonly recorder: Recorder,
    ) {}

    get sessionId(): string {
        return this.recorder.first.sessionId;
    }

    /** Answers the prompt of an event and waits for the next prompt, or the end of the turn. */
    async answer(
        prompt: AgentEventParams,
        until: AgentEventParams["event"]["type"],
        answer: { decision: "allow" | "deny"; feedback?: string; hunks?: string[] },
    ): Promise<AgentEventParams> {
        if (prompt.event.type !== "permission_required") throw new Error(`no prompt: ${prompt.event.type}`);
        const { permissionId } = prompt.event.prompt;
        return this.recorder.until(until, () =>
            this.recorder.server.request("agent/permission/respond", {
                sessionId: this.sessionId,
                permissionId,
                ...answer,
            }),
        );
    }

    /** All hunks of a file that there are to decide on. */
    async hunks(name: string): Promise<readonly Hunk[]> {
        const { files } = await this.recorder.list();
        return files.find(({ path }) => path.endsWith(name))?.hunks ?? [];
    }

    /** A part of a change is allowed, a command denied, a file made, and a command fails. */
    async paint(): Promise<void> {
        const change = await this.recorder.say("paint the door", "permission_required");
        const first = hunkWith(await this.hunks("door.txt"), "line 2, red");
        const denied = await this.answer(change, "permission_required", { decision: "allow", hunks: [first] });
        await this.recorder.list();
        const made = await this.answer(denied, "permission_required", { decision: "deny", feedback: "no files" });
        await this.recorder.list();
        const fails = await this.answer(made, "permission_required", { decision: "allow" });
        await this.recorder.list();
        await this.answer(fails, "done", { decision: "allow" });
        await this.recorder.list();
    }

    /** An answer is broken off. */
    async interrupt(): Promise<void> {
        const begun = this.recorder.server.event(
            ({ event }) => event.type === "item_added" && event.item.body.type === "agentMessage",
            "the first words",
        );
        await this.recorder.say("slow please", "turn_started");
        await this.project.held("slow");
        await begun;
        await this.recorder.until("done", () =>
            this.recorder.server.request("agent/turn/cancel", { sessionId: this.sessionId }),
        );
    }

    /** Hunks are kept, undone and brought into conflict, and one is left alone. */
    async table(): Promise<void> {
        const { server } = this.recorder;
        await this.recorder.until("mode_changed", () =>
            server.request("agent/session/configure", { sessionId: this.sessionId, mode: "acceptEdits" }),
        );
        await this.recorder.say("table too", "done");
        const hunks = await this.hunks("table.txt");
        await this.resolve("keep", hunkWith(hunks, "line 2, oak"));
        await this.resolve("undo", hunkWith(hunks, "line 9, oak"));
        const now = this.project.read("table.txt");
        this.project.write("table.txt", now.replace("line 16, oak", "line 16, my oak"));
        await this.resolve("undo", hunkWith(hunks, "line 16, oak"));
    }

    private async resolve(action: "keep" | "undo", hunkId: string): Promise<void> {
        await this.recorder.until("edits_resolved", () =>
            this.recorder.server.request("agent/edits/resolve", {
                selection: { type: "hunks", sessionId: this.sessionId, hunkIds: [hunkId] },
                action,
            }),
        );
        await this.recorder.list();
    }

    /** A prompt and its answer are gone again. */
    async goBack(): Promise<void> {
        const { server } = this.recorder;
        await this.recorder.say("never mind", "done");
        const { checkpoints } = await server.request("agent/checkpoint/list", { sessionId: this.sessionId });
        const checkpointId = checkpoints.at(-1)?.checkpointId ?? "";
        await this.recorder.until("edits_resolved", () =>
            server.request("agent/checkpoint/restore", {
                sessionId: this.sessionId,
                checkpointId,
                what: "conversation",
            }),
        );
        await this.recorder.list();
    }
}

/** Plays the session on a server and answers what it told. */
export async function recordReplay(): Promise<Replay> {
    const project = await Project.create(programs);
    project.write("door.txt", lines).write("table.txt", lines);
    const server = await project.start();
    const { snapshot } = await server.request("agent/session/new", {});
    const recorder = new Recorder(server, snapshot);
    const play = new Play(project, recorder);
    await play.paint();
    await play.interrupt();
    await play.table();
    await play.goBack();
    await server.close();
    project.close();
    const { first, events, edits } = recorder;
    return JSON.parse(JSON.stringify({ first, events, edits }).replaceAll(project.root, "/project")) as Replay;
}
