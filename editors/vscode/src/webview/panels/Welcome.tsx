// What is shown where nothing was said yet: what is missing to begin, or what one could begin with.
//
// Rule: everything shown here was found: the models that the server lists, the file that the editor shows. No account, no
// advertisement.

import { useApp, useSelect, useSession } from "../app/context.ts";
import { put } from "../app/drafts.ts";
import { configure } from "../app/modes.ts";
import { exactLine, prose } from "../text.ts";
import { Icon } from "./Icon.tsx";
import { Words } from "./Words.tsx";

export function Welcome() {
    const connection = useSelect((state) => state.host?.connection);
    const models = useSelect((state) => state.models);
    const loading = useSelect((state) => state.loading);
    const name = useSession((view) => view.model);
    if (connection?.state === "stopped" && connection.setup)
        return <NoServer reason={connection.reason} hint={connection.hint} />;
    if (loading) return <p class="hint centered">Loading the session…</p>;
    const active = models?.models.find((model) => model.active);
    const chosen = models?.models.find((model) => model.name === (name ?? active?.name));
    if (models && (!chosen || chosen.problem)) return <NoModel />;
    return <Ideas />;
}

function NoServer({ reason, hint }: { reason: string; hint: string }) {
    const app = useApp();
    return (
        <section class="welcome" aria-label="Setup">
            <h2>The server is missing</h2>
            <p>
                <Words text={prose(reason)} />
            </p>
            <p class="hint">
                <Words text={prose(hint)} />
            </p>
            <div class="actions">
                <button
                    type="button"
                    class="primary"
                    onClick={() =>
                        void app.attempt(() => app.host.act("openSettings", { query: "kode.server" }))
                    }
                >
                    Settings
                </button>
                <button
                    type="button"
                    class="secondary"
                    onClick={() => void app.attempt(() => app.host.act("restart", {}))}
                >
                    Try again
                </button>
                <button
                    type="button"
                    class="quiet"
                    onClick={() => void app.attempt(() => app.host.act("openWalkthrough", {}))}
                >
                    First steps
                </button>
            </div>
        </section>
    );
}

function NoModel() {
    const app = useApp();
    const models = useSelect((state) => state.models?.models) ?? [];
    return (
        <section class="welcome" aria-label="Setup">
            <h2>No model can be asked yet</h2>
            <ul class="setup-list">
                {models.map((model) => (
                    <li key={model.name}>
                        <Icon name={model.problem ? "warning" : "check"} />
                        <div>
                            <p>
                                <strong>
                                    <bdi>{exactLine(model.name)}</bdi>
                                </strong>{" "}
                                <Words
                                    text={
                                        model.problem
                                            ? prose(model.problem.message)
                                            : `can be asked at ${exactLine(model.host ?? model.provider)}.`
                                    }
                                />
                            </p>
                            {model.problem ? (
                                <p class="hint">
                                    <Words text={prose(model.problem.hint)} />
                                </p>
                            ) : (
                                <button
                                    type="button"
                                    class="secondary"
                                    onClick={() => configure(app, { model: model.name })}
                                >
                                    Use <bdi>{exactLine(model.name)}</bdi>
                                </button>
                            )}
                        </div>
                    </li>
                ))}
            </ul>
            <div class="actions">
                <button
                    type="button"
                    class="primary"
                    onClick={() => void app.attempt(() => app.host.act("openWalkthrough", {}))}
                >
                    First steps
                </button>
                <button
                    type="button"
                    class="secondary"
                    onClick={() => void app.attempt(() => app.host.act("doctor", {}))}
                >
                    What is missing?
                </button>
                <button
                    type="button"
                    class="quiet"
                    onClick={() => void app.attempt(() => app.host.act("restart", {}))}
                >
                    Look again
                </button>
            </div>
        </section>
    );
}

function Ideas() {
    const app = useApp();
    const editor = useSelect((state) => state.host?.editor);
    const folder = useSelect((state) => state.host?.folders[0]?.name);
    const file = editor ? exactLine(editor.path) : undefined;
    const ideas = [
        `Explain how ${folder ? exactLine(folder) : "this project"} is built, with the files that matter most`,
        file
            ? `Look for mistakes in @${file} and fix what you find`
            : "Look for mistakes in what I have changed: @diff",
        file ? `Write tests for @${file}` : "Find what is not tested and write tests for it",
    ];
    const take = (idea: string) => {
        put(app, { text: idea });
        app.focus.get("prompt")?.();
    };
    return (
        <section class="welcome" aria-label="Begin">
            <h2>What shall we do?</h2>
            <ul class="ideas">
                {ideas.map((idea) => (
                    <li key={idea}>
                        <button type="button" class="idea" onClick={() => take(idea)}>
                            <bdi>{idea}</bdi>
                            <Icon name="chevron" />
                        </button>
                    </li>
                ))}
            </ul>
            <p class="hint">
                It asks before it acts, as the mode below says. Every change is listed here and can be kept or
                undone.
            </p>
        </section>
    );
}
