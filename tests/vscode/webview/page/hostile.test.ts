// Words of models, of tools, of files and of rules that try to be more than words.
//
// Rule: nothing of it becomes an element, a script, a request, a link that is no link, or another text than it is. The real
// policy is in force; that it was never needed is tested as well.

import assert from "node:assert/strict";
import test from "node:test";

import { call, text, type Program } from "../lib/project";
import { inWorld, useBrowser } from "../lib/world";

useBrowser();

const ATTACKS = [
    '<img src=x onerror="window.pwned=1">',
    "<script>window.pwned=1</script>",
    "<svg/onload=window.pwned=1>",
    '<iframe srcdoc="<script>parent.pwned=1</script>"></iframe>',
    '<a href="javascript:window.pwned=1">x</a>',
    "[click](javascript:window.pwned=1)",
    "[click](JaVaScRiPt&colon;window.pwned=1)",
    "[click](data:text/html;base64,PHNjcmlwdD5wYXJlbnQucHduZWQ9MTwvc2NyaXB0Pg==)",
    "[click](command:workbench.action.terminal.new)",
    "[click](vscode://evil/x)",
    "[ref]\n\n[ref]: javascript:window.pwned=1",
    "<javascript:window.pwned=1>",
    "![picture](https://evil.example/track.png)",
    "![picture](javascript:window.pwned=1)",
    '```"><img src=x onerror=window.pwned=1>\ncode\n```',
    "```js\n</code></pre><img src=x onerror=window.pwned=1>\n```",
    "`<img src=x onerror=window.pwned=1>`",
    "# <style>*{display:none}</style>",
    "| <b onmouseover=window.pwned=1>a</b> | b |\n|---|---|\n| <form action=x><input name=attributes></form> | d |",
    '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=window.pwned=1&gt;">',
    "<div id=root></div><base href=https://evil.example/>",
    "&lt;img src=x onerror=window.pwned=1&gt;",
    "<a name=body><form id=test><input name=parentNode>",
    '<span style="position:fixed;inset:0">cover</span>',
    '<button data-act="apply">x</button><a class="link" data-web="https://evil.example">x</a>',
];

/** Elements and attributes that nothing of the page has. */
const FORBIDDEN =
    "script:not([src='webview.js']):not([src$='/languages.js']), style, iframe, object, embed, form, base, meta[http-equiv=refresh], .row img, .row [style*=fixed], [onerror], [onload], [onmouseover], a[href], .markdown [style], .markdown input, .markdown svg, math";

test("HTML in an answer stays text, whether it streams or is done", () =>
    inWorld(
        { programs: [{ steps: [{ content: [text(ATTACKS.join("\n\n"))], chunk: 7 }] }] },
        async ({ chat, server }) => {
            const done = server.event(({ event }) => event.type === "done", "the end");
            await chat.say("attack");
            await done;
            await chat.settled();
            await chat.page.waitForSelector(".working", { state: "detached" });
            assert.equal(await chat.page.locator(FORBIDDEN).count(), 0);
            assert.equal(
                await chat.page.evaluate(() => (window as unknown as { pwned?: number }).pwned),
                undefined,
            );
            assert.match((await chat.rows()).join("\n"), /<script>window\.pwned=1<\/script>/);
            for (const link of await chat.page.locator(".said a").all()) await link.click();
            // An address of the web can be followed by a click.
            await chat.acted("openLink");
            const opened = chat.actions.filter(({ action }) => action.startsWith("open"));
            assert.ok(
                opened.every(
                    ({ action, payload }) =>
                        action === "openLink" &&
                        (payload as { href: string }).href.startsWith("https://evil.example"),
                ),
                JSON.stringify(opened),
            );
            assert.equal(
                await chat.page.locator(".said button").count(),
                3 * 2,
                "only the buttons of the frames around code",
            );
        },
    ));

for (const [index, attack] of ATTACKS.entries()) {
    test(`attack ${index} is the text that it is, alone and in a list, a quote and a table`, () =>
        inWorld(
            {
                programs: [
                    {
                        steps: [
                            {
                                content: [
                                    text(
                                        `${attack}\n\n- ${attack.replaceAll("\n", "\n  ")}\n\n> ${attack.replaceAll("\n", "\n> ")}\n\nEnd.`,
                                    ),
                                ],
                                chunk: 5,
                            },
                        ],
                    },
                ],
            },
            async ({ chat }) => {
                await chat.say(`Say: ${attack}`);
                await chat.page.waitForSelector(".said >> text=End.");
                assert.equal(await chat.page.locator(FORBIDDEN).count(), 0);
                assert.equal(
                    await chat.page.evaluate(() => (window as unknown as { pwned?: number }).pwned),
                    undefined,
                );
            },
        ));
}

const bidi = "rm -rf important \u202e#gpj.erutcip\u2066 \u200b&& touch ok";

test("a command that turns its own text around is shown as it is run", () =>
    inWorld(
        {
            programs: [
                {
                    steps: [
                        { content: [call("Bash", { command: bidi, description: "Look at \u202egpj.exe" })] },
                        { content: [text("So.")] },
                    ],
                },
            ],
        },
        async ({ chat }) => {
            await chat.say("go");
            const card = chat.page.locator(".permission");
            await card.waitFor();
            const shown = (await card.locator("pre").first().textContent()) ?? "";
            // The server escapes what changes the direction, the page what has no width.
            assert.match(shown, /rm -rf important \\u\{202e\}#gpj\.erutcip\\u\{2066\} ⟨U\+200B⟩&& touch ok/);
            assert.doesNotMatch(
                await chat.page.locator("body").innerText(),
                /[\u202a-\u202e\u2066-\u2069\u200b]/,
            );
            await card.getByText("Deny", { exact: true }).click();
            await chat.page.waitForSelector("text=So.");
            assert.doesNotMatch(
                await chat.page.locator("body").innerText(),
                /[\u202a-\u202e\u2066-\u2069\u200b]/,
            );
        },
    ));

test("names of files, output of commands and rules are text", () =>
    inWorld(
        {
            programs: [
                {
                    steps: [
                        {
                            content: [
                                call("Read", { file_path: "{{cwd}}/<img src=x onerror=pwned=1>.txt" }),
                                call("Bash", {
                                    command:
                                        "printf '<img src=x onerror=pwned=1>\\n\\033[31mred\\033[0m \\342\\200\\256evil'; exit 1",
                                }),
                            ],
                        },
                        {
                            content: [
                                call("Write", {
                                    file_path: "{{cwd}}/new<b>.txt",
                                    content: "<script>pwned=1</script>\n\u202eturned\n",
                                }),
                            ],
                        },
                        { content: [text("So.")] },
                    ],
                },
            ],
            files: { "<img src=x onerror=pwned=1>.txt": "<b>bold</b>\n" },
        },
        async ({ chat }) => {
            await chat.say("go <b>bold</b> [x](javascript:1)");
            for (;;) {
                const next = chat.page.locator(".permission .primary, .said");
                await next.first().waitFor();
                if ((await chat.page.locator(".said").count()) > 0) break;
                const id = await chat.page.locator(".permission").getAttribute("data-permission");
                const project = chat.page.getByText("In this project");
                if ((await project.count()) > 0) await project.click();
                assert.equal(await chat.page.locator(FORBIDDEN).count(), 0);
                await chat.page.locator(".permission .primary").click();
                await chat.page.waitForFunction(
                    (id) => document.querySelector(".permission")?.getAttribute("data-permission") !== id,
                    id,
                );
            }
            for (const line of await chat.page.locator("button.card-line[aria-expanded=false]").all())
                await line.click();
            await chat.page.waitForSelector(".card.failed .output >> text=/⟨U\\+001B⟩|red/");
            assert.equal(await chat.page.locator(FORBIDDEN).count(), 0);
            assert.equal(await chat.page.locator(".user b, .user a").count(), 0);
            assert.equal(
                await chat.page.evaluate(() => (window as unknown as { pwned?: number }).pwned),
                undefined,
            );
            assert.doesNotMatch(
                await chat.page
                    .locator(".row")
                    .allInnerTexts()
                    .then((rows) => rows.join()),
                /[\u202a-\u202e]/,
            );
        },
    ));

test("links lead where they say, and only after a click or Enter", () =>
    inWorld(
        {
            programs: [
                {
                    steps: [
                        {
                            content: [
                                text(
                                    "See [the docs](https://docs.example/x), `src/a.rs:12` and [b](src/b.rs#L3-L5), or https://plain.example.",
                                ),
                            ],
                        },
                    ],
                },
            ],
        },
        async ({ chat }) => {
            await chat.say("links");
            await chat.page.waitForSelector(".said .link");
            await chat.page.waitForSelector(".working", { state: "detached" });
            const links = chat.page.locator(".said .link");
            assert.deepEqual(
                await links.evaluateAll((all) => all.map((link) => link.getAttribute("title"))),
                ["https://docs.example/x", "src/a.rs:12", "src/b.rs:3", "https://plain.example"],
            );
            await links.nth(0).click();
            await links.nth(1).focus();
            await chat.page.keyboard.press("Enter");
            await links.nth(2).click();
            const opened = () => chat.actions.filter(({ action }) => action.startsWith("open"));
            await chat.told(() => opened().length === 3, "three links that are opened");
            const { uri } = chat.state.folders[0] ?? { uri: "" };
            assert.deepEqual(
                opened().map(({ payload }) => payload),
                [
                    { href: "https://docs.example/x" },
                    {
                        uri: `${uri}/src/a.rs`,
                        range: { start: { line: 11, character: 0 }, end: { line: 11, character: 0 } },
                    },
                    {
                        uri: `${uri}/src/b.rs`,
                        range: { start: { line: 2, character: 0 }, end: { line: 5, character: 0 } },
                    },
                ],
            );
        },
    ));

const question: Program = {
    steps: [
        {
            content: [
                call("AskUserQuestion", {
                    questions: [
                        {
                            question: "<img src=x onerror=pwned=1> \u202e?",
                            header: "<b>",
                            multiSelect: false,
                            options: [
                                { label: "<i>A</i>", description: "<u>a</u>" },
                                { label: "B\u202e", description: "b" },
                            ],
                        },
                    ],
                }),
            ],
        },
        { content: [text("So.")] },
    ],
};

test("questions and their options are text", () =>
    inWorld({ programs: [question] }, async ({ chat }) => {
        await chat.say("ask");
        const card = chat.page.locator(".question");
        await card.waitFor();
        assert.equal(await card.locator("img, b, i, u").count(), 0);
        assert.match(await card.innerText(), /<img src=x onerror=pwned=1> ⟨U\+202E⟩\?/);
    }));

test("the policy of the page is in force: what it forbids does not work in here", () =>
    inWorld({}, async ({ chat }) => {
        const ran = await chat.page.evaluate(async () => {
            const refused: string[] = [];
            document.addEventListener("securitypolicyviolation", (event) =>
                refused.push(event.effectiveDirective),
            );
            const script = document.createElement("script");
            script.textContent = "window.inline = 1";
            document.body.append(script);
            const holder = document.createElement("div");
            holder.innerHTML = '<span style="color: red">x</span>';
            document.body.append(holder);
            const styled = holder.querySelector("span")?.style.color;
            const fetched = await fetch("https://evil.example").then(
                () => "yes",
                () => "no",
            );
            while (refused.length < 3) await new Promise((resolve) => requestAnimationFrame(resolve));
            return {
                inline: (window as unknown as { inline?: number }).inline,
                styled,
                fetched,
                refused: refused.sort(),
            };
        });
        assert.deepEqual(ran, {
            inline: undefined,
            styled: "",
            fetched: "no",
            refused: ["connect-src", "script-src-elem", "style-src-attr"],
        });
        await chat.page.evaluate(() => console.error("the last complaint"));
        await chat.page.waitForFunction(() => true);
        chat.complaints.length = 0;
    }));
