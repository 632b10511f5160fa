// The profiles that the user has made in the editor, and the words of what can be set up.
//
// Rule: the server's list of providers is the only one. A key is part of a profile and never of a setting, a log or a message.

import type { ModelServer, ServedModel, SetupProvider } from "kode-protocol";

import type { FoundModel } from "../shared/messages.ts";

/** A profile that the user has made in the editor. */
export interface OwnProfile {
    /** Its name, which is the provider's with a number where there are several. */
    readonly name: string;
    readonly provider: string;
    readonly key?: string;
    readonly model?: string;
    /** Further options of the profile by their names in settings, for example `baseUrl`. */
    readonly options?: Readonly<Record<string, string>>;
    /** Whether conversations use it where nothing else can be asked. */
    readonly main: boolean;
}

/** The most profiles that are kept. */
export const MOST_PROFILES = 50;

/** The most models of a local server that are offered. */
const MOST_LOCAL = 20;

/** Reads the stored state; unreadable entries are left out. */
export function readProfiles(text: string | undefined): OwnProfile[] {
    let found: unknown;
    try {
        found = JSON.parse(text ?? "[]");
    } catch {
        // Written by something else: nothing of it is a profile.
        return [];
    }
    return Array.isArray(found) ? found.filter(isProfile).slice(0, MOST_PROFILES) : [];
}

function isProfile(value: unknown): value is OwnProfile {
    const one = value as Partial<OwnProfile> | null;
    return typeof one?.name === "string" && typeof one.provider === "string" && typeof one.main === "boolean";
}

/** A name for a new profile of a provider that none of the taken ones has. */
export function freeName(provider: string, taken: Iterable<string>): string {
    const names = new Set(taken);
    for (let number = 1; ; number += 1) {
        const name = number === 1 ? provider : `${provider}-${number}`;
        if (!names.has(name)) return name;
    }
}

/** The part of `initializationOptions` that the profiles make up; what the user has set there comes first. */
export function withProfiles(options: Record<string, unknown>, profiles: readonly OwnProfile[]): Record<string, unknown> {
    if (profiles.length === 0) return options;
    const own = Object.fromEntries(profiles.map((profile) => [profile.name, optionsOf(profile)]));
    const main = profiles.findLast((profile) => profile.main);
    return {
        ...options,
        models: { ...own, ...(options["models"] as object | undefined) },
        ...(main ? { pointers: { main: main.name, ...(options["pointers"] as object | undefined) } } : {}),
    };
}

function optionsOf({ provider, key, model, options }: OwnProfile): Record<string, unknown> {
    return {
        ...options,
        provider,
        ...(key === undefined ? {} : { apiKey: key }),
        ...(model === undefined ? {} : { model }),
    };
}

/** The problem of a key that was typed; undefined when it has none. */
export function keyProblem(key: string): string | undefined {
    const text = key.trim();
    if (text === "") return "Paste the key.";
    if (/\s/.test(text)) return "A key has no spaces or line breaks.";
    return text.length > 4_096 ? "This is longer than any key." : undefined;
}

/** How a provider takes a key: from the user, from the user if they have one, or not at all. */
export function keyUse({ needsKey, baseUrl }: SetupProvider): "required" | "optional" | "none" {
    if (needsKey) return "required";
    // Servers of this machine have a usual address; clouds and servers of the user's own have none, and may take a key.
    return baseUrl === undefined ? "optional" : "none";
}

/** Keys in the environment and models of this machine that no usable profile has yet. */
export function foundModels(providers: readonly SetupProvider[], servers: readonly ModelServer[]): FoundModel[] {
    const ofEnvironment = providers
        .filter(({ keyIsSet, inUse }) => keyIsSet && !inUse)
        .map(({ id, label, keyVariable = "" }): FoundModel => ({ provider: id, label, detail: `${keyVariable} is set` }));
    const local = servers.flatMap(({ provider, label, baseUrl, models }) =>
        models
            .filter(({ profile }) => profile === undefined)
            .slice(0, MOST_LOCAL)
            .map((model): FoundModel => ({
                provider,
                label,
                model: model.name,
                detail: [hostOf(baseUrl), ...servedFacts(model)].join(" · "),
            })),
    );
    return [...ofEnvironment, ...local];
}

function hostOf(url: string): string {
    return URL.canParse(url) ? new URL(url).host : url;
}

/** The facts that a server reports of a model, for people. */
export function servedFacts({ contextWindow, tools, images, loaded }: ServedModel): string[] {
    return [
        contextWindow === undefined ? "" : `${contextWindow.toLocaleString("en-US")} tokens`,
        tools === false ? "no tools" : "",
        images === true ? "images" : "",
        loaded === true ? "loaded" : "",
    ].filter(Boolean);
}
