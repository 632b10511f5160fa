// How the extension comes to life: what it finds, says and lets in.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { eventually, test } from "../lib/runner.mjs";

test("the extension activates, finds the server and is ready", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await window.ready();
    const commands = await window.run((vscode) => vscode.commands.getCommands(true));
    for (const name of ["kode.chat.focus", "kode.review.next", "kode.server.doctor", "kode.keepEdits"]) {
        assert.ok(commands.includes(name), name);
    }
    assert.equal(await window.run((vscode) => vscode.extensions.getExtension("kode-ls.kode").isActive), true);
});

test("a server path that leads nowhere is told with what to do, and corrected without a reload", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" }, { "kode.server.path": "/nowhere/kode-ls" });
    const label = await window.status(/nowhere/);
    assert.match(label, /there is no program `\/nowhere\/kode-ls`.*Correct the setting/);
    await window.run((vscode) =>
        vscode.workspace
            .getConfiguration("kode")
            .update("server.path", undefined, vscode.ConfigurationTarget.Workspace),
    );
    await window.ready();
});

test("in a remote editor the program of the extension is used, and becomes executable again", async (workbench) => {
    const [name] = fs.readdirSync(path.join(workbench.box, "ext")).filter((one) => one.startsWith("kode-ls.kode-"));
    const folder = path.join(workbench.box, "ext", name, "bin");
    const program = path.join(folder, "kode-ls");
    fs.mkdirSync(folder);
    try {
        fs.copyFileSync(workbench.tools.server, program);
        fs.chmodSync(program, 0o644);
        const window = await workbench.open({ "a.txt": "one\n" }, { "kode.server.path": "" });
        await window.ready();
        assert.equal(fs.statSync(program).mode & 0o777, 0o755);
    } finally {
        fs.rmSync(folder, { recursive: true });
    }
    const window = await workbench.open({ "a.txt": "one\n" }, { "kode.server.path": "" });
    const label = await window.status(/was not found/);
    const platform = `${process.platform}-${process.arch}`;
    assert.ok(label.includes(`no program for ${platform}`) && label.includes(`kode-${platform}-….vsix`), label);
});

test("a program that is no server is told as such and not tried for ever", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" }, { "kode.server.path": "/bin/true" });
    const label = await window.status(/ended 5 times/, 60_000);
    assert.match(label, /exit code 0/);
});

/** A program that is the server in all but its version, which is older than any. */
const oldServer = (server) => `#!${process.execPath}
const server = require("node:child_process").spawn(${JSON.stringify(server)}, { stdio: ["pipe", "pipe", "inherit"] });
process.stdin.pipe(server.stdin);
const older = (_, name, version) => name + version.replace(/\\d/g, "0");
server.stdout.on("data", (piece) => {
    const text = piece.toString("latin1").replace(/("serverVersion":")([\\d.]+)/, older);
    process.stdout.write(text, "latin1");
});
server.on("exit", (code) => process.exit(code ?? 1));
`;

test("a server that is older than the extension is told, with how to bring it up to date", async (workbench) => {
    const program = path.join(workbench.box, "old-server");
    fs.writeFileSync(program, oldServer(workbench.tools.server), { mode: 0o755 });
    const window = await workbench.open({ "a.txt": "one\n" }, { "kode.server.path": program });
    await window.ready();
    const told = window.page.locator(".notification-toast", { hasText: /the server is version 0\.0\.0, the extension \d/ });
    await told.getByRole("button", { name: "Skip This Version" }).waitFor();
    await told.getByRole("button", { name: "How to Upgrade" }).click();
    await window.page.getByText("To upgrade").waitFor();
});

test("the page of the chat runs our script and style and nothing else", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await window.openChat();
    const policy = await window.page_((body) =>
        body.ownerDocument.querySelector("meta[http-equiv=Content-Security-Policy]").getAttribute("content"),
    );
    assert.match(policy, /^default-src 'none'; script-src 'nonce-[\w-]{24}'; style-src 'nonce-[\w-]{24}';/);
    assert.doesNotMatch(policy, /unsafe/);
    const border = await window.page_((body) => getComputedStyle(body.querySelector("#root")).borderLeftColor);
    assert.equal(border, "rgb(1, 2, 3)", "our style sheet applies");

    const outcome = await window.page_(async (body) => {
        const document = body.ownerDocument;
        const blocked = [];
        document.addEventListener("securitypolicyviolation", (event) => blocked.push(event.effectiveDirective));
        const script = document.createElement("script");
        script.textContent = "globalThis.evil = true";
        body.append(script);
        const style = document.createElement("style");
        style.textContent = "body { color: red }";
        body.append(style);
        const box = document.createElement("div");
        box.innerHTML = '<p style="color: red">x</p><img src="https://example.org/x.png" onerror="globalThis.evil = true">';
        body.append(box);
        const connected = await fetch("https://example.org/").then(() => true, () => false);
        // The debugger's own evaluation is free of the policy; what runs behind a timer is not.
        await new Promise((resolve) => setTimeout(resolve, 200));
        let evaluated = false;
        try {
            evaluated = eval("true");
        } catch {
            // The purpose of the policy.
        }
        return { evil: globalThis.evil === true, connected, evaluated, blocked: [...new Set(blocked)].sort() };
    });
    assert.deepEqual({ ...outcome, blocked: undefined }, { evil: false, connected: false, evaluated: false, blocked: undefined });
    for (const directive of ["connect-src", "img-src", "script-src-elem", "style-src-elem", "style-src-attr"]) {
        assert.ok(outcome.blocked.includes(directive), `${directive} in ${outcome.blocked}`);
    }
});

test("a page may make no request and no act but those of the contract", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await window.openChat();
    const refused = await window.page_(() => globalThis.send({ type: "request", method: "shutdown", params: {} }));
    assert.match(refused.error.message, /may not request `shutdown`/);
    const unknown = await window.act("evil", {});
    assert.match(unknown.error.message, /no action `evil`/);
    for (const uri of ["command:workbench.action.quit", "vscode-userdata:/User/settings.json", "https://example.org"]) {
        assert.match((await window.act("openFile", { uri })).error.message, /was not opened/, uri);
    }
    for (const href of ["file:///etc/passwd", "command:x", "javascript:alert(1)"]) {
        assert.match((await window.act("openLink", { href })).error.message, /only http, https and mailto/, href);
    }
});

test("the doctor shows what the program says, as text that cannot be changed", async (workbench) => {
    const window = await workbench.open({ "a.txt": "one\n" });
    await window.ready();
    await window.command("kode.server.doctor");
    const text = await eventually("the doctor's text", () =>
        window.run((vscode) => {
            const { document } = vscode.window.activeTextEditor ?? {};
            return document?.uri.scheme === "kode-text" ? document.getText() : null;
        }),
    );
    assert.match(text, /extension +\d+\.\d+\.\d+/);
    assert.match(text, /sandbox/);
});
