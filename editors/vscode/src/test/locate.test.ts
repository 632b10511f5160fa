// Where the server program is found.

import assert from "node:assert/strict";
import { test } from "node:test";
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { isFile, isProgram, makeProgram } from "../host/process.ts";
import { locate, type Location, PLATFORMS, type Surroundings } from "../logic/locate.ts";

function around(changes: Partial<Surroundings>, programs: string[] = []): Surroundings {
    return {
        setting: "",
        extensionFolder: "/ext",
        home: "/home/me",
        workspaceFolder: "/w",
        searchPath: "/usr/bin:relative:/opt/bin",
        platform: "linux",
        arch: "x64",
        isAlpine: false,
        isProgram: (file) => programs.includes(file),
        isFile: (file) => programs.includes(file),
        makeProgram: () => false,
        ...changes,
    };
}

function words(location: Location): string {
    return location.found ? "" : `${location.reason} ${location.hint}`;
}

test("the setting wins over what came with the extension and what is in the search path", () => {
    const everywhere = ["/my/kode-ls", "/ext/bin/kode-ls", "/usr/bin/kode-ls"];
    assert.deepEqual(locate(around({ setting: " /my/kode-ls " }, everywhere)), {
        found: true,
        file: "/my/kode-ls",
        source: "setting",
    });
    assert.deepEqual(locate(around({}, everywhere)), { found: true, file: "/ext/bin/kode-ls", source: "bundled" });
    assert.deepEqual(locate(around({}, ["/opt/bin/kode-ls"])), {
        found: true,
        file: "/opt/bin/kode-ls",
        source: "path",
    });
});

test("a setting may begin at home or in the workspace", () => {
    const files = ["/home/me/bin/kode-ls", "/w/target/kode-ls"];
    assert.equal(locate(around({ setting: "~/bin/kode-ls" }, files)).found, true);
    assert.equal(locate(around({ setting: "target/kode-ls" }, files)).found, true);
    const nowhere = locate(around({ setting: "target/kode-ls", workspaceFolder: undefined }, files));
    assert.match(nowhere.found ? "" : nowhere.reason, /relative path, and no folder is open/);
});

test("a setting that leads nowhere is told and not passed over", () => {
    const wrong = locate(around({ setting: "/gone/kode-ls" }, ["/usr/bin/kode-ls"]));
    assert.equal(wrong.found, false);
    assert.match(wrong.found ? "" : wrong.reason, /there is no program `\/gone\/kode-ls`/);
});

test("a relative folder of the search path is not looked into", () => {
    const result = locate(around({}, ["relative/kode-ls", "/w/relative/kode-ls"]));
    assert.match(words(result), /was not found.*no program for linux-x64, and none is on the PATH/);
});

test("on a platform with an extension of its own, the hint names it", () => {
    assert.match(words(locate(around({}))), /Install the extension for linux-x64 \(`kode-linux-x64-….vsix`\), or set `kode.server.path`/);
    const alpine = around({ isAlpine: true, arch: "arm64" });
    assert.match(words(locate(alpine)), /no program for alpine-arm64.*kode-alpine-arm64-/);
    assert.match(words(locate(around({ platform: "darwin", arch: "arm64" }))), /kode-darwin-arm64-/);
});

test("on any other platform, the hint lists those that have one and says how to set the program", () => {
    const said = words(locate(around({ arch: "riscv64" })));
    assert.match(said, /no program for linux-riscv64/);
    for (const platform of PLATFORMS) assert.ok(said.includes(platform), `${platform}: ${said}`);
    assert.match(said, /cargo install --path server --locked.*set `kode.server.path`/);
});

test("a program of the extension that has lost its executable bit gets it back", { skip: process.platform === "win32" }, () => {
    const folder = mkdtempSync(path.join(tmpdir(), "kode-locate-"));
    try {
        const file = path.join(folder, "kode-ls");
        writeFileSync(file, "");
        chmodSync(file, 0o644);
        assert.equal(isProgram(file), false);
        assert.equal(isFile(file), true);
        const repaired: string[] = [];
        const files = around({
            isProgram: (one) => one === "/usr/bin/kode-ls",
            isFile: (one) => one === "/ext/bin/kode-ls",
            makeProgram: (one) => repaired.push(one) > 0 && makeProgram(file),
        });
        assert.deepEqual(locate(files), { found: true, file: "/ext/bin/kode-ls", source: "bundled" });
        assert.deepEqual(repaired, ["/ext/bin/kode-ls"]);
        assert.equal(statSync(file).mode & 0o777, 0o755);
        assert.equal(isProgram(file), true);
        assert.equal(makeProgram(path.join(folder, "absent")), false);
        assert.equal(isFile(path.join(folder, "absent")), false);
    } finally {
        rmSync(folder, { recursive: true });
    }
});

test("a program of the extension that cannot be run is named and not passed over", () => {
    const refused = around({
        isProgram: (file) => file === "/usr/bin/kode-ls",
        isFile: (file) => file === "/ext/bin/kode-ls",
        makeProgram: () => false,
    });
    assert.match(words(locate(refused)), /`\/ext\/bin\/kode-ls` is the program of this extension, and it may not be run.*chmod \+x/);
});

test("on Windows the program has its ending", () => {
    const windows = around({ platform: "win32", searchPath: "" }, ["/ext/bin/kode-ls.exe"]);
    assert.equal(locate(windows).found, true);
});
