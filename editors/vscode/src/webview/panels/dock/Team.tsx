// The sub-agents in the background and the main conversation: who waits for whom, and the tasks that they share.
//
// Rule: there while a sub-agent works or a shared task is open, and one line until it is opened. The arcs repeat what the words
// beside them say.

import type { Team, TeamMember, TeamTask } from "kode-protocol";
import { useState } from "preact/hooks";

import type { App } from "../../app/app.ts";
import { useApp, useSession, useToggle } from "../../app/context.ts";
import { counted, exactLine } from "../../text.ts";
import { Icon, Spinner } from "../Icon.tsx";
import { IconAct } from "../IconAct.tsx";

/** The height of a member's row, and the width of the arcs beside the rows, in pixels. */
const ROW = 26;
const ARCS = 30;

/** The team of the session while there is something to see of it. */
function useShownTeam(): Team | undefined {
    const team = useSession((view) => view.team);
    if (!team) return undefined;
    const isOpen = team.members.some(isSubAgentAtWork) || (team.tasks ?? []).some(({ state }) => state !== "completed");
    return isOpen ? team : undefined;
}

/** The state of the team in a few words; undefined without a team. */
export function useTeam(): string | undefined {
    const team = useShownTeam();
    return team && summaryOf(team);
}

export function TeamPart() {
    const team = useShownTeam();
    const [open, toggle] = useToggle("dock:team", false);
    if (!team) return null;
    return (
        <section class="dock-part team" aria-label="Team">
            <button type="button" class="dock-line" aria-expanded={open} onClick={toggle}>
                <Icon name="agent" />
                <span class="dock-title">{summaryOf(team)}</span>
                <span class="card-chevron">
                    <Icon name="chevron" />
                </span>
            </button>
            {open && (
                <div class="team-body">
                    <Members members={team.members} />
                    <SharedTasks tasks={team.tasks ?? []} />
                </div>
            )}
        </section>
    );
}

function Members({ members }: { members: readonly TeamMember[] }) {
    const [to, setTo] = useState<string>();
    const recipient = members.find((member) => member.name === to && isSubAgentAtWork(member));
    return (
        <>
            <div class="team-members">
                <Arcs members={members} />
                <ul aria-label="Members">
                    {members.map((member) => (
                        <li key={member.name} class={member.state === "ended" ? "team-member team-ended" : "team-member"} style={{ height: `${ROW}px` }}>
                            <span class="team-name" title={exactLine(member.description ?? "")}>
                                {exactLine(member.name)}
                            </span>
                            <span class="team-state">{stateOf(member)}</span>
                            {member.unread > 0 && <span class="team-unread">{member.unread} unread</span>}
                            {isSubAgentAtWork(member) && (
                                <IconAct
                                    icon="reply"
                                    label={`Write to ${exactLine(member.name)}`}
                                    onClick={() => setTo(member.name === to ? undefined : member.name)}
                                />
                            )}
                        </li>
                    ))}
                </ul>
            </div>
            {recipient && <Writing key={recipient.name} to={recipient.name} onClose={() => setTo(undefined)} />}
        </>
    );
}

/** An arc from each member that waits for a message to the one that it waits for. */
function Arcs({ members }: { members: readonly TeamMember[] }) {
    const waits = members.flatMap((member, from) => {
        const on = members.findIndex(({ name }) => name === member.waitsFor);
        return on < 0 ? [] : [{ from, on }];
    });
    if (waits.length === 0) return null;
    const middle = (row: number) => row * ROW + ROW / 2;
    return (
        <svg class="team-arcs" width={ARCS} height={members.length * ROW} aria-hidden="true" focusable="false">
            {waits.map(({ from, on }) => {
                // Longer arcs reach further out, so that they do not hide shorter ones.
                const out = Math.max(2, ARCS - 8 - 5 * Math.abs(from - on));
                const [y, end] = [middle(from), middle(on)];
                return (
                    <g key={from}>
                        <path d={`M${ARCS - 2} ${y}C${out} ${y} ${out} ${end} ${ARCS - 4} ${end}`} />
                        <path d={`M${ARCS - 9} ${end - 4}l5 4-5 4`} />
                    </g>
                );
            })}
        </svg>
    );
}

function Writing({ to, onClose }: { to: string; onClose: () => void }) {
    const app = useApp();
    const [text, setText] = useState("");
    const post = async () => {
        if (text.trim() !== "" && (await write(app, to, text))) onClose();
    };
    return (
        <div class="team-writing">
            <textarea
                aria-label={`Message to ${exactLine(to)}`}
                placeholder={`Message to ${exactLine(to)}`}
                value={text}
                rows={Math.min(6, text.split("\n").length)}
                ref={(element) => {
                    if (element && document.activeElement !== element) element.focus();
                }}
                onInput={(event) => setText(event.currentTarget.value)}
                onKeyDown={(event) => {
                    if (event.key === "Escape") onClose();
                    else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) void post();
                    else return;
                    event.preventDefault();
                    event.stopPropagation();
                }}
            />
            <div class="actions">
                <button type="button" class="primary" onClick={() => void post()}>
                    Send
                </button>
                <button type="button" class="quiet" onClick={onClose}>
                    Cancel
                </button>
            </div>
        </div>
    );
}

function SharedTasks({ tasks }: { tasks: readonly TeamTask[] }) {
    if (tasks.length === 0) return null;
    return (
        <ol class="todo-list team-tasks" aria-label="Shared tasks">
            {tasks.map((task) => (
                <li key={task.number} class={task.state === "completed" ? "completed" : ""}>
                    <span class="todo-mark" role="img" aria-label={task.state}>
                        {task.state === "completed" ? <Icon name="check" /> : task.state === "claimed" ? <Spinner /> : null}
                    </span>
                    <span class="team-task">
                        {task.number}. {exactLine(task.title)}
                        <span class="dock-aside"> {aboutTask(task)}</span>
                    </span>
                </li>
            ))}
        </ol>
    );
}

function aboutTask({ owner, blockedBy = [] }: TeamTask): string {
    if (owner !== undefined) return exactLine(owner);
    return blockedBy.length > 0 ? `after ${blockedBy.join(", ")}` : "free";
}

function isSubAgentAtWork({ agentId, state }: TeamMember): boolean {
    return agentId !== undefined && state !== "ended";
}

function stateOf({ state, waitsFor }: TeamMember): string {
    switch (state) {
        case "working":
            return "works";
        case "waiting":
            return `waits for ${waitsFor === undefined ? "any message" : exactLine(waitsFor)}`;
        case "permission":
            return "waits for your permission";
        case "question":
            return "waits for your answer";
        case "idle":
            return "waits for your prompt";
        case "ended":
            return "has ended";
    }
}

function summaryOf({ members, tasks = [] }: Team): string {
    const agents = members.filter(isSubAgentAtWork);
    const waiting = members.filter(({ state }) => state === "waiting").length;
    const done = tasks.filter(({ state }) => state === "completed").length;
    const parts = [
        agents.length > 0 ? `Team: ${counted(agents.length, "sub-agent")}` : "Team",
        waiting > 0 ? `${waiting} waiting` : "",
        tasks.length > 0 ? `${done} of ${counted(tasks.length, "task")} done` : "",
    ];
    return parts.filter(Boolean).join(", ");
}

/** Sends a message of the user to a sub-agent. */
function write(app: App, to: string, text: string): Promise<boolean> {
    return app.attempt(() => app.host.request("agent/team/send", { sessionId: app.session().sessionId, to, text }));
}
