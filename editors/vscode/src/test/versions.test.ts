// When the user learns that the server is old.

import assert from "node:assert/strict";
import test from "node:test";
import { compareVersions, tellsOfOld } from "../logic/versions.ts";

const HOUR = 60 * 60 * 1_000;

test("versions are compared by their numbers, and a build before a release is older than it", () => {
    const rising = ["0.1.0", "0.2.0-beta.2", "0.2.0-beta.10", "0.2.0", "0.10.0", "1.0.0"];
    for (const [index, version] of rising.entries()) {
        assert.equal(compareVersions(version, version), 0);
        for (const later of rising.slice(index + 1)) {
            assert.ok(compareVersions(version, later) < 0, `${version} < ${later}`);
            assert.ok(compareVersions(later, version) > 0, `${later} > ${version}`);
        }
    }
    assert.equal(compareVersions("v1.2.3+build", "1.2.3"), 0);
});

test("only an older server is told of, and nothing that is no version", () => {
    assert.equal(tellsOfOld("0.1.0", "0.2.0", {}, HOUR), true);
    for (const server of ["0.2.0", "0.3.0", "", "unknown"]) assert.equal(tellsOfOld(server, "0.2.0", {}, HOUR), false);
});

test("it is told once an hour, and not again of a version that was skipped", () => {
    assert.equal(tellsOfOld("0.1.0", "0.2.0", { at: HOUR }, 2 * HOUR - 1), false);
    assert.equal(tellsOfOld("0.1.0", "0.2.0", { at: HOUR }, 2 * HOUR), true);
    assert.equal(tellsOfOld("0.1.0", "0.2.0", { at: 2 * HOUR }, HOUR), true, "the clock was set back");
    assert.equal(tellsOfOld("0.1.0", "0.2.0", { skipped: "0.2.0" }, HOUR), false);
    assert.equal(tellsOfOld("0.1.0", "0.3.0", { skipped: "0.2.0" }, HOUR), true);
});
