// Where the server program is found.

import assert from "node:assert/strict";
import { test } from "node:test";
import { locate, type Surroundings } from "../logic/locate.ts";

function around(changes: Partial<Surroundings>, programs: string[] = []): Surroundings {
    return {
        setting: "",
        extensionFolder: "/ext",
        home: "/home/me",
        workspaceFolder: "/w",
        searchPath: "/usr/bin:relative:/opt/bin",
        platform: "linux",
        isProgram: (file) => programs.includes(file),
        ...changes,
    };
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
    assert.match(result.found ? "" : `${result.reason} ${result.hint}`, /was not found.*cargo install/);
});

test("on Windows the program has its ending", () => {
    const windows = around({ platform: "win32", searchPath: "" }, ["/ext/bin/kode-ls.exe"]);
    assert.equal(locate(windows).found, true);
});
