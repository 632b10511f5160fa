// The models of the server, and models that could be added.
//
// Rule: the lists are those of the host's last answer. Nothing is searched for before the user opens a list of models, and a search
// that fails says so and leaves the lists as they are.

import type { FoundModel } from "../../shared/messages.ts";
import type { App } from "./app.ts";
import { configure } from "./modes.ts";

/** Gets the list of models. */
export function loadModels(app: App): Promise<boolean> {
    return app.attempt(async () => app.set({ models: await app.host.request("agent/models/list", {}) }));
}

/** Looks for keys in the environment and servers on this machine; `fresh` also where they answered a moment ago. */
export async function findModels(app: App, fresh: boolean): Promise<void> {
    const done = await app.attempt(async () => app.set({ found: (await app.host.act("findModels", { fresh })).found }));
    if (!done) app.set({ found: app.state.found ?? [] });
}

/** Adds a model by the editor's own fields. */
export async function addModel(app: App): Promise<void> {
    await app.attempt(() => app.host.act("addKey", {}));
    await loadModels(app);
}

/** Makes a profile of a model that was found, and has the session use it. */
export function addFound(app: App, found: FoundModel): void {
    void app.attempt(async () => {
        const { profile } = await app.host.act("useModel", found);
        if (profile === undefined) return;
        await loadModels(app);
        await findModels(app, false);
        configure(app, { model: profile });
    });
}
