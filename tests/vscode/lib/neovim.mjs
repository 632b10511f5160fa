// A real Neovim with our plugin beside the workbench, on the same project and the same sessions.
//
// Rule: it is driven by typed keys; all else only reads. Every process that is started here is ended here by its id.
import { execFile, spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { eventually } from "./runner.mjs";

const run = promisify(execFile);
const plugin = fileURLToPath(new URL("../../../editors/neovim", import.meta.url));

/** A string in Vim script. */
const quoted = (text) => `'${text.replaceAll("'", "''")}'`;

/** A running Neovim. */
export class Neovim {
    /** Starts it on a file in the folder of a window. */
    static async start(window, file) {
        const { tools, box } = window.workbench;
        const home = fs.mkdtempSync(path.join(box, "nvim-"));
        const init = path.join(home, "init.lua");
        const settings = `{ cmd = { '${tools.server}' }, settle = 0, start_insert = false }`;
        fs.writeFileSync(
            init,
            `vim.opt.runtimepath:prepend('${plugin}')\nvim.o.columns, vim.o.lines = 120, 40\nvim.g.kode = ${settings}\n`,
        );
        const neovim = new Neovim(tools.neovim, path.join(home, "socket"));
        const options = ["--headless", "--listen", neovim.socket, "-n", "-i", "NONE", "-u", init, file];
        neovim.process = spawn(tools.neovim, options, {
            cwd: window.folder,
            env: window.workbench.environment(),
            stdio: ["ignore", "ignore", fs.openSync(path.join(tools.out, "neovim.log"), "a")],
            detached: true,
        });
        await eventually("Neovim answers", async () => (await neovim.lua("vim.v.vim_did_enter")) === "1");
        return neovim;
    }

    constructor(program, socket) {
        this.program = program;
        this.socket = socket;
    }

    async remote(kind, text) {
        const { stdout } = await run(this.program, ["--headless", "--server", this.socket, kind, text], { timeout: 10_000 });
        return stdout;
    }

    /** The value of a Lua expression, as text. */
    lua(expression) {
        return this.remote("--remote-expr", `luaeval(${quoted(expression)})`);
    }

    /** Types keys, in Vim's notation. */
    async type(keys) {
        await this.remote("--remote-send", keys);
    }

    /** Types a command. */
    command(text) {
        return this.type(`<C-\\><C-N>:${text}<CR>`);
    }

    /** The text of the transcript. */
    transcript() {
        return this.lua(
            "(function() local surface = require('kode.surface').latest() " +
                "if not surface or not surface.transcript then return '' end " +
                "return table.concat(vim.api.nvim_buf_get_lines(surface.transcript.buffer, 0, -1, true), '\\n') end)()",
        );
    }

    /** Waits until the transcript has this. */
    shows(part) {
        return eventually(`Neovim shows ${part}`, async () => {
            const text = await this.transcript();
            if (text.includes(part)) return text;
            throw new Error(text);
        });
    }

    /** The number of prompts that wait. */
    async waiting() {
        return Number(await this.lua("require('kode').waiting()"));
    }

    /** Ends it and its server. */
    async stop() {
        if (this.process.exitCode !== null || this.process.signalCode !== null) return;
        const gone = new Promise((resolve) => this.process.once("exit", resolve));
        process.kill(-this.process.pid, "SIGTERM");
        await gone;
    }
}
