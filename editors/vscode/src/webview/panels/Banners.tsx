// Banners above the conversation: the state of the server and the trust in the workspace.
//
// Rule: the prompt stays usable under each. A banner says what happened and has the button that helps.

import { useEffect, useState } from "preact/hooks";

import { useApp, useSelect, useSession } from "../app/context.ts";
import { counted, exactLine, prose } from "../text.ts";
import { Icon, Spinner } from "./Icon.tsx";
import { Words } from "./Words.tsx";

export function Banners() {
    const connection = useSelect((state) => state.host?.connection);
    return (
        <section aria-label="Server and workspace">
            {connection && <ConnectionBanner />}
            <WorkspaceBanner />
            <TrustBanner />
        </section>
    );
}

/** Shown in a workspace that the user has not trusted. */
function WorkspaceBanner() {
    const app = useApp();
    const trusted = useSelect((state) => state.host?.trusted ?? true);
    if (trusted) return null;
    return (
        <div class="banner warning" role="note">
            <Icon name="shield" />
            <p>Restricted mode: rules, hooks and servers of this workspace are ignored, and none of its programs run.</p>
            <button type="button" class="secondary" onClick={() => void app.attempt(() => app.host.act("manageTrust", {}))}>
                Manage trust
            </button>
        </div>
    );
}

/** Shown while entries in files of the workspace wait for approval. */
function TrustBanner() {
    const app = useApp();
    const trust = useSession((view) => view.trust);
    const pane = useSelect((state) => state.pane);
    if (!trust || trust.count === 0 || pane === "rules") return null;
    const later = () => app.changeSession(app.session().sessionId, (view) => ({ ...view, trust: undefined }));
    return (
        <div class="banner warning trust-banner" role="note">
            <Icon name="shield" />
            <p>
                Files of this workspace set {exactLine(trust.summary ?? "") || counted(trust.count, "setting")}. Ignored
                until you approve.
            </p>
            <button type="button" class="secondary" onClick={() => app.set({ pane: "rules", listOpen: false })}>
                Review
            </button>
            <button type="button" class="quiet" onClick={later}>
                Not now
            </button>
        </div>
    );
}

function ConnectionBanner() {
    const connection = useSelect((state) => state.host?.connection);
    switch (connection?.state) {
        case "starting":
            return (
                <div class="banner" role="note">
                    <Spinner />
                    <p>Starting the server…</p>
                </div>
            );
        case "crashed":
            return (
                <div class="banner error" role="note">
                    <Icon name="warning" />
                    <p>
                        <Words text={prose(connection.reason)} /> <Countdown milliseconds={connection.restartInMs} />
                    </p>
                    <ServerActs label="Restart now" />
                </div>
            );
        case "stopped":
            return connection.setup ? null : (
                <div class="banner error" role="note">
                    <Icon name="warning" />
                    <p>
                        The server stopped: <Words text={prose(connection.reason)} />{" "}
                        <span class="hint">
                            <Words text={prose(connection.hint)} />
                        </span>
                    </p>
                    <ServerActs label="Restart" />
                </div>
            );
        default:
            return null;
    }
}

function ServerActs({ label }: { label: string }) {
    const app = useApp();
    return (
        <>
            <button type="button" class="secondary" onClick={() => void app.attempt(() => app.host.act("restart", {}))}>
                {label}
            </button>
            <button type="button" class="quiet" onClick={() => void app.attempt(() => app.host.act("showLogs", {}))}>
                Logs
            </button>
        </>
    );
}

function Countdown({ milliseconds }: { milliseconds: number }) {
    const [end] = useState(() => Date.now() + milliseconds);
    const [left, setLeft] = useState(milliseconds);
    useEffect(() => {
        const timer = setInterval(() => setLeft(Math.max(0, end - Date.now())), 500);
        return () => clearInterval(timer);
    }, [end]);
    return <span>Restarting in {Math.ceil(left / 1_000)} s…</span>;
}
