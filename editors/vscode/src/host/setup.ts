// The steps from a provider to a model that has answered, in the editor's own fields.
//
// Rule: nothing is kept here. A key leaves this file only in the request of its trial and in the result; each step can be
// given up, and a failed trial says why and leads back to the parts that can be changed.

import type { ServedModel, SetupChoice, SetupKey, SetupProvider, SetupTrialResult } from "kode-protocol";
import * as vscode from "vscode";

import { keyProblem, keyUse, servedFacts } from "../logic/providers.ts";
import { plain } from "../logic/words.ts";
import type { Server } from "./server.ts";

/** The answers to a failed trial that lead back to the key. */
const AGAIN = "Enter the Key Again";
const ENTER = "Enter a Key";

/** A choice whose model has answered, or that the user keeps all the same. */
export interface Tried {
    readonly key: SetupKey;
    readonly model: string;
    readonly options: Record<string, string>;
}

/** A choice on its way: parts that the user has not given yet are absent. */
interface Draft {
    readonly provider: SetupProvider;
    readonly key: SetupKey | undefined;
    readonly model: string | undefined;
    readonly options: Record<string, string> | undefined;
}

/** Lets the user choose a provider. */
export async function chooseProvider(providers: readonly SetupProvider[]): Promise<SetupProvider | undefined> {
    const items = providers.map((provider) => ({
        label: plain(provider.label),
        description: describe(provider),
        provider,
    }));
    const chosen = await vscode.window.showQuickPick(items, {
        title: "Add a Model",
        placeHolder: "Which provider do you want to use?",
        matchOnDescription: true,
    });
    return chosen?.provider;
}

function describe({ keyIsSet, keyVariable, needsKey, baseUrl }: SetupProvider): string {
    if (keyIsSet) return `${keyVariable} is set`;
    return !needsKey && baseUrl !== undefined ? "on this machine, no key" : "";
}

/** Asks for the missing parts of a choice and tries it; undefined where the user gives up. */
export async function tryModel(
    server: Server,
    provider: SetupProvider,
    begin: SetupChoice,
): Promise<Tried | undefined> {
    let draft: Draft | undefined = { provider, key: begin.key, model: begin.model, options: undefined };
    for (;;) {
        draft = await fill(draft);
        if (!draft) return undefined;
        const { key = { type: "none" }, model, options = {} }: Draft = draft;
        const choice: SetupChoice = { provider: provider.id, key, options, ...(model === undefined ? {} : { model }) };
        const trial = await request(server, provider, choice);
        if (!trial) return undefined;
        if (trial.ok && trial.model !== undefined) {
            const chosen = model ?? (await chooseModel(provider, trial.models ?? [], trial.model));
            return chosen === undefined ? undefined : { key, model: chosen, options };
        }
        const next = await afterFailure(draft, trial);
        if (next === "keep" && model !== undefined) return { key, model, options };
        if (next === undefined || next === "keep") return undefined;
        draft = next;
    }
}

/** Asks for the missing parts. */
async function fill(draft: Draft): Promise<Draft | undefined> {
    const { provider } = draft;
    const options = draft.options ?? (await askFields(provider));
    const key = options && (draft.key ?? (await askForKey(provider)));
    return key && { ...draft, options, key };
}

async function request(server: Server, { label }: SetupProvider, choice: SetupChoice): Promise<SetupTrialResult | undefined> {
    const title = `Asking ${choice.model === undefined ? plain(label) : `${plain(choice.model)} at ${plain(label)}`} for one word…`;
    const location = vscode.ProgressLocation.Notification;
    return vscode.window.withProgress({ location, title, cancellable: true }, async (_, token) => {
        try {
            return await server.setUp("agent/setup/try", choice, token);
        } catch (error) {
            if (token.isCancellationRequested) return undefined;
            throw error;
        }
    });
}

/** Says why a model did not answer; the draft to try next, or whether it is kept untried. */
async function afterFailure(draft: Draft, { problem, models = [] }: SetupTrialResult): Promise<Draft | "keep" | undefined> {
    const { provider, key, model } = draft;
    const asked = [
        ...(keyUse(provider) === "none" ? [] : [key?.type === "value" ? AGAIN : ENTER]),
        "Choose a Model",
        ...(provider.fields?.length ? ["Change the Options"] : []),
        ...(model === undefined ? [] : ["Keep Anyway"]),
    ];
    const message = `${plain(provider.label)} did not answer: ${plain(problem?.message ?? "")} ${plain(problem?.hint ?? "")}`;
    const answer = await vscode.window.showErrorMessage(message.trim(), ...asked);
    switch (answer) {
        case AGAIN:
        case ENTER:
            return { ...draft, key: undefined };
        case "Change the Options":
            return { ...draft, options: undefined };
        case "Choose a Model": {
            const chosen = await chooseModel(provider, models, undefined);
            return chosen === undefined ? undefined : { ...draft, model: chosen };
        }
        case "Keep Anyway":
            return "keep";
        default:
            return undefined;
    }
}

/** Lets the user choose one of the models that a server lists; one that lists none has the model named. */
async function chooseModel(
    provider: SetupProvider,
    models: readonly ServedModel[],
    answered: string | undefined,
): Promise<string | undefined> {
    if (models.length === 0) return answered ?? askModel(provider);
    // The model that answered is the first, so that Enter takes it.
    const ordered = [...models].sort((one, other) => Number(other.name === answered) - Number(one.name === answered));
    const items = ordered.map((model) => ({
        label: plain(model.name),
        description: [model.name === answered ? "answered" : "", ...servedFacts(model)].filter(Boolean).join(" · "),
        name: model.name,
    }));
    const chosen = await vscode.window.showQuickPick(items, {
        title: `Model of ${plain(provider.label)}`,
        placeHolder: "Which model do you want to use?",
        matchOnDescription: true,
        ignoreFocusOut: true,
    });
    return chosen?.name;
}

/** Asks for the further options of a provider; empty ones are left out. */
async function askFields({ label, fields = [] }: SetupProvider): Promise<Record<string, string> | undefined> {
    const options: Record<string, string> = {};
    for (const field of fields) {
        const value = await vscode.window.showInputBox({
            title: `${plain(label)}: ${plain(field.label)}`,
            prompt: field.required ? plain(field.label) : `${plain(field.label)}. May be empty.`,
            placeHolder: field.example ?? "",
            ignoreFocusOut: true,
            validateInput: (text) => (field.required && text.trim() === "" ? "This provider needs it." : undefined),
        });
        if (value === undefined) return undefined;
        if (value.trim() !== "") options[field.name] = value.trim();
    }
    return options;
}

/** Asks for the key of a provider, or whether that of the environment is used. */
async function askForKey(provider: SetupProvider): Promise<SetupKey | undefined> {
    const { keyIsSet, keyVariable = "" } = provider;
    if (keyUse(provider) === "none") return { type: "none" };
    if (keyIsSet) {
        const variable = { label: `Use ${keyVariable}`, description: "of the environment", own: false };
        const own = { label: "Enter a key…", description: "kept in the editor's secret storage", own: true };
        const chosen = await vscode.window.showQuickPick([variable, own], {
            title: `Key of ${plain(provider.label)}`,
            ignoreFocusOut: true,
        });
        if (!chosen) return undefined;
        if (!chosen.own) return { type: "none" };
    }
    const value = await askKey(provider);
    if (value === undefined) return undefined;
    return value === "" ? { type: "none" } : { type: "value", value };
}

/** Asks for a key in a field that hides it; empty where the provider works without one and the user has none. */
async function askKey(provider: SetupProvider): Promise<string | undefined> {
    const { label, keyPage } = provider;
    const isOptional = keyUse(provider) === "optional";
    const box = vscode.window.createInputBox();
    box.title = `Key of ${plain(label)}`;
    box.prompt = `It is kept in the editor's secret storage.${isOptional ? " Leave it empty where no key is needed." : ""}`;
    box.password = true;
    box.ignoreFocusOut = true;
    if (keyPage !== undefined) {
        box.buttons = [{ iconPath: new vscode.ThemeIcon("link-external"), tooltip: `Get a key at ${new URL(keyPage).host}` }];
        box.onDidTriggerButton(() => void vscode.env.openExternal(vscode.Uri.parse(keyPage, true)));
    }
    try {
        return await new Promise<string | undefined>((resolve) => {
            box.onDidChangeValue(() => {
                box.validationMessage = undefined;
            });
            box.onDidAccept(() => {
                const isSkipped = isOptional && box.value.trim() === "";
                const problem = isSkipped ? undefined : keyProblem(box.value);
                if (problem === undefined) resolve(box.value.trim());
                else box.validationMessage = problem;
            });
            box.onDidHide(() => resolve(undefined));
            box.show();
        });
    } finally {
        box.dispose();
    }
}

async function askModel({ label }: SetupProvider): Promise<string | undefined> {
    const model = await vscode.window.showInputBox({
        title: `Model of ${plain(label)}`,
        prompt: `The model's name, as ${plain(label)} writes it.`,
        ignoreFocusOut: true,
        validateInput: (value) => (value.trim() === "" ? "Name a model." : undefined),
    });
    return model?.trim();
}
