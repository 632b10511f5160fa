// The name of the session for screen readers, and the notice that another window writes it.
//
// Rule: the editor's own title bar shows the name and the buttons; the page repeats neither.

import { useState } from "preact/hooks";

import { useApp, useSession } from "../app/context.ts";
import { adopt } from "../app/sessions.ts";
import { HostError } from "../host.ts";
import { exactLine } from "../text.ts";
import { Icon } from "./Icon.tsx";

export function Heading() {
    const title = useSession((view) => view.title) ?? "";
    return <h1 class="unseen">{exactLine(title) || "New session"}</h1>;
}

/** Shown while another window writes the session, or no window does; takes the session over. */
export function Followed() {
    const app = useApp();
    const following = useSession((view) => view.following);
    // Whether the other window declined because a turn or a command runs there: only the user may stop that.
    const [declined, setDeclined] = useState(false);
    if (!following) return null;
    const { by } = following;
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
            <Icon name="eye" />
            <p>
                {by
                    ? `Open in ${exactLine(by.client || "another window")} (process ${by.pid}${by.host ? ` on ${exactLine(by.host)}` : ""}). You can watch it here.`
                    : "This session is open in no window. Your next prompt opens it here."}
            </p>
            {by && (
                <button type="button" class="secondary" onClick={() => take(false)}>
                    Take over
                </button>
            )}
            {by && declined && (
                <button type="button" class="quiet" onClick={() => take(true)}>
                    Stop it there and take over
                </button>
            )}
        </section>
    );
}
