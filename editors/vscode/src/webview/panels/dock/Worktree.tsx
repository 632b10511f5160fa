// The git worktree of the session.
//
// Rule: one line that says where the session works, with a button that takes its changes over into the workspace.

import { useApp, useSession, useToggle } from "../../app/context.ts";
import { mergeWorktree } from "../../app/turns.ts";
import { exact, exactLine } from "../../text.ts";
import { Icon } from "../Icon.tsx";

export function WorktreePart() {
    const app = useApp();
    const worktree = useSession((view) => view.worktree);
    const [open, toggle] = useToggle("dock:worktree", false);
    if (!worktree) return null;
    return (
        <section class="dock-part worktree" aria-label="Worktree">
            <div class="dock-line">
                <button type="button" class="dock-open" aria-expanded={open} onClick={toggle} title={exact(worktree.path)}>
                    <Icon name="branch" />
                    <span class="dock-title">
                        Worktree
                        <span class="roomy">: {exactLine(worktree.branch)}</span>
                    </span>
                    <span class="card-chevron">
                        <Icon name="chevron" />
                    </span>
                </button>
                <span class="dock-acts">
                    <button
                        type="button"
                        class="secondary"
                        title="Takes its changes over into the workspace, as changes to review"
                        onClick={() => mergeWorktree(app)}
                    >
                        Merge
                    </button>
                </span>
            </div>
            {open && (
                <div class="goal-progress"><dl>
                    <dt>Folder</dt>
                    <dd>
                        <code>{exactLine(worktree.path)}</code>
                    </dd>
                    <dt>Workspace</dt>
                    <dd>
                        <code>{exactLine(worktree.workspace)}</code>
                    </dd>
                    <dt>Begins at</dt>
                    <dd>
                        <code>{exactLine(worktree.base.slice(0, 10))}</code>
                    </dd>
                </dl></div>
            )}
        </section>
    );
}
