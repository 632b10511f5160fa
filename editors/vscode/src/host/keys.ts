// Models that the user adds in the editor: a provider, a key, a trial request.
//
// Rule: a key is kept in the editor's secret storage and handed to the server in `initialize` and for its trial; it is in no
// setting, no log and no message of a page. A server that runs is restarted to take it. A profile without a key is kept in the
// user's settings by the server, which uses it at once.

import type { SetupChoice, SetupProvider } from "kode-protocol";
import * as vscode from "vscode";

import { foundModels, freeName, MOST_PROFILES, readProfiles, type OwnProfile } from "../logic/providers.ts";
import { messageOf, plain } from "../logic/words.ts";
import type { FoundModel } from "../shared/messages.ts";
import { chooseProvider, tryModel, type Tried } from "./setup.ts";
import type { Server } from "./server.ts";

/** Where the profiles are kept, keys included. */
const KEPT = "kode.profiles";

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

    /** Asks for a provider, its options and key, tries a model of it, and adds it; returns whether one was added. */
    async add(): Promise<boolean> {
        const { providers } = await this.server.setUp("agent/setup/providers", {});
        const provider = await chooseProvider(providers);
        if (!provider) return false;
        const tried = await tryModel(this.server, provider, { provider: provider.id });
        return tried !== undefined && (await this.keep(provider, tried)) !== undefined;
    }

    /** Adds a model that was found; returns the name of its profile, or undefined where it was not added. */
    async use(found: FoundModel): Promise<string | undefined> {
        const { providers } = await this.server.setUp("agent/setup/providers", {});
        const provider = providers.find(({ id }) => id === found.provider);
        if (!provider) throw new Error(`There is no provider \`${plain(found.provider)}\`.`);
        const choice: SetupChoice = { provider: provider.id, key: { type: "none" } };
        if (found.model !== undefined) choice.model = found.model;
        const tried = await tryModel(this.server, provider, choice);
        return tried && this.keep(provider, tried);
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

    /** Keys in the environment of the server and models on its machine that no profile uses yet. */
    async find(fresh: boolean): Promise<FoundModel[]> {
        const [{ providers }, { servers }] = await Promise.all([
            this.server.setUp("agent/setup/providers", {}),
            this.server.setUp("agent/models/discover", { fresh }),
        ]);
        return foundModels(providers, servers);
    }

    /** Keeps a profile; returns its name. */
    private async keep(provider: SetupProvider, { key, model, options }: Tried): Promise<string | undefined> {
        const { models, usable } = await this.server.request("agent/models/list", {});
        const profiles = await this.profiles();
        const name = freeName(provider.id, [...models, ...profiles].map((one) => one.name));
        const main = !usable;
        if (key.type !== "value") {
            const choice: SetupChoice = { provider: provider.id, key, model, options };
            return (await this.server.setUp("agent/setup/save", { choice, name, main })).profile;
        }
        const profile: OwnProfile = { name, provider: provider.id, key: key.value, model, options, main };
        await this.store([...profiles, profile].slice(-MOST_PROFILES));
        return name;
    }

    private async store(profiles: readonly OwnProfile[]): Promise<void> {
        if (profiles.length === 0) await this.secrets.delete(KEPT);
        else await this.secrets.store(KEPT, JSON.stringify(profiles));
        await this.server.restart();
    }
}

