// What stands over the conversation when something about the server or the workspace is not as usual.
//
// Rule: the prompt stays usable whatever the banner says; each says what happened and has the one button that helps.

import { useEffect, useState } from "preact/hooks";

import { useApp, useSelect, useSession } from "../app/context.ts";
import { counted, exactLine, prose } from "../text.ts";
import { Icon, Spinner } from "./Icon.tsx";
import { Words } from "./Words.tsx";

export function Banners() {
    const connection = useSelect((state) => state.host?.connection);
    const trusted = useSelect((state) => state.host?.trusted ?? true);
    return (
        <section aria-label="State of the server and the workspace">
            {connection && <ConnectionBanner />}
            {!trusted && (
                <div class="banner warning" role="note">
                    <Icon name="shield" />
                    <p>
                        You have not trusted this workspace. What its files allow or configure does not count,
                        and nothing runs from it.
                    </p>
                </div>
            )}
            <TrustBanner />
        </section>
    );
}

/** Says that files of the workspace ask for something that waits for the user. */
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
                Files of this workspace ask for {exactLine(trust.summary ?? "") || counted(trust.count, "setting")}.
                None of it counts until you approve it.
            </p>
            <button
                type="button"
                class="secondary"
                onClick={() => app.set({ pane: "rules", listOpen: false })}
            >
                Show
            </button>
            <button type="button" class="quiet" onClick={later}>
                Close
            </button>
        </div>
    );
}

function ConnectionBanner() {
    const app = useApp();
    const connection = useSelect((state) => state.host?.connection);
    const restart = () => void app.attempt(() => app.host.act("restart", {}));
    const logs = () => void app.attempt(() => app.host.act("showLogs", {}));
    switch (connection?.state) {
        case "starting":
            return (
                <div class="banner" role="note">
                    <Spinner />
                    <p>The server is being started.</p>
                </div>
            );
        case "crashed":
            return (
                <div class="banner error" role="note">
                    <Icon name="warning" />
                    <p>
                        <Words text={prose(connection.reason)} /> <Countdown milliseconds={connection.restartInMs} />
                    </p>
                    <button type="button" class="secondary" onClick={restart}>
                        Restart now
                    </button>
                    <button type="button" class="quiet" onClick={logs}>
                        Logs
                    </button>
                </div>
            );
        case "stopped":
            return connection.setup ? null : (
                <div class="banner error" role="note">
                    <Icon name="warning" />
                    <p>
                        The server does not run: <Words text={prose(connection.reason)} />{" "}
                        <span class="hint">
                            <Words text={prose(connection.hint)} />
                        </span>
                    </p>
                    <button type="button" class="secondary" onClick={restart}>
                        Restart
                    </button>
                    <button type="button" class="quiet" onClick={logs}>
                        Logs
                    </button>
                </div>
            );
        default:
            return null;
    }
}

function Countdown({ milliseconds }: { milliseconds: number }) {
    const [end] = useState(() => Date.now() + milliseconds);
    const [left, setLeft] = useState(milliseconds);
    useEffect(() => {
        const timer = setInterval(() => setLeft(Math.max(0, end - Date.now())), 500);
        return () => clearInterval(timer);
    }, [end]);
    return <span>It is started again in {Math.ceil(left / 1_000)} s.</span>;
}
