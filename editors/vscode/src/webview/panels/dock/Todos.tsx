// The todo list of the session.
//
// Rule: one line with the step that is being done, until it is opened.

import type { Todo } from "kode-protocol";

import { useSession, useToggle } from "../../app/context.ts";
import { prose } from "../../text.ts";
import { Icon, Spinner } from "../Icon.tsx";

const STATES: Record<Todo["status"], string> = {
    completed: "done",
    in_progress: "in progress",
    pending: "to do",
};

export function Todos() {
    const todos = useSession((view) => view.todos) ?? [];
    const [open, toggle] = useToggle("dock:todos", false);
    if (todos.length === 0) return null;
    const done = todos.filter((todo) => todo.status === "completed").length;
    const current = todos.find((todo) => todo.status === "in_progress");
    const title = current ? prose(current.activeForm) : done === todos.length ? "All done" : "To do";
    return (
        <section class="dock-part todos" aria-label="To do">
            <button type="button" class="dock-line" aria-expanded={open} onClick={toggle}>
                <Icon name="list" />
                <span class="dock-title">{title}</span>
                <span class="dock-aside">
                    {done} of {todos.length}
                </span>
                <span class="card-chevron">
                    <Icon name="chevron" />
                </span>
            </button>
            {open && (
                <ol class="todo-list">
                    {todos.map((todo, index) => (
                        <li key={index} class={todo.status}>
                            <span class="todo-mark" role="img" aria-label={STATES[todo.status]}>
                                {todo.status === "completed" ? (
                                    <Icon name="check" />
                                ) : todo.status === "in_progress" ? (
                                    <Spinner />
                                ) : null}
                            </span>
                            {prose(todo.content)}
                        </li>
                    ))}
                </ol>
            )}
        </section>
    );
}
