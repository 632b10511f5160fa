// Prints the licenses of everything that is in the program, with the texts that have to go with it.
//
//   cargo metadata --locked --format-version 1 --filter-platform HOST | node third-party.mjs
//
// Rule: what is linked into the program counts, and what only builds or tests it does not. A package without a text is
// listed with the name of its license, and never left out.
import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";

const { packages, resolve } = JSON.parse(readFileSync(0, "utf8"));
const known = new Map(packages.map((one) => [one.id, one]));
const nodes = new Map(resolve.nodes.map((node) => [node.id, node]));

const linked = new Set();
const waiting = packages.filter((one) => one.name === "kode-ls" && one.source === null).map((one) => one.id);
while (waiting.length > 0) {
    const id = waiting.pop();
    if (linked.has(id)) continue;
    linked.add(id);
    for (const { pkg, dep_kinds: kinds } of nodes.get(id).deps) {
        // A macro is run by the compiler and is not in the program; neither is what it is made of.
        const isMacro = known.get(pkg).targets.some((target) => target.kind.includes("proc-macro"));
        if (!isMacro && kinds.some(({ kind }) => kind === null)) waiting.push(pkg);
    }
}

/** The texts that lie in the package, by their files' names. */
function texts(one) {
    const folder = path.dirname(one.manifest_path);
    const names = readdirSync(folder).filter((name) => /^(licen[cs]e|copying|copyright|notice|unlicense)/i.test(name));
    return names.sort().flatMap((name) => {
        try {
            return [readFileSync(path.join(folder, name), "utf8").replaceAll("\r\n", "\n").trim()];
        } catch (error) {
            // A folder of texts that belong to single files.
            if (error.code === "EISDIR") return [];
            throw error;
        }
    });
}

const byText = new Map();
const lines = ["What is in kode-ls beside its own code, and under which license.", ""];
const foreign = [...linked].map((id) => known.get(id)).filter((one) => one.source !== null);
foreign.sort((a, b) => (`${a.name} ${a.version}` < `${b.name} ${b.version}` ? -1 : 1));
for (const one of foreign) {
    const title = `${one.name} ${one.version}`;
    lines.push(`${title}: ${one.license ?? "see its text"}${one.repository ? `, ${one.repository}` : ""}`);
    for (const text of texts(one)) byText.set(text, [...(byText.get(text) ?? []), title]);
}
for (const [text, titles] of byText) lines.push("", "-".repeat(80), titles.join(", "), "", text);
console.log(lines.join("\n"));
