// Text for people: foreign text, errors, counts and links.

import assert from "node:assert/strict";
import { test } from "node:test";
import { isDocument, isExternal } from "../logic/links.ts";
import { count, plain, told } from "../logic/words.ts";

test("words of others are no links, icons, lines or directions", () => {
    assert.equal(plain("run [x](command:kode.evil)"), "run [x] (command:kode.evil)");
    assert.equal(plain("$(zap) go"), "$ (zap) go");
    assert.equal(plain("a\n\tb\u202ec\u0007d"), "a b c d");
    assert.equal(plain("ä".repeat(300)).length, 240);
});

test("what the server refuses is told with what to do next", () => {
    const refused = (message: string, hint?: string) => Object.assign(new Error(message), { data: { kind: "x", hint } });
    assert.equal(told(refused("it is open elsewhere", "Take it over.")), "it is open elsewhere. Take it over.");
    assert.equal(told(refused("It is open elsewhere.", "[x](command:y)")), "It is open elsewhere. [x] (command:y)");
    const ofProtocol = refused("It is open elsewhere.", "`agent/session/takeOver` makes this editor the one that goes on.");
    assert.equal(told(ofProtocol), "It is open elsewhere.", "methods are for programs");
    assert.deepEqual([refused("no"), new Error("no"), "no", null].map(told), ["no", "no", "no", "null"]);
});

test("things are counted as people do", () => {
    assert.deepEqual([count(1, "change"), count(2, "change")], ["1 change", "2 changes"]);
});

test("only links of the web and of mail leave the editor, and only documents are opened in it", () => {
    assert.deepEqual(["https://a.b", "HTTP://a.b", "mailto:a@b"].map(isExternal), [true, true, true]);
    const hostile = ["javascript:alert(1)", "command:x", "vscode://x", "file:///etc", "data:text/html,x", " https://x", ""];
    assert.deepEqual(hostile.filter(isExternal), []);
    assert.deepEqual(["file:///a", "untitled:U", "kode-baseline:///a?s"].map(isDocument), [true, true, true]);
    assert.deepEqual(["https://a.b", "command:x", "vscode-userdata:/x", "/a"].filter(isDocument), []);
});
