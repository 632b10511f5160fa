// The first screen of a session: the missing parts, or suggestions.
//
// Rule: each model, key, file and session on it was found; nothing is invented.

import type { ModelInfo } from "kode-protocol";
import { useEffect } from "preact/hooks";

import type { App } from "../app/app.ts";
import { useApp, useSelect, useSession } from "../app/context.ts";
import { put } from "../app/drafts.ts";
import { openList, refreshList } from "../app/list.ts";
import { addModel, findModels, addFound } from "../app/models.ts";
import { configure } from "../app/modes.ts";
import { exactLine, prose } from "../text.ts";
import { Icon, Spinner } from "./Icon.tsx";
import { Mark } from "./Mark.tsx";
import { SessionLink } from "./SessionLink.tsx";
import { Words } from "./Words.tsx";

/** The most sessions that are listed. */
const MOST_RECENT = 4;

export function Welcome() {
    const connection = useSelect((state) => state.host?.connection);
    const models = useSelect((state) => state.models);
    const loading = useSelect((state) => state.loading);
    const name = useSession((view) => view.model);
    if (connection?.state === "stopped" && connection.setup) return <NoServer reason={connection.reason} hint={connection.hint} />;
    if (loading) return <p class="hint centered">Loading the session…</p>;
    const active = models?.models.find((model) => model.active);
    const chosen = models?.models.find((model) => model.name === (name ?? active?.name));
    if (models && (!chosen || chosen.problem)) return <NoModel models={models.models} chosen={chosen} />;
    return <Start />;
}

function NoServer({ reason, hint }: { reason: string; hint: string }) {
    const app = useApp();
    return (
        <section class="welcome" aria-label="Setup">
            <Mark />
            <h2>The server did not start</h2>
            <p>
                <Words text={prose(reason)} />
            </p>
            <p class="hint">
                <Words text={prose(hint)} />
            </p>
            <div class="actions">
                <button type="button" class="primary" onClick={() => void app.attempt(() => app.host.act("chooseServer", {}))}>
                    Choose the program…
                </button>
                <button type="button" class="secondary" onClick={() => void app.attempt(() => app.host.act("restart", {}))}>
                    Try again
                </button>
                <button
                    type="button"
                    class="quiet"
                    onClick={() => void app.attempt(() => app.host.act("openSettings", { query: "kode.server" }))}
                >
                    Settings
                </button>
            </div>
        </section>
    );
}

interface NoModelProps {
    models: readonly ModelInfo[];
    /** The model of the session that has a problem; absent without one. */
    chosen: ModelInfo | undefined;
}

function NoModel({ models, chosen }: NoModelProps) {
    const app = useApp();
    const found = useSelect((state) => state.found);
    useEffect(() => void findModels(app, false), [app]);
    const usable = models.filter(({ problem }) => !problem);
    const isEmpty = found?.length === 0;
    return (
        <section class="welcome" aria-label="Setup">
            <Mark />
            <h2>Add a model to begin</h2>
            <p>Paste the key of a provider. It is kept in the editor’s secret storage.</p>
            <div class="actions">
                <button type="button" class="primary" onClick={() => void addModel(app)}>
                    <Icon name="key" /> Add a key…
                </button>
                <button type="button" class="secondary" disabled={!found} onClick={() => void findModels(app, true)}>
                    Search this machine again
                </button>
            </div>
            <h3>Found on this machine</h3>
            {!found && (
                <p class="hint">
                    <Spinner /> Searching…
                </p>
            )}
            {isEmpty && <p class="hint">No key in the environment, and no local server answered.</p>}
            <ul class="setup-list">
                {found?.map((one) => (
                    <Found key={`${one.provider} ${one.model ?? ""}`} name={one.model ?? one.label} detail={`${one.label} · ${one.detail}`}>
                        {() => addFound(app, one)}
                    </Found>
                ))}
                {usable.map(({ name, model, host, provider }) => (
                    <Found key={name} name={name} detail={`${model} · ${host ?? provider}`}>
                        {() => configure(app, { model: name })}
                    </Found>
                ))}
            </ul>
            {chosen?.problem && (
                <p class="hint">
                    <bdi>{exactLine(chosen.name)}</bdi>: <Words text={prose(chosen.problem.message)} />{" "}
                    <Words text={prose(chosen.problem.hint)} />
                </p>
            )}
            <SetupLinks app={app} />
        </section>
    );
}

interface FoundProps {
    name: string;
    detail: string;
    /** Uses it. */
    children: () => void;
}

function Found({ name, detail, children: use }: FoundProps) {
    return (
        <li>
            <div>
                <bdi>{exactLine(name)}</bdi>
                <span class="hint">{exactLine(detail)}</span>
            </div>
            <button type="button" class="secondary" aria-label={`Use ${exactLine(name)}`} onClick={use}>
                Use
            </button>
        </li>
    );
}

function SetupLinks({ app }: { app: App }) {
    return (
        <div class="actions">
            <button type="button" class="quiet" onClick={() => void app.attempt(() => app.host.act("openWalkthrough", {}))}>
                First steps
            </button>
            <button type="button" class="quiet" onClick={() => void app.attempt(() => app.host.act("doctor", {}))}>
                Run the doctor
            </button>
            <button type="button" class="quiet" onClick={() => void app.attempt(() => app.host.act("restart", {}))}>
                Restart the server
            </button>
        </div>
    );
}

function Start() {
    return (
        <section class="welcome" aria-label="Begin">
            <Mark />
            <h2>What should Kode do?</h2>
            <Ideas />
            <Recent />
            <p class="keys">
                <span>
                    <kbd>@</kbd> files, symbols, changes
                </span>
                <span>
                    <kbd>/</kbd> commands
                </span>
                <span>
                    <kbd>Shift Tab</kbd> mode
                </span>
            </p>
        </section>
    );
}

function Ideas() {
    const app = useApp();
    const editor = useSelect((state) => state.host?.editor);
    const folder = useSelect((state) => state.host?.folders[0]?.name);
    const file = editor ? exactLine(editor.path) : undefined;
    const ideas = [
        `Explain how ${folder ? exactLine(folder) : "this project"} is structured`,
        file ? `Find and fix bugs in @${file}` : "Find bugs in my changes: @diff",
        file ? `Write tests for @${file}` : "Find code without tests and write them",
    ];
    const take = (idea: string) => {
        put(app, { text: idea });
        app.focus.get("prompt")?.();
    };
    return (
        <ul class="ideas">
            {ideas.map((idea) => (
                <li key={idea}>
                    <button type="button" class="idea" onClick={() => take(idea)}>
                        <bdi>{idea}</bdi>
                    </button>
                </li>
            ))}
        </ul>
    );
}

/** The sessions something last happened in. */
function Recent() {
    const app = useApp();
    const sessions = useSelect((state) => state.list.sessions);
    const active = useSelect((state) => state.active);
    const isReady = useSelect((state) => state.host?.connection.state === "ready");
    useEffect(() => {
        if (isReady) void refreshList(app);
    }, [app, isReady]);
    const recent = sessions.filter((one) => one.sessionId !== active && !one.archived && one.title !== "");
    if (recent.length === 0) return null;
    return (
        <>
            <h3>Recent sessions</h3>
            <ul class="session-list">
                {recent.slice(0, MOST_RECENT).map((session) => (
                    <li key={session.sessionId} class="session">
                        <SessionLink session={session} />
                    </li>
                ))}
            </ul>
            <button type="button" class="quiet" onClick={() => openList(app)}>
                All sessions
            </button>
        </>
    );
}
