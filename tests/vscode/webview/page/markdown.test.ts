// The parts of answers beside words and code: formulas, diagrams, boxes of tasks, images of the workspace.
//
// Rule: the page's policy refuses nothing of it, and hostile forms of it come to nothing.

import assert from "node:assert/strict";
import test from "node:test";

import { text, type Program } from "../lib/project";
import { inWorld, useBrowser } from "../lib/world";

useBrowser();

const says = (words: string): Program[] => [{ steps: [{ content: [text(words)] }] }];

test("formulas are drawn in their fonts, amounts of money are none, and TeX that is wrong stays text", () =>
    inWorld(
        {
            programs: says(
                "It is $E = mc^2$ and \\(a_1\\), for $5 or $6.\n\n$$\n\\int_0^1 x\\,dx = \\frac12\n$$\n\n" +
                    "Wrong: $\\frac{1$ and \\(\\href{javascript:alert(1)}{x}\\).",
            ),
        },
        async ({ chat: { page }, chat }) => {
            await chat.say("go");
            await page.locator(".math.drawn .katex").nth(2).waitFor();
            assert.equal(await page.locator("div.math .katex-display").count(), 1);
            assert.match(await page.locator(".said").innerText(), /for \$5 or \$6\./);
            await page.locator(".math.undrawn").first().waitFor();
            assert.equal(await page.locator(".said a[href]").count(), 0);
            const fonts = await page.evaluate(async () => {
                await document.fonts.ready;
                return [...document.fonts].filter(({ status }) => status === "loaded").map(({ family }) => family);
            });
            assert.ok(fonts.some((family) => family.includes("KaTeX")), fonts.join());
        },
    ));

test("a diagram is drawn as a picture without a script or a link, and its source can be shown", () =>
    inWorld(
        {
            programs: says(
                "Here:\n\n```mermaid\nflowchart LR\n  A[\"Read <img src=x onerror=alert(1)>\"] --> B{Fits?}\n  B -->|yes| C[Keep]\n" +
                    '  click A "javascript:alert(1)"\n```\n\n```mermaid\nthis is no diagram\n```\n',
            ),
        },
        async ({ chat: { page }, chat }) => {
            await chat.say("go");
            const frame = page.locator(".code", { has: page.locator("img.diagram") });
            const image = frame.locator("img.diagram");
            await image.waitFor();
            const drawn = await image.evaluate((element: HTMLImageElement) => ({
                width: element.naturalWidth,
                svg: decodeURIComponent(element.src),
            }));
            assert.ok(drawn.width > 100, String(drawn.width));
            assert.match(drawn.svg, /Keep/);
            assert.doesNotMatch(drawn.svg, /javascript:|onerror=|<script|<a[ >]|foreignObject/i);
            assert.equal(await frame.locator("pre").isVisible(), false);
            await frame.getByRole("button", { name: "Show the source" }).click();
            assert.match(await frame.locator("pre").innerText(), /flowchart LR/);
            assert.equal(await page.locator("img.diagram").count(), 1, "what is no diagram stays its source");
            await page.getByText("this is no diagram").waitFor();
            assert.equal(await page.locator(".diagram-holder").count(), 0);
            // Chromium 156 reports handlers that the policy refuses also where a label is parsed and never shown.
            for (const complaint of chat.complaints.splice(0))
                assert.match(complaint, /inline event handler|script-src-attr inline/);
        },
    ));

test("entries of a task list have boxes that say what is done", () =>
    inWorld({ programs: says("- [x] tests pass\n- [ ] changelog\n- [ ]no box\n") }, async ({ chat: { page }, chat }) => {
        await chat.say("go");
        await page.locator(".task.done", { hasText: "tests pass" }).getByRole("img", { name: "Done" }).waitFor();
        await page.locator(".task:not(.done)", { hasText: "changelog" }).getByRole("img", { name: "Not done" }).waitFor();
        assert.equal(await page.locator(".task-mark").count(), 2);
        assert.doesNotMatch(await page.locator(".task.done").innerText(), /\[/);
    }));

test("an image of the workspace is shown, and one of the web is a link that loads nothing", () =>
    inWorld(
        { programs: says("![The door](docs/door.png) and ![Far](https://example.com/far.png)") },
        async ({ chat: { page }, chat }) => {
            const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
            chat.answers["readImage"] = { url: `data:image/png;base64,${pixel}` };
            const asked: string[] = [];
            page.on("request", (request) => asked.push(request.url()));
            await chat.say("go");
            await page.getByRole("img", { name: "The door" }).waitFor();
            const { uri } = (await chat.acted("readImage")) as { uri: string };
            assert.match(uri, /workspace\/docs\/door\.png$/);
            assert.equal(await page.locator(".said img").count(), 1);
            await page.locator("a.link", { hasText: "Far" }).waitFor();
            assert.deepEqual(asked.filter((url) => url.includes("example.com")), []);
        },
    ));
