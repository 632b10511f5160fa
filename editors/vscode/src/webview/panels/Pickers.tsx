// The choice of mode, model and thinking effort of the session, and the mark of its sandbox profile.
//
// Rule: the shown values are those of the server's last answer; a choice is shown when the server has taken it.

import type { EffortChoice, Mode, ModelInfo } from "kode-protocol";

import type { FoundModel } from "../../shared/messages.ts";
import { useApp, useSelect, useSession } from "../app/context.ts";
import { configure, modeLabel, MODES } from "../app/modes.ts";
import { addModel, findModels, loadModels, addFound } from "../app/models.ts";
import { exactLine, tokens } from "../text.ts";
import { Icon } from "./Icon.tsx";
import { type Choice, Menu } from "./Menu.tsx";

const EFFORTS: readonly (Choice & { value: EffortChoice })[] = [
    { value: "auto", label: "Default", detail: "From the settings and the model" },
    { value: "low", label: "Low", detail: "Short reasoning" },
    { value: "medium", label: "Medium", detail: "Usual reasoning" },
    { value: "high", label: "High", detail: "Long reasoning" },
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
    const found = useSelect((state) => state.found) ?? [];
    const disabled = useSession((view) => view.following !== undefined) ?? false;
    const current = models?.models.find((model) => (name === undefined ? model.active : model.name === name));
    const shown = exactLine(current ? labelOf(current) : (name ?? "Model"));
    return (
        <Menu
            label={`Model: ${shown}`}
            value={current?.name ?? ""}
            choices={[...(models?.models ?? []).map(choiceOf), ...found.map(foundChoice)]}
            side="up"
            disabled={disabled}
            onOpen={() => {
                void loadModels(app);
                void findModels(app, false);
            }}
            opener={(open) => app.focus.set("model", open)}
            onChoose={(value) => {
                const one = found.find((model) => keyOf(model) === value);
                if (one) addFound(app, one);
                else configure(app, { model: value });
            }}
            footer={
                <button type="button" class="menu-footer" onClick={() => void addModel(app)}>
                    <Icon name="key" /> Add a model…
                </button>
            }
        >
            <bdi>{shown}</bdi>
        </Menu>
    );
}

/** The model's own name; that of the profile where it is another. */
function labelOf({ model, name }: ModelInfo): string {
    return model || name;
}

function choiceOf(model: ModelInfo): Choice {
    const { name, host, provider, contextWindow, prices, problem } = model;
    const parts = [
        name === labelOf(model) ? "" : name,
        host ?? provider,
        contextWindow > 0 ? `${tokens(contextWindow)} tokens` : "",
        prices ? `$${prices.input} in, $${prices.output} out per million` : "",
    ];
    return {
        value: name,
        label: exactLine(labelOf(model)),
        detail: exactLine(problem ? problem.message : parts.filter(Boolean).join(" · ")),
        disabled: problem !== undefined,
    };
}

/** A value that no profile has: names of profiles have no spaces. */
function keyOf({ provider, model = "" }: FoundModel): string {
    return `${provider} ${model}`;
}

function foundChoice(found: FoundModel): Choice {
    return {
        value: keyOf(found),
        label: exactLine(found.model ?? found.label),
        detail: exactLine(`${found.label} · ${found.detail}`),
    };
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
    const label = EFFORTS.find(({ value }) => value === effort)?.label ?? effort;
    return (
        <Menu
            label={`Thinking: ${label}`}
            value={effort}
            choices={EFFORTS}
            side="up"
            onChoose={(value) => configure(app, { effort: value as EffortChoice })}
        >
            <Icon name="think" />
            {effort !== "auto" && <span class="menu-word roomy">{label}</span>}
        </Menu>
    );
}

/** The sandbox profile of the session, while it is not that of the settings; choosing goes back to that. */
export function SandboxMark() {
    const app = useApp();
    const profile = useSession((view) => view.sandbox);
    if (profile === undefined) return null;
    return (
        <Menu
            label={`Sandbox: ${profile}`}
            value={profile}
            choices={[
                { value: profile, label: exactLine(profile), detail: "The sandbox profile of this session" },
                { value: "default", label: "Default", detail: "As the settings say" },
            ]}
            side="up"
            onChoose={(value) => configure(app, { sandbox: value })}
        >
            <Icon name="shield" />
            <span class="menu-word roomy">{exactLine(profile)}</span>
        </Menu>
    );
}
