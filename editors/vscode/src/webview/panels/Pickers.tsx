// Mode, model and effort of the session.
//
// Rule: what is in force is what the server said last; a choice is asked of it and shows when it is.

import type { ConfigureSessionParams, EffortChoice, Mode } from "kode-protocol";

import type { App } from "../app/app.ts";
import { useApp, useSelect, useSession } from "../app/context.ts";
import { ensureSession } from "../app/sessions.ts";
import { exactLine, tokens } from "../text.ts";
import { type Choice, Menu } from "./Menu.tsx";

const MODES: readonly (Choice & { value: Mode })[] = [
    { value: "default", label: "Ask", detail: "Reads; asks before edits and commands" },
    { value: "acceptEdits", label: "Edit", detail: "Edits in the workspace unasked; asks before commands" },
    { value: "plan", label: "Plan", detail: "Looks and plans; changes nothing" },
    { value: "readonly", label: "Read only", detail: "Edits nothing; asks before commands" },
    { value: "approval", label: "Ask for all", detail: "Asks before everything, reads too" },
    { value: "dontAsk", label: "Never ask", detail: "Runs what rules allow; refuses the rest" },
    {
        value: "bypassPermissions",
        label: "Bypass",
        detail: "Runs everything that no rule or guard holds back",
    },
];

const EFFORTS: readonly (Choice & { value: EffortChoice })[] = [
    { value: "auto", label: "Auto", detail: "As the model's profile and the settings say" },
    { value: "low", label: "Low", detail: "Thinks little" },
    { value: "medium", label: "Medium", detail: "Thinks as usual" },
    { value: "high", label: "High", detail: "Thinks much" },
];

export function ModePicker() {
    const app = useApp();
    const mode = useSession((view) => view.mode) ?? "default";
    const disabled = useSession((view) => view.following !== undefined) ?? false;
    const label = MODES.find((choice) => choice.value === mode)?.label ?? mode;
    return (
        <Menu
            label={`Mode: ${label}`}
            value={mode}
            choices={MODES}
            side="up"
            disabled={disabled}
            opener={(open) => app.focus.set("mode", open)}
            onChoose={(value) => configure(app, { mode: value as Mode })}
        >
            <span class={`mode mode-${mode}`}>{label}</span>
        </Menu>
    );
}

export function ModelPicker() {
    const app = useApp();
    const name = useSession((view) => view.model);
    const models = useSelect((state) => state.models);
    const disabled = useSession((view) => view.following !== undefined) ?? false;
    const current = name ?? models?.models.find((model) => model.active)?.name ?? "";
    const choices = (models?.models ?? []).map((model): Choice => ({
        value: model.name,
        label: exactLine(model.name),
        detail: model.problem
            ? exactLine(model.problem.message)
            : exactLine(
                  [
                      model.model,
                      model.host ?? model.provider,
                      model.contextWindow > 0 ? tokens(model.contextWindow) : "",
                  ]
                      .filter(Boolean)
                      .join(" · "),
              ),
        disabled: model.problem !== undefined,
    }));
    return (
        <Menu
            label={`Model: ${exactLine(current)}`}
            value={current}
            choices={choices}
            side="up"
            disabled={disabled}
            onOpen={() => void loadModels(app)}
            opener={(open) => app.focus.set("model", open)}
            onChoose={(value) => configure(app, { model: value })}
        >
            <bdi>{exactLine(current) || "Model"}</bdi>
        </Menu>
    );
}

export function EffortPicker() {
    const app = useApp();
    const effort = useSession((view) => view.effort) ?? "auto";
    const model = useSession((view) => view.model);
    const thinks = useSelect((state) => {
        const found = state.models?.models.find((known) =>
            model === undefined ? known.active : known.name === model,
        );
        return found?.capabilities?.thinking ?? false;
    });
    if (!thinks) return null;
    return (
        <Menu
            label={`Effort: ${effort}`}
            value={effort}
            choices={EFFORTS}
            side="up"
            onChoose={(value) => configure(app, { effort: value as EffortChoice })}
        >
            <span>{EFFORTS.find((choice) => choice.value === effort)?.label}</span>
        </Menu>
    );
}

/** Gets the list of models. */
export function loadModels(app: App): Promise<boolean> {
    return app.attempt(async () => app.set({ models: await app.host.request("agent/models/list", {}) }));
}

/** Has mode, model or effort be another one from now on, in a session that begins now if there is none. */
export function configure(app: App, change: Omit<ConfigureSessionParams, "sessionId">): void {
    void app.attempt(async () => {
        const { mode, model } = change;
        const how = { ...(mode === undefined ? {} : { mode }), ...(model === undefined ? {} : { model }) };
        const sessionId = await ensureSession(app, how);
        const now = await app.host.request("agent/session/configure", { sessionId, ...change });
        app.changeSession(sessionId, (view) => ({
            ...view,
            mode: now.mode,
            model: now.model.name,
            effort: now.effort,
            outputStyle: now.outputStyle,
        }));
    });
}
