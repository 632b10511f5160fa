// The line at the top: which session this is, all sessions, a new one.
//
// Rule: the title is shown exactly; a session that another window writes says so here.

import { useState } from "preact/hooks";

import { useApp, useSelect, useSession } from "../app/context.ts";
import { openList } from "../app/list.ts";
import { adopt, showNewSession } from "../app/sessions.ts";
import { HostError } from "../host.ts";
import { exactLine } from "../text.ts";
import { Icon } from "./Icon.tsx";

export function Header() {
    const app = useApp();
    const title = useSession((view) => view.title) ?? "";
    const active = useSelect((state) => state.active);
    const listOpen = useSelect((state) => state.listOpen);
    const pane = useSelect((state) => state.pane);
    const surface = useSelect((state) => state.host?.surface);
    return (
        <header class="head">
            <button
                type="button"
                class="icon-button"
                title="All sessions"
                aria-label="All sessions"
                aria-expanded={listOpen}
                onClick={() => (listOpen ? app.set({ listOpen: false }) : openList(app))}
            >
                <Icon name="history" />
            </button>
            <h1 class="title">
                <bdi>{exactLine(title) || "New session"}</bdi>
            </h1>
            {surface === "view" && active !== undefined && (
                <button
                    type="button"
                    class="icon-button"
                    title="Open in an editor tab"
                    aria-label="Open in an editor tab"
                    onClick={() =>
                        void app.attempt(() => app.host.act("openInEditor", { sessionId: active }))
                    }
                >
                    <Icon name="file" />
                </button>
            )}
            <button
                type="button"
                class="icon-button"
                title="Rules and trust"
                aria-label="Rules and trust"
                aria-expanded={pane === "rules"}
                onClick={() => app.set({ pane: pane === "rules" ? undefined : "rules", listOpen: false })}
            >
                <Icon name="shield" />
            </button>
            <button
                type="button"
                class="icon-button"
                title="New session"
                aria-label="New session"
                onClick={() => showNewSession(app)}
            >
                <Icon name="add" />
            </button>
        </header>
    );
}

/** Says that another window writes the session, and takes it over. */
export function Followed() {
    const app = useApp();
    const following = useSession((view) => view.following);
    // Whether the other window goes on because a turn or a command runs there: only the user may have that stopped.
    const [declined, setDeclined] = useState(false);
    if (!following) return null;
    const take = (force: boolean) =>
        void app.attempt(async () => {
            const { sessionId } = app.session();
            try {
                adopt(app, await app.host.request("agent/session/takeOver", { sessionId, force }));
                setDeclined(false);
            } catch (error) {
                setDeclined(error instanceof HostError && error.kind === "takeOverDeclined");
                throw error;
            }
        });
    return (
        <section class="banner" aria-label="Another window">
            <Icon name="info" />
            <p>
                {following.by
                    ? `Written by ${exactLine(following.by.client || "another window")} (process ${following.by.pid}). You see what happens there.`
                    : "Nobody writes this session now; your next prompt takes it over."}
            </p>
            {following.by && (
                <button type="button" class="secondary" onClick={() => take(false)}>
                    Take over
                </button>
            )}
            {following.by && declined && (
                <button type="button" class="quiet" onClick={() => take(true)}>
                    Stop it there and take over
                </button>
            )}
        </section>
    );
}
