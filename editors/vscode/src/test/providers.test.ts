// Profiles of the editor, models that are offered, and the check of a key.
//
// Rule: the lists of the server are written here as it sends them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { foundModels, freeName, keyProblem, keyUse, readProfiles, withProfiles, type OwnProfile } from "../logic/providers.ts";

const profile = (name: string, rest: Partial<OwnProfile> = {}): OwnProfile => ({ name, provider: name, main: false, ...rest });

const ollama = { id: "ollama", label: "Ollama", baseUrl: "http://localhost:11434/v1", needsKey: false };
const gemini = { id: "gemini", label: "Gemini", baseUrl: "https://example.com", needsKey: true, keyVariable: "GEMINI_API_KEY" };

test("a key of the environment is offered until a profile uses its provider", () => {
    const found = { provider: "gemini", label: "Gemini", detail: "GEMINI_API_KEY is set" };
    assert.deepEqual(foundModels([ollama, { ...gemini, keyIsSet: true }], []), [found]);
    assert.deepEqual(foundModels([gemini, { ...gemini, keyIsSet: true, inUse: true }], []), []);
});

test("a model of this machine is offered with its limits until a profile names it", () => {
    const models = [
        { name: "qwen3:8b", contextWindow: 40_960, tools: true, loaded: true },
        { name: "embed", tools: false },
        { name: "used", profile: "ollama" },
    ];
    const found = foundModels([], [{ provider: "ollama", label: "Ollama", baseUrl: ollama.baseUrl, models }]);
    assert.deepEqual(
        found.map(({ model, detail }) => [model, detail]),
        [
            ["qwen3:8b", "localhost:11434 · 40,960 tokens · loaded"],
            ["embed", "localhost:11434 · no tools"],
        ],
    );
});

test("a key is asked for where the provider needs one, and may be left out where a server may want none", () => {
    assert.equal(keyUse(gemini), "required");
    assert.equal(keyUse(ollama), "none");
    assert.equal(keyUse({ id: "openai-compatible", label: "Own", needsKey: false }), "optional");
});

test("a profile goes to the server with its key, and the user's own options come first", () => {
    const profiles = [profile("anthropic", { key: "k1", main: true }), profile("gemini", { model: "m", key: "k2", options: { region: "r" } })];
    assert.deepEqual(withProfiles({ profile: "x" }, profiles), {
        profile: "x",
        models: {
            anthropic: { provider: "anthropic", apiKey: "k1" },
            gemini: { provider: "gemini", apiKey: "k2", model: "m", region: "r" },
        },
        pointers: { main: "anthropic" },
    });
    const set = { models: { anthropic: { model: "own" } }, pointers: { main: "other" } };
    assert.deepEqual(withProfiles(set, profiles)["pointers"], { main: "other" });
    assert.deepEqual((withProfiles(set, profiles)["models"] as Record<string, unknown>)["anthropic"], { model: "own" });
    assert.equal(withProfiles(set, []), set);
});

test("the profile that was added last as the main one is the main one", () => {
    const profiles = [profile("a", { main: true }), profile("b", { main: true }), profile("c")];
    assert.deepEqual(withProfiles({}, profiles)["pointers"], { main: "b" });
});

test("what was kept by something else is no profile", () => {
    for (const text of [undefined, "", "{", "{}", "[1, null, {}]"]) assert.deepEqual(readProfiles(text), []);
    assert.deepEqual(readProfiles(JSON.stringify([profile("a")])), [profile("a")]);
});

test("a second profile of a provider has a name of its own", () => {
    assert.equal(freeName("openai", []), "openai");
    assert.equal(freeName("openai", ["openai", "openai-2"]), "openai-3");
});

test("a key is one word", () => {
    assert.equal(keyProblem(" sk-ant-abc "), undefined);
    for (const text of ["", "   ", "two words", "a\nb", "x".repeat(5_000)]) assert.notEqual(keyProblem(text), undefined);
});
