// VS Code's real workbench in a headless browser, with the extension as it is packed, the real server and a scripted model.
//
// Rule: nothing outside of the test's own folder is read or written, nothing but this machine is reached, and every process
// that is started here is ended here by its id.
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { eventually } from "./runner.mjs";

const CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

const USER_SETTINGS = {
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": false,
    "workbench.enableExperiments": false,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "extensions.autoUpdate": false,
    "extensions.autoCheckUpdates": false,
    "chat.disableAIFeatures": true,
    "git.openRepositoryInParentFolders": "never",
    "files.autoSave": "off",
    "editor.minimap.enabled": false,
    // Its text is in the page then, and not in a picture.
    "terminal.integrated.gpuAcceleration": "off",
    "editor.quickSuggestions": { other: "off", comments: "off", strings: "off" },
    "editor.autoClosingBrackets": "never",
    "editor.autoIndent": "none",
};

function freePort() {
    return new Promise((resolve) => {
        const server = net.createServer().listen(0, "127.0.0.1", () => {
            const { port } = server.address();
            server.close(() => resolve(port));
        });
    });
}

/** Makes a repository of a folder and commits all in it. */
function commitAll(folder, environment) {
    const who = ["-c", "user.name=Test", "-c", "user.email=test@localhost"];
    for (const args of [["init", "--quiet"], ["add", "."], [...who, "commit", "--quiet", "-m", "All of it"]]) {
        execFileSync("git", args, { cwd: folder, env: environment });
    }
}

/** Ends a process and all it has started, and waits for it. */
async function end(child, signal = "SIGTERM") {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    process.kill(-child.pid, signal);
    const limit = new Promise((resolve) => setTimeout(resolve, 5_000, "late").unref());
    if ((await Promise.race([gone, limit])) === "late") process.kill(-child.pid, "SIGKILL");
    await gone;
}

/** The workbench of a run. */
export class Workbench {
    /**
     * `tools`: { codeServer, chromium, playwright, server, neovim, vsixes, out }; `script`: that of the model; `variables`:
     * those of the environment that differ, `undefined` to take one away.
     */
    static async start(tools, script, variables = {}) {
        const box = fs.mkdtempSync(path.join(os.tmpdir(), "kode-vscode-"));
        for (const folder of ["ud/User", "ud/Machine", "ext", "home", "state", "s", "w"]) {
            fs.mkdirSync(path.join(box, folder), { recursive: true });
        }
        fs.mkdirSync(tools.out, { recursive: true });
        fs.writeFileSync(path.join(box, "script.json"), JSON.stringify(script));
        fs.writeFileSync(path.join(box, "ud/User/settings.json"), JSON.stringify(USER_SETTINGS));
        // A remote workbench reads settings of the machine from here alone.
        const machine = { "kode.server.path": tools.server };
        fs.writeFileSync(path.join(box, "ud/Machine/settings.json"), JSON.stringify(machine));
        fs.writeFileSync(path.join(box, "config.yaml"), "auth: none\n");
        const workbench = new Workbench(tools, box, variables);
        try {
            await workbench.startModel();
            workbench.install();
            await workbench.startServer();
            await workbench.startBrowser();
        } catch (error) {
            await workbench.stop(true);
            throw error;
        }
        return workbench;
    }

    constructor(tools, box, variables) {
        this.tools = tools;
        this.box = box;
        this.variables = variables;
        this.outside = new Set();
        this.windows = new Set();
        this.count = 0;
    }

    async startModel() {
        this.model = spawn(this.tools.server, ["scripted-model", "--script", path.join(this.box, "script.json")], {
            stdio: ["pipe", "pipe", fs.openSync(path.join(this.tools.out, "model.log"), "w")],
            detached: true,
        });
        const line = await new Promise((resolve, reject) => {
            let text = "";
            this.model.stdout.on("data", (piece) => {
                text += piece;
                if (text.includes("\n")) resolve(text.split("\n")[0]);
            });
            this.model.once("exit", () => reject(new Error("the scripted model did not start; see model.log")));
        });
        this.modelUrl = JSON.parse(line).listening;
    }

    install() {
        for (const vsix of this.tools.vsixes) {
            execFileSync(this.tools.codeServer, [...this.folders(), "--install-extension", vsix], {
                env: this.environment(),
                stdio: ["ignore", "ignore", "pipe"],
            });
        }
    }

    folders() {
        const at = (name) => path.join(this.box, name);
        return ["--config", at("config.yaml"), "--user-data-dir", at("ud"), "--extensions-dir", at("ext")];
    }

    environment() {
        const home = path.join(this.box, "home");
        const environment = {
            ...process.env,
            EXTENSIONS_GALLERY: "{}",
            HOME: home,
            XDG_CONFIG_HOME: home,
            XDG_DATA_HOME: home,
            XDG_CACHE_HOME: home,
            KODE_LS_HOME: path.join(this.box, "state"),
            KODE_TEST_SOCKETS: path.join(this.box, "s"),
            ANTHROPIC_BASE_URL: this.modelUrl,
            ANTHROPIC_API_KEY: "test-key",
            OLLAMA_HOST: new URL(this.modelUrl).host,
            ...this.variables,
        };
        delete environment.VSCODE_IPC_HOOK_CLI;
        return environment;
    }

    async startServer() {
        this.port = await freePort();
        const log = fs.openSync(path.join(this.tools.out, "code-server.log"), "w");
        const options = ["--auth", "none", "--bind-addr", `127.0.0.1:${this.port}`, "--disable-telemetry"];
        const quiet = ["--disable-update-check", "--disable-workspace-trust", "--disable-getting-started-override"];
        this.codeServer = spawn(this.tools.codeServer, [...this.folders(), ...options, ...quiet], {
            env: this.environment(),
            stdio: ["ignore", log, log],
            detached: true,
        });
        const isUp = () =>
            new Promise((resolve) => {
                const request = http.get({ host: "127.0.0.1", port: this.port, path: "/healthz" }, (response) => {
                    response.resume();
                    resolve(response.statusCode === 200);
                });
                request.on("error", () => resolve(false));
            });
        await eventually("code-server answers", isUp, 60_000);
    }

    async startBrowser() {
        const { chromium } = createRequire(path.join(this.tools.playwright, "x.js"))("playwright-core");
        this.context = await chromium.launchPersistentContext(path.join(this.box, "chrome"), {
            executablePath: this.tools.chromium,
            headless: true,
            viewport: { width: 1400, height: 900 },
            args: CHROMIUM_FLAGS,
        });
        const isOutside = (url) => url.protocol.startsWith("http") && !["127.0.0.1", "localhost"].includes(url.hostname);
        await this.context.route(isOutside, (route) => {
            const { host } = new URL(route.request().url());
            // Webviews are served under a name of their own, from this machine.
            if (host.endsWith(".vscode-cdn.net") || host.endsWith(".vscode-resource.vscode-cdn.net")) return route.fallback();
            this.outside.add(host);
            return route.abort();
        });
    }

    /** Opens a window on a new workspace with these files; with `git`, on a repository in which they are committed. */
    async open(files, settings = {}, { git = false } = {}) {
        const name = `w${++this.count}`;
        const folder = path.join(this.box, "w", name);
        fs.mkdirSync(folder, { recursive: true });
        for (const [file, text] of Object.entries(files)) {
            fs.mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
            fs.writeFileSync(path.join(folder, file), text);
        }
        if (Object.keys(settings).length > 0) {
            fs.mkdirSync(path.join(folder, ".vscode"), { recursive: true });
            fs.writeFileSync(path.join(folder, ".vscode/settings.json"), JSON.stringify(settings));
        }
        if (git) commitAll(folder, this.environment());
        const window = new Window(this, folder, path.join(this.box, "s", name));
        this.windows.add(window);
        await window.load();
        return window;
    }

    async closeWindows() {
        for (const window of this.windows) await window.close();
    }

    /** Takes pictures of the open parts. */
    async failed(name) {
        const safe = name.replace(/[^a-z0-9]+/gi, "-").slice(0, 60);
        for (const window of this.windows) await window.shot(`fail-${safe}`).catch(() => {});
    }

    async release(gate) {
        await this.scripted(`release/${gate}`, { method: "POST" });
    }

    /** The texts of all results of calls in the newest request to the model. */
    async results() {
        const { body } = await (await fetch(`${this.modelUrl}/scripted/newest`)).json();
        const blocks = body.messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
        const results = blocks.filter(({ type }) => type === "tool_result").map(({ content }) => content);
        return results.map((content) => (Array.isArray(content) ? content[0].text : content));
    }

    async waiting(gate) {
        await this.scripted(`waiting/${gate}`);
    }

    /** Asks the scripted model about itself; a refusal is an error. */
    async scripted(path, request) {
        const response = await fetch(`${this.modelUrl}/scripted/${path}`, request);
        if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    }

    async stop(keep = false) {
        await this.context?.close();
        if (this.codeServer) await end(this.codeServer);
        if (this.model) await end(this.model);
        if (keep) console.log(`kept ${this.box}`);
        else fs.rmSync(this.box, { recursive: true, force: true });
    }
}

/** A window of the workbench. */
export class Window {
    constructor(workbench, folder, socket) {
        this.workbench = workbench;
        this.folder = folder;
        this.socket = socket;
        this.console = [];
    }

    async load() {
        this.page ??= await this.workbench.context.newPage();
        this.page.on("console", (message) => this.console.push(`[${message.type()}] ${message.text()}`));
        const url = `http://127.0.0.1:${this.workbench.port}/?folder=${encodeURIComponent(this.folder)}`;
        await this.page.goto(url, { timeout: 60_000 });
        await this.page.locator(".monaco-workbench").waitFor({ timeout: 60_000 });
        await eventually("the extension host answers", () => this.run(() => true), 60_000);
    }

    async reload() {
        // As a user does it: a page that is just loaded again has not written what the editor keeps.
        const loaded = this.page.waitForEvent("load");
        await this.command("workbench.action.reloadWindow");
        await loaded;
        await this.page.locator(".monaco-workbench").waitFor({ timeout: 60_000 });
        await eventually("the extension host answers", () => this.run(() => true), 60_000);
    }

    /** Runs a function in the extension host: `run((vscode, memory, ...args) => …, ...args)`. */
    run(code, ...args) {
        const body = JSON.stringify({ code: code.toString(), args });
        return new Promise((resolve, reject) => {
            const request = http.request({ socketPath: this.socket, method: "POST" }, async (response) => {
                let text = "";
                for await (const piece of response) text += piece;
                const { result, error } = JSON.parse(text);
                if (error) reject(new Error(error));
                else resolve(result);
            });
            request.on("error", reject);
            request.end(body);
        });
    }

    command(name, ...args) {
        return this.run((vscode, _, name, args) => void vscode.commands.executeCommand(name, ...args), name, args);
    }

    /** Waits until the extension is active and its server answers. */
    async ready() {
        await this.status(/^(?!.*Starting the server).*Kode is ready|Kode is working|question/);
    }

    /** Waits for what the status bar says. */
    async status(pattern, limitMs = 30_000) {
        const item = this.page.locator('[id="kode-ls.kode.kode.status"]');
        return eventually(`the status bar says ${pattern}`, async () => {
            const label = await item.locator("a").getAttribute("aria-label", { timeout: 1_000 });
            if (pattern.test(label)) return label;
            throw new Error(label);
        }, limitMs);
    }

    path(file) {
        return path.join(this.folder, file);
    }

    read(file) {
        return fs.readFileSync(this.path(file), "utf8");
    }

    exists(file) {
        return fs.existsSync(this.path(file));
    }

    /** The output of git in the workspace. */
    git(...args) {
        return execFileSync("git", args, { cwd: this.folder, env: this.workbench.environment(), encoding: "utf8" });
    }

    /** The inside of the chat's webview. */
    get chat() {
        return this.page.frameLocator("iframe.webview.ready").frameLocator("iframe#active-frame");
    }

    /** Opens the chat view and waits for its page. */
    async openChat() {
        await this.command("kode.chat.focus");
        await this.chat.locator("#session").waitFor({ timeout: 30_000 });
        return this.chat.locator("#session").textContent();
    }

    /** Has the page do something. */
    page_(code, argument) {
        return this.chat.locator("body").evaluate(code, argument);
    }

    /** Makes a request by the page. */
    ask(method, params) {
        return this.page_((_, { method, params }) => {
            const window = globalThis;
            return window.ask(method, { sessionId: window.session(), ...params });
        }, { method, params });
    }

    /** Sends an action by the page; answers as the host does. */
    act(action, payload) {
        return this.page_((_, { action, payload }) => globalThis.send({ type: "host", action, payload }), { action, payload });
    }

    prompt(text) {
        return this.ask("agent/turn/start", { input: [{ type: "text", text }] });
    }

    async text(id) {
        const found = this.chat.locator(`#${id}`);
        return (await found.count()) === 0 ? "" : ((await found.textContent()) ?? "");
    }

    /** Opens a file with the keyboard in it. */
    async edit(file) {
        await this.run(
            async (vscode, _, file) => {
                const document = await vscode.workspace.openTextDocument(file);
                await vscode.window.showTextDocument(document, { preview: false });
            },
            this.path(file),
        );
        await this.page.locator(".monaco-editor.focused").first().waitFor();
    }

    /** The text of an open document. */
    buffer(file) {
        return this.run((vscode, _, file) => {
            const found = vscode.workspace.textDocuments.find(({ uri }) => uri.fsPath === file);
            return found?.getText() ?? null;
        }, this.path(file));
    }

    /** The id of the server's process. By its program's name: the paths of the editor's own servers may contain ours. */
    async serverPid() {
        const pid = await this.run(() => process.pid);
        const children = execFileSync("ps", ["-o", "pid=,comm=", "--ppid", String(pid)], { encoding: "utf8" });
        const pids = children.split("\n").flatMap((child) => /^\s*(\d+) kode-ls$/.exec(child)?.[1] ?? []);
        return pids.length > 0 ? Number(pids[0]) : undefined;
    }

    async shot(name) {
        await this.page.screenshot({ path: path.join(this.workbench.tools.out, `${name}.png`) });
    }

    async close() {
        this.workbench.windows.delete(this);
        await this.page.close();
    }
}
