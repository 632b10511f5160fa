// Packs the extension into a .vsix: with the server for one platform, or without it for all.
//
//   node package.mjs --vsce PROGRAM [--out FILE] [--page FILE]                       universal
//   node package.mjs --vsce PROGRAM --server FILE --target linux-x64 [--out FILE]    with the server for this platform, and
//                                                                                    the sandbox helper that lies beside it
//
// Rule: the package is put together in a folder of its own, file by file, so that nothing gets in by accident. The
// program is packed as it is given; nothing is downloaded.
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const here = path.dirname(fileURLToPath(import.meta.url));
const { values: options } = parseArgs({
    options: {
        vsce: { type: "string", default: "vsce" },
        server: { type: "string" },
        target: { type: "string" },
        out: { type: "string" },
        page: { type: "string" },
    },
});
if (!options.server !== !options.target) throw new Error("--server and --target belong together");

const manifest = JSON.parse(readFileSync(path.join(here, "package.json"), "utf8"));
const name = [manifest.name, options.target, manifest.version].filter(Boolean).join("-");
const out = path.resolve(options.out ?? path.join(here, `${name}.vsix`));

const stage = mkdtempSync(path.join(tmpdir(), "kode-vsix-"));
try {
    const page = options.page ? ["--page", path.resolve(options.page)] : [];
    execFileSync(process.execPath, [path.join(here, "build.mjs"), "--out", path.join(stage, "dist"), ...page], {
        stdio: "inherit",
    });
    for (const folder of ["icons", "walkthrough"]) {
        const from = path.join(here, folder);
        if (existsSync(from)) cpSync(from, path.join(stage, folder), { recursive: true });
    }
    for (const file of ["README.md", "CHANGELOG.md"]) cpSync(path.join(here, file), path.join(stage, file));
    const licenses = ["LICENSE-MIT", "LICENSE-APACHE"].map((file) => path.join(here, "../..", file));
    writeFileSync(path.join(stage, "LICENSE.txt"), licenses.map((file) => readFileSync(file, "utf8")).join("\n\n"));

    const { devDependencies: _, scripts: __, private: ___, ...packed } = manifest;
    packed.files = ["**"];
    writeFileSync(path.join(stage, "package.json"), `${JSON.stringify(packed, null, 2)}\n`);

    if (options.server) {
        const program = options.target.startsWith("win32") ? "kode-ls.exe" : "kode-ls";
        const server = path.resolve(options.server);
        const files = [[server, program]];
        // Windows has no sandbox.
        if (!options.target.startsWith("win32")) {
            files.push([path.join(path.dirname(server), "kode-ls-helper"), "kode-ls-helper"]);
        }
        mkdirSync(path.join(stage, "bin"));
        for (const [from, name] of files) {
            cpSync(from, path.join(stage, "bin", name));
            chmodSync(path.join(stage, "bin", name), 0o755);
        }
    }

    const target = options.target ? ["--target", options.target] : [];
    const vsce = ["package", "--no-dependencies", "--allow-missing-repository", "--out", out, ...target];
    // One that is given by its file is run by this Node, whatever its first line says.
    const isFile = existsSync(options.vsce);
    const [program, first] = isFile ? [process.execPath, [path.resolve(options.vsce)]] : [options.vsce, []];
    execFileSync(program, [...first, ...vsce], { cwd: stage, stdio: ["ignore", "ignore", "inherit"] });
    console.log(out);
} catch (error) {
    if (error.code !== "ENOENT" || !error.syscall?.startsWith("spawn")) throw error;
    throw new Error(`${options.vsce} was not found; install it (npm install --global @vscode/vsce), or say where with --vsce`);
} finally {
    rmSync(stage, { recursive: true, force: true });
}
