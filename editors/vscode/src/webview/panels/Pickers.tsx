// Mode, model and effort of the session.
//
// Rule: what is in force is what the server said last; a choice is asked of it and shows when it is.

import type { EffortChoice, Mode } from "kode-protocol";

import type { App } from "../app/app.ts";
import { useApp, useSelect, useSession } from "../app/context.ts";
import { configure, modeLabel, MODES } from "../app/modes.ts";
import { exactLine, tokens } from "../text.ts";
import { type Choice, Menu } from "./Menu.tsx";

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
    const label = modeLabel(mode);
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
