// The area between the transcript and the prompt: open prompts, the worktree, the goal, todos, the team, the queue,
// changes, and errors.
//
// Rule: each part is there only while there is something in it, and shows what it has in one line until it is opened. While
// something is asked, all other parts fold to one line together: the card keeps the room.

import { useSelect, useSession, useToggle } from "../../app/context.ts";
import { ApplyingCard } from "../../cards/Applying.tsx";
import { PermissionCard } from "../../cards/Permission.tsx";
import { QuestionCard } from "../../cards/Question.tsx";
import { Composer } from "../../composer/Composer.tsx";
import { waitingFor } from "../../store/session.ts";
import { counted } from "../../text.ts";
import { Icon } from "../Icon.tsx";
import { Asides } from "./Asides.tsx";
import { Changes, useChanges } from "./Changes.tsx";
import { GoalPart, useGoal } from "./Goal.tsx";
import { Queue } from "./Queue.tsx";
import { Tasks } from "./Tasks.tsx";
import { TeamPart, useTeam } from "./Team.tsx";
import { Done, Troubles } from "./Toasts.tsx";
import { Todos } from "./Todos.tsx";
import { WorktreePart } from "./Worktree.tsx";

export function Dock() {
    const asking = useSession((view) => waitingFor(view) > 0) ?? false;
    const applying = useSelect((state) => state.applying !== undefined);
    return (
        <div class={asking || applying ? "dock asking" : "dock"}>
            <Troubles />
            <Asides />
            <ApplyingCard />
            <Waiting />
            {asking || applying ? <Folded /> : <Parts />}
            <Composer />
        </div>
    );
}

function Parts() {
    return (
        <>
            <Done />
            <div class="dock-parts">
                <WorktreePart />
                <GoalPart />
                <Todos />
                <TeamPart />
                <Tasks />
                <Changes />
                <Queue />
            </div>
        </>
    );
}

/** The permission prompt or question that waits longest. */
function Waiting() {
    const permissions = useSession((view) => view.permissions) ?? [];
    const questions = useSession((view) => view.questions) ?? [];
    const others = permissions.length + questions.length - 1;
    const [permission] = permissions;
    const [question] = questions;
    if (permission && (!question || permission.timestamp <= question.timestamp)) {
        return <PermissionCard key={permission.permissionId} prompt={permission} others={others} />;
    }
    return question ? <QuestionCard key={question.questionId} question={question} others={others} /> : null;
}

/** All parts in one line, while something is asked. */
function Folded() {
    const [open, toggle] = useToggle("dock:folded", false);
    const changes = useChanges();
    const goal = useGoal();
    const team = useTeam();
    const tasks = useSession((view) => view.tasks.length) ?? 0;
    const queued = useSession((view) => view.queue.length + view.steering.length) ?? 0;
    const todos = useSession((view) => view.todos) ?? [];
    const done = todos.filter(({ status }) => status === "completed").length;
    const undoable = useSelect((state) => state.undoable);
    const parts = [
        goal ?? "",
        team ?? "",
        changes.length > 0 ? `${counted(changes.length, "file")} changed` : "",
        todos.length > 0 ? `${done} of ${todos.length} done` : "",
        tasks > 0 ? `${tasks} in the background` : "",
        queued > 0 ? `${queued} queued` : "",
        undoable?.text.replace(/\.$/, "") ?? "",
    ].filter(Boolean);
    if (parts.length === 0) return null;
    return (
        <>
            <button type="button" class="dock-part dock-line folded" aria-expanded={open} onClick={toggle}>
                <Icon name="list" />
                <span class="dock-title">{parts.join(" · ")}</span>
                <span class="card-chevron">
                    <Icon name="chevron" />
                </span>
            </button>
            {open && (
                <div class="dock-unfolded">
                    <Parts />
                </div>
            )}
        </>
    );
}
