// Lists the parts of the program beside its own code: the licenses with the texts that have to go with it, or a list for
// machines (SBOM, CycloneDX 1.5).
//
//   cargo metadata --locked --format-version 1 --filter-platform HOST | node contents.mjs licenses
//   cargo metadata --locked --format-version 1 --filter-platform HOST | node contents.mjs sbom Cargo.lock
//
// Rule: linked packages count, and packages for builds and tests do not. A package without a text is
// listed with the name of its license, and never left out. The same input gives the same output.
import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";

const [form, lock] = process.argv.slice(2);
const { packages, resolve } = JSON.parse(readFileSync(0, "utf8"));
const known = new Map(packages.map((one) => [one.id, one]));
const nodes = new Map(resolve.nodes.map((node) => [node.id, node]));
const program = packages.find((one) => one.name === "kode-ls" && one.source === null);

/** The part of a package in the program: a macro is run by the compiler, and so are its dependencies. */
function brings(id) {
    const isMacro = (one) => known.get(one).targets.some((target) => target.kind.includes("proc-macro"));
    const linked = nodes.get(id).deps.filter(({ dep_kinds: kinds }) => kinds.some(({ kind }) => kind === null));
    return linked.map(({ pkg }) => pkg).filter((one) => !isMacro(one));
}

const linked = new Set();
const waiting = [program.id];
while (waiting.length > 0) {
    const id = waiting.pop();
    if (linked.has(id)) continue;
    linked.add(id);
    waiting.push(...brings(id));
}
const foreign = [...linked].map((id) => known.get(id)).filter((one) => one.source !== null);
foreign.sort((a, b) => (`${a.name} ${a.version}` < `${b.name} ${b.version}` ? -1 : 1));

/** The texts that lie in a package, in the order of their files' names. */
function texts(one) {
    const folder = path.dirname(one.manifest_path);
    const isText = (file) => file.isFile() && /^(licen[cs]e|copying|copyright|notice|unlicense)/i.test(file.name);
    const names = readdirSync(folder, { withFileTypes: true }).filter(isText).map((file) => file.name);
    return names.sort().map((name) => readFileSync(path.join(folder, name), "utf8").replaceAll("\r\n", "\n").trim());
}

function licenses() {
    const byText = new Map();
    const lines = ["What is in kode-ls beside its own code, and under which license.", ""];
    for (const one of foreign) {
        const title = `${one.name} ${one.version}`;
        lines.push(`${title}: ${one.license ?? "see its text"}${one.repository ? `, ${one.repository}` : ""}`);
        for (const text of texts(one)) byText.set(text, [...(byText.get(text) ?? []), title]);
    }
    for (const [text, titles] of byText) lines.push("", "-".repeat(80), titles.join(", "), "", text);
    return lines.join("\n");
}

/** The checksums of the registry, by name and version. */
function checksums() {
    const found = new Map();
    for (const entry of readFileSync(lock, "utf8").split("[[package]]")) {
        const value = (key) => entry.match(new RegExp(`^${key} = "(.*)"$`, "m"))?.[1];
        if (value("checksum")) found.set(`${value("name")} ${value("version")}`, value("checksum"));
    }
    return found;
}

function sbom() {
    const reference = (one) => `pkg:cargo/${one.name}@${one.version}`;
    const sums = checksums();
    const component = (one) => ({
        type: one.id === program.id ? "application" : "library",
        "bom-ref": reference(one),
        name: one.name,
        version: one.version,
        ...(one.license && { licenses: [{ expression: one.license.replaceAll("/", " OR ").replace(/ +/g, " ") }] }),
        ...(one.source !== null && {
            purl: reference(one),
            hashes: [{ alg: "SHA-256", content: sums.get(`${one.name} ${one.version}`) }],
        }),
    });
    const own = [...linked].map((id) => known.get(id)).filter((one) => one.source === null && one.id !== program.id);
    const dependencies = [...linked].map((id) => ({
        ref: reference(known.get(id)),
        dependsOn: [...new Set(brings(id).map((one) => reference(known.get(one))))].sort(),
    }));
    dependencies.sort((a, b) => (a.ref < b.ref ? -1 : 1));
    const bom = {
        bomFormat: "CycloneDX",
        specVersion: "1.5",
        version: 1,
        metadata: { component: component(program) },
        components: [...own, ...foreign].map(component),
        dependencies,
    };
    return JSON.stringify(bom, null, 2);
}

if (form === "licenses") console.log(licenses());
else if (form === "sbom" && lock) console.log(sbom());
else throw new Error("say `licenses`, or `sbom` and the lock file");
