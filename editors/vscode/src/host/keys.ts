// Keys and local servers that the user has added in the editor.
//
// Rule: a key is kept in the editor's secret storage and handed to the server in `initialize`; it is in no setting, no log and no
// message of a page. A server that runs is restarted to take it.

import * as vscode from "vscode";
import {
    freeName,
    keyProblem,
    MOST_PROFILES,
    PROVIDERS,
    readProfiles,
    type KnownProvider,
    type OwnProfile,
} from "../logic/providers.ts";
import { messageOf, plain } from "../logic/words.ts";
import type { FoundModel } from "../shared/messages.ts";
import type { Server } from "./server.ts";

/** Where the profiles are kept, keys included. */
const KEPT = "kode.profiles";

/** How long a server on this machine may take to answer. */
const LOCAL_LIMIT_MS = 700;

/** The most models of a local server that are offered. */
const MOST_LOCAL = 20;

/** The user's own profiles. */
export class Keys {
    constructor(
        private readonly secrets: vscode.SecretStorage,
        private readonly server: Server,
        private readonly log: vscode.LogOutputChannel,
    ) {
        server.profiles = () => this.profiles();
    }

    /** The profiles, keys included: for the server alone. */
    async profiles(): Promise<OwnProfile[]> {
        try {
            return readProfiles(await this.secrets.get(KEPT));
        } catch (error) {
            this.log.warn(`the secret storage could not be read: ${messageOf(error)}`);
            return [];
        }
    }

    /** Asks for a key and adds it; returns whether one was added. */
    async add(): Promise<boolean> {
        const provider = await chooseProvider();
        if (!provider) return false;
        const key = provider.variable === undefined ? undefined : await askKey(provider);
        if (provider.variable !== undefined && key === undefined) return false;
        const model = provider.hasDefault === true ? undefined : await askModel(provider);
        if (provider.hasDefault !== true && model === undefined) return false;
        await this.keep(provider.name, { ...(key === undefined ? {} : { key }), ...(model === undefined ? {} : { model }) });
        return true;
    }

    /** Adds a model that was found on this machine. */
    async use(found: FoundModel): Promise<void> {
        const provider = PROVIDERS.find(({ name }) => name === found.provider);
        if (!provider) throw new Error(`There is no provider \`${plain(found.provider)}\`.`);
        const model = found.model ?? (provider.hasDefault === true ? undefined : await askModel(provider));
        if (model === undefined && provider.hasDefault !== true) return;
        await this.keep(provider.name, model === undefined ? {} : { model });
    }

    /** Shows the profiles, to remove some. */
    async manage(): Promise<void> {
        const profiles = await this.profiles();
        const items = profiles.map(({ name, model, key }) => ({
            label: name,
            description: [model ?? "", key === undefined ? "" : `key …${key.slice(-4)}`].filter(Boolean).join(" · "),
            name,
        }));
        const add = { label: "$(add) Add a Key…", description: "", name: "" };
        const chosen = await vscode.window.showQuickPick([...items, add], {
            title: "Keys in the Editor's Secret Storage",
            placeHolder: items.length === 0 ? "No keys yet." : "Choose one to remove it.",
        });
        if (!chosen) return;
        if (chosen.name === "") {
            await this.add();
            return;
        }
        const remove = "Remove";
        const detail = "The server restarts without it.";
        if ((await vscode.window.showWarningMessage(`Remove ${chosen.name}?`, { modal: true, detail }, remove)) !== remove) return;
        await this.store(profiles.filter(({ name }) => name !== chosen.name));
    }

    /** Keys in the environment and servers on this machine that no profile uses yet. */
    async find(): Promise<FoundModel[]> {
        const used = new Set((await this.profiles()).map(({ provider }) => provider));
        const free = PROVIDERS.filter(({ name }) => !used.has(name));
        const ofEnvironment = free
            .filter(({ variable, hasDefault }) => variable !== undefined && !hasDefault && (process.env[variable] ?? "") !== "")
            .map(({ name, label, variable }): FoundModel => ({ provider: name, label, detail: `${variable} is set` }));
        const local = await Promise.all(free.map((provider) => modelsOf(provider)));
        return [...ofEnvironment, ...local.flat()];
    }

    private async keep(provider: string, rest: Pick<OwnProfile, "key" | "model">): Promise<void> {
        const profiles = await this.profiles();
        const main = !(await this.hasModel());
        const profile: OwnProfile = { name: freeName(provider, profiles), provider, main, ...rest };
        await this.store([...profiles, profile].slice(-MOST_PROFILES));
    }

    /** Whether conversations have a model without the new one. */
    private async hasModel(): Promise<boolean> {
        try {
            const { models } = await this.server.request("agent/models/list", {});
            return models.some(({ active, problem }) => active && problem === undefined);
        } catch {
            // The server does not run: the new one will be needed.
            return false;
        }
    }

    private async store(profiles: readonly OwnProfile[]): Promise<void> {
        if (profiles.length === 0) await this.secrets.delete(KEPT);
        else await this.secrets.store(KEPT, JSON.stringify(profiles));
        await this.server.restart();
    }
}

async function chooseProvider(): Promise<KnownProvider | undefined> {
    const items = PROVIDERS.map((provider) => ({
        label: provider.label,
        description: provider.variable === undefined ? "on this machine, no key" : "",
        provider,
    }));
    const chosen = await vscode.window.showQuickPick(items, {
        title: "Add a Key (1/2)",
        placeHolder: "Which provider do you want to use?",
        matchOnDescription: true,
    });
    return chosen?.provider;
}

/** Asks for a key in a field that hides it. */
async function askKey({ label, page, sample }: KnownProvider): Promise<string | undefined> {
    const box = vscode.window.createInputBox();
    box.title = "Add a Key (2/2)";
    box.prompt = `The key of ${label}. It is kept in the editor's secret storage.`;
    box.placeholder = sample ?? "";
    box.password = true;
    box.ignoreFocusOut = true;
    if (page !== undefined) {
        box.buttons = [{ iconPath: new vscode.ThemeIcon("link-external"), tooltip: `Get a key at ${new URL(page).host}` }];
        box.onDidTriggerButton(() => void vscode.env.openExternal(vscode.Uri.parse(page, true)));
    }
    try {
        return await new Promise<string | undefined>((resolve) => {
            box.onDidChangeValue(() => {
                box.validationMessage = undefined;
            });
            box.onDidAccept(() => {
                const problem = keyProblem(box.value);
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

async function askModel({ label }: KnownProvider): Promise<string | undefined> {
    const model = await vscode.window.showInputBox({
        title: `Model of ${label}`,
        prompt: `The model's name, as ${label} writes it.`,
        ignoreFocusOut: true,
        validateInput: (value) => (value.trim() === "" ? "Name a model." : undefined),
    });
    return model?.trim();
}

/** The models of a server on this machine; none where none answers. */
async function modelsOf({ name, label, local }: KnownProvider): Promise<FoundModel[]> {
    if (local === undefined) return [];
    try {
        const answer = await fetch(local, { signal: AbortSignal.timeout(LOCAL_LIMIT_MS), redirect: "error" });
        const { data } = (await answer.json()) as { data?: { id?: unknown }[] };
        const ids = (data ?? []).flatMap(({ id }) => (typeof id === "string" ? [id] : []));
        return ids.slice(0, MOST_LOCAL).map((model) => ({ provider: name, label, model, detail: new URL(local).host }));
    } catch {
        // Nothing listens there, or something else does.
        return [];
    }
}
