// The files of the extension import each other in one direction.
//
// Rule: read from the sources; imports of types count as well, because a circle of types is a circle for the reader.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

const SOURCES = path.resolve("src");

/** The files that a file imports, statically or later. */
function importsOf(file: string): string[] {
    const text = readFileSync(file, "utf8");
    const found = text.matchAll(/(?:from|import\() ?"(\.[^"]+)"/g);
    return [...found].map(([, name = ""]) => path.resolve(path.dirname(file), name));
}

/** The files of a circle in the order in which they import each other; undefined if absent. */
function circleIn(graph: ReadonlyMap<string, readonly string[]>): string[] | undefined {
    const done = new Set<string>();
    const trail: string[] = [];
    const visit = (file: string): string[] | undefined => {
        if (trail.includes(file)) return [...trail.slice(trail.indexOf(file)), file];
        if (done.has(file)) return undefined;
        trail.push(file);
        for (const next of graph.get(file) ?? []) {
            const circle = visit(next);
            if (circle) return circle;
        }
        trail.pop();
        done.add(file);
        return undefined;
    };
    for (const file of graph.keys()) {
        const circle = visit(file);
        if (circle) return circle;
    }
    return undefined;
}

test("no files import each other in a circle", () => {
    const names = readdirSync(SOURCES, { recursive: true, encoding: "utf8" });
    const files = names.filter((name) => /\.tsx?$/.test(name)).map((name) => path.join(SOURCES, name));
    assert.ok(files.length > 80, "the sources are found");
    const graph = new Map(files.map((file) => [file, importsOf(file)]));
    const circle = circleIn(graph)?.map((file) => path.relative(SOURCES, file));
    assert.equal(circle, undefined, `a circle: ${circle?.join(" → ")}`);
});

test("a circle is found", () => {
    assert.deepEqual(circleIn(new Map([["a", ["b"]], ["b", ["c"]], ["c", ["b"]]])), ["b", "c", "b"]);
});
