// Where the program of the server is: the user's setting, the one that came with the extension, or the search path.
//
// Rule: the first source that says anything decides. A setting that leads nowhere is an error and never passed over, and so
// is a program of the extension that cannot be run, or the user would run another program than the one they named.

import path from "node:path";

/** The platforms that have an extension with the program, as server/release builds them. */
export const PLATFORMS = ["darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64", "alpine-arm64", "alpine-x64", "win32-x64"];

/** The folders that the search may check. */
export interface Surroundings {
    /** `kode.server.path` unchanged in the settings; empty when it is not set. */
    setting: string;
    /** The folder of the extension. */
    extensionFolder: string;
    /** The user's home folder. */
    home: string;
    /** The folders of the first workspace folder, for a relative setting; absent without one. */
    workspaceFolder?: string | undefined;
    /** The search path, as the environment has it. */
    searchPath: string;
    platform: NodeJS.Platform;
    /** The architecture, as Node names it. */
    arch: string;
    /** Whether this is Alpine, whose C library has platforms of its own. */
    isAlpine: boolean;
    /** Whether there is a file that may be run. */
    isProgram(file: string): boolean;
    /** Whether there is a file, which may be run or not. */
    isFile(file: string): boolean;
    /** Makes a file one that may be run; false when the system refuses. */
    makeProgram(file: string): boolean;
}

/** Where it was found, or why it was not. */
export type Location =
    | { found: true; file: string; source: "setting" | "bundled" | "path" }
    | { found: false; reason: string; hint: string };

/** Looks for the program. */
export function locate(around: Surroundings): Location {
    const name = around.platform === "win32" ? "kode-ls.exe" : "kode-ls";
    const setting = around.setting.trim();
    if (setting !== "") return ofSetting(setting, around);

    const bundled = path.join(around.extensionFolder, "bin", name);
    if (around.isFile(bundled)) {
        // Some tools unpack the extension without the modes of its files.
        if (around.isProgram(bundled) || around.makeProgram(bundled)) return { found: true, file: bundled, source: "bundled" };
        return {
            found: false,
            reason: `\`${bundled}\` is the program of this extension, and it may not be run.`,
            hint: `Make it executable (\`chmod +x\`), or set \`kode.server.path\` to another program.`,
        };
    }

    const folders = around.searchPath.split(around.platform === "win32" ? ";" : ":");
    for (const folder of folders) {
        // A relative folder would let the workspace bring its own program.
        if (!path.isAbsolute(folder)) continue;
        const file = path.join(folder, name);
        if (around.isProgram(file)) return { found: true, file, source: "path" };
    }
    const here = `${around.isAlpine ? "alpine" : around.platform}-${around.arch}`;
    const elsewhere = "In a remote window, this is about the remote machine.";
    return {
        found: false,
        reason: `The language server \`${name}\` was not found: this extension has no program for ${here}, and none is on the PATH.`,
        hint: PLATFORMS.includes(here)
            ? `Install the extension for ${here} (\`kode-${here}-….vsix\`), or set \`kode.server.path\` to the program. ${elsewhere}`
            : `There are extensions with it for ${PLATFORMS.join(", ")}. Build it here with ` +
              `\`cargo install --path server --locked\` in a clone of kode-ls, and set \`kode.server.path\` to it. ${elsewhere}`,
    };
}

function ofSetting(setting: string, around: Surroundings): Location {
    const expanded = setting.replace(/^~(?=[\\/]|$)/, around.home);
    if (!path.isAbsolute(expanded) && around.workspaceFolder === undefined) {
        return {
            found: false,
            reason: `\`kode.server.path\` is \`${setting}\`, a relative path, and no folder is open to resolve it.`,
            hint: "Set an absolute path.",
        };
    }
    const file = path.resolve(around.workspaceFolder ?? around.home, expanded);
    if (around.isProgram(file)) return { found: true, file, source: "setting" };
    return {
        found: false,
        reason: `\`kode.server.path\` is \`${setting}\`, and there is no program \`${file}\`.`,
        hint: "Correct the setting, or clear it to use the bundled program or the one on the PATH.",
    };
}
