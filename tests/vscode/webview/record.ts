// Records what the real server tells: of conversations that use all of the protocol, for the unit tests of the store, and of
// the session that every client replays.
//
//   KODE_LS_BIN=target/debug/kode-ls tests/vscode/webview/run --record
//
// Rule: a recording is what the server said, with the temporary folder named /project; nothing in it is written by hand. With
// every few events a snapshot is taken, which is what folding has to come to.

import { writeFileSync } from "node:fs";
import { join } from "node:path";

import type { AgentEventParams, Snapshot } from "../../../protocol/generated/kode";
import { COLOR } from "./lib/programs";
import { call, Project, text, thinking, type Program } from "./lib/project";
import { Recorder } from "./lib/recorder";
import { recordReplay } from "./replay";

/** The state that a test reads. */
export interface Recording {
    /** The initial snapshot of the session. */
    first: Snapshot;
    /** Everything it told, in order. */
    events: AgentEventParams[];
    /** Its states at several moments. */
    snapshots: Snapshot[];
}

const folder = "{{cwd}}";

const programs: Program[] = [
    {
        when: "^work",
        steps: [
            {
                content: [
                    thinking("Let me see what there is."),
                    text("I look at it. "),
                    call("Read", { file_path: `${folder}/a.txt` }),
                    call("Grep", { pattern: "one" }),
                ],
            },
            {
                content: [
                    call("TodoWrite", {
                        todos: [
                            { content: "Edit", status: "in_progress", activeForm: "Editing" },
                            { content: "Run", status: "pending", activeForm: "Running" },
                        ],
                    }),
                ],
            },
            {
                content: [
                    text("Now the edit."),
                    call("Edit", { file_path: `${folder}/a.txt`, old_string: "one", new_string: "two" }),
                ],
            },
            {
                content: [
                    call("Bash", { command: "touch made && seq 1 200" }),
                    call("Read", { file_path: `${folder}/missing.txt` }),
                ],
            },
            {
                content: [
                    call("Task", {
                        description: "Look around",
                        prompt: "delegate: look",
                        subagent_type: "general-purpose",
                    }),
                ],
            },
            { content: [text("# All is done\n\n" + "Some more words that come in pieces. ".repeat(20))] },
        ],
    },
    {
        when: "^delegate",
        steps: [
            { content: [text("I look."), call("Read", { file_path: `${folder}/a.txt` })] },
            { content: [text("It says two.")] },
        ],
    },
    {
        when: "^ask",
        steps: [
            {
                content: [call("AskUserQuestion", { questions: [COLOR] })],
            },
            { content: [text("Then it is so.")] },
        ],
    },
    {
        when: "^slow",
        steps: [
            { content: [text("one two three four five six")], chunk: 4, gate: "slow", gate_after_events: 5 },
        ],
    },
    { steps: [{ content: [text("Well.")] }] },
];

async function record(): Promise<Recording> {
    const project = await Project.create(programs);
    project.write("a.txt", "one\n");
    const server = await project.start();
    const { sessionId, snapshot } = await server.request("agent/session/new", {});
    const recorder = new Recorder(server, snapshot);
    const allow = (prompt: AgentEventParams) => async () => {
        if (prompt.event.type !== "permission_required") throw new Error(`no prompt: ${prompt.event.type}`);
        const { permissionId } = prompt.event.prompt;
        await server.request("agent/permission/respond", { sessionId, permissionId, decision: "allow" });
    };
    await recorder.snapshot();
    const edit = await recorder.say("work on it\nplease", "permission_required");
    await recorder.snapshot();
    const command = await recorder.until("permission_required", allow(edit));
    await recorder.snapshot();
    await recorder.until("done", allow(command));
    await recorder.snapshot();
    const question = await recorder.say("ask me", "question_asked");
    await recorder.snapshot();
    await recorder.until("done", async () => {
        if (question.event.type !== "question_asked") throw new Error("no question");
        const { questionId } = question.event.question;
        await server.request("agent/question/respond", {
            sessionId,
            questionId,
            answers: [{ labels: ["Blue"] }],
        });
    });
    await recorder.until("draft_changed", () =>
        server.request("agent/draft/set", { sessionId, text: "not yet" }),
    );
    await recorder.snapshot();
    await recorder.until("draft_changed", () => server.request("agent/draft/set", { sessionId, text: "" }));
    await recorder.say("slow", "text_chunk");
    await project.held("slow");
    await recorder.say("queued one", "queue_changed");
    await recorder.say("told", "queue_changed", "steer");
    await recorder.snapshot();
    await recorder.until("done", () => server.request("agent/turn/cancel", { sessionId }));
    await recorder.snapshot();
    await recorder.until("mode_changed", () =>
        server.request("agent/session/configure", { sessionId, mode: "acceptEdits", effort: "high" }),
    );
    await recorder.until("title_changed", () =>
        server.request("agent/session/rename", { sessionId, title: "A name" }),
    );
    await recorder.snapshot();
    const { checkpoints } = await server.request("agent/checkpoint/list", { sessionId });
    const checkpointId = checkpoints[1]?.checkpointId ?? "";
    const restored = await recorder.until("edits_resolved", () =>
        server.request("agent/checkpoint/restore", { sessionId, checkpointId, what: "both" }),
    );
    await recorder.snapshot();
    await recorder.until("edits_resolved", async () => {
        if (restored.event.type !== "edits_resolved") throw new Error("nothing was restored");
        await server.request("agent/edits/revert", { sessionId, resolutionId: restored.event.resolutionId });
    });
    await recorder.snapshot();
    await server.close();
    project.close();
    const said = JSON.stringify({ first: snapshot, events: recorder.events, snapshots: recorder.snapshots });
    return JSON.parse(said.replaceAll(project.root, "/project")) as Recording;
}

/** Writes a recording with an event, and whatever else it has many of, on a line each. */
function write(folder: string, name: string, { first, ...lists }: { first: Snapshot }): void {
    const parts = Object.entries(lists).map(
        ([key, list]) => `"${key}":[\n${(list as unknown[]).map((one) => JSON.stringify(one)).join(",\n")}\n]`,
    );
    writeFileSync(join(folder, name), `{"first":${JSON.stringify(first)},\n${parts.join(",\n")}}\n`);
    console.log(`${name}: ${Object.entries(lists).map(([key, list]) => `${(list as unknown[]).length} ${key}`).join(", ")}`);
}

async function main(): Promise<void> {
    write(process.env["KODE_RECORDED"] ?? ".", "conversation.json", await record());
    write(process.env["KODE_REPLAY"] ?? ".", "session.json", await recordReplay());
}

void main();
