// The list of providers and the check of a setup.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { freeName, keyProblem, PROVIDERS, readProfiles, withProfiles, type OwnProfile } from "../logic/providers.ts";

const profile = (name: string, rest: Partial<OwnProfile> = {}): OwnProfile => ({ name, provider: name, main: false, ...rest });

test("every provider that a key can be added for is one of the server's, with the server's variable", () => {
    const file = path.resolve("../../server/engine/model/src/catalog.json");
    const catalog = JSON.parse(readFileSync(file, "utf8")) as { providers: { name: string; apiKeyEnv?: string }[] };
    const known = new Map(catalog.providers.map(({ name, apiKeyEnv }) => [name, apiKeyEnv]));
    const formats = new Set(["anthropic", "openai-responses"]);
    for (const { name, variable } of PROVIDERS) {
        if (formats.has(name)) continue;
        assert.ok(known.has(name), name);
        assert.equal(variable, known.get(name), name);
    }
    assert.deepEqual(
        [...known.keys()].filter((name) => !PROVIDERS.some((provider) => provider.name === name)),
        [],
        "all of the server's are offered",
    );
});

test("a profile goes to the server with its key, and the user's own options come first", () => {
    const profiles = [profile("anthropic", { key: "k1", main: true }), profile("gemini", { model: "m", key: "k2" })];
    assert.deepEqual(withProfiles({ profile: "x" }, profiles), {
        profile: "x",
        models: { anthropic: { provider: "anthropic", apiKey: "k1" }, gemini: { provider: "gemini", apiKey: "k2", model: "m" } },
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
    assert.equal(freeName("openai", [profile("openai"), profile("openai-2")]), "openai-3");
});

test("a key is one word", () => {
    assert.equal(keyProblem(" sk-ant-abc "), undefined);
    for (const text of ["", "   ", "two words", "a\nb", "x".repeat(5_000)]) assert.notEqual(keyProblem(text), undefined);
});
