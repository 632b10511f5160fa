// The manifest, the code and the documentation refer to the same commands and settings.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

interface Manifest {
    engines: { vscode: string };
    devDependencies: Record<string, string>;
    contributes: {
        commands: { command: string }[];
        configuration: { properties: Record<string, { default: unknown }> }[];
        menus: Record<string, { command: string }[]>;
        keybindings: { command: string }[];
    };
}

const read = (name: string) => readFileSync(name, "utf8");
const manifest = JSON.parse(read("package.json")) as Manifest;
const commands = manifest.contributes.commands.map(({ command }) => command);
const settings = manifest.contributes.configuration.flatMap(({ properties }) => Object.keys(properties));

test("the documentation names every command and every setting, and none that there is not", () => {
    const named = new Set([...read("README.md").matchAll(/`(kode\.\w+\.\w+)`/g)].map(([, name]) => name ?? ""));
    assert.deepEqual([...named].sort(), [...commands, ...settings].sort());
});

test("every command of the manifest is carried out, and menus and keys name no other", () => {
    const carriedOut = [...read("src/host/commands.ts").matchAll(/^ {4}"(kode\.\w+\.\w+)":/gm)].map(([, name]) => name);
    for (const command of commands) assert.ok(carriedOut.includes(command), command);
    const { menus, keybindings } = manifest.contributes;
    for (const { command } of [...Object.values(menus).flat(), ...keybindings]) {
        if (command.startsWith("kode.")) assert.ok(commands.includes(command), command);
    }
});

test("the types that the code is checked against are those of the oldest editor it runs in", () => {
    assert.equal(manifest.devDependencies["@types/vscode"], manifest.engines.vscode.replace("^", ""));
});
