// The page of the webview: its policy and its attributes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { html, policy } from "../logic/page.ts";

test("a page may run our script and nothing else", () => {
    const directives = policy("N0nce", "https://cdn").split("; ");
    assert.equal(directives[0], "default-src 'none'");
    assert.ok(directives.includes("script-src 'nonce-N0nce'"));
    assert.ok(directives.includes("style-src 'nonce-N0nce'"));
    assert.ok(directives.includes("connect-src 'none'"));
    assert.doesNotMatch(directives.join(" "), /unsafe|\*|http:/);
});

test("what the webview gives cannot leave its attribute", () => {
    const text = html({ nonce: "n", source: 'x"><script>', script: 's"&', style: "t", title: '"' });
    assert.doesNotMatch(text, /x"><script>/);
    assert.match(text, /src="s&quot;&amp;"/);
    assert.equal(text.match(/<script/g)?.length, 1);
});
