// Loads one file of a package without the packages that it does not need: a name imported from elsewhere is a function that
// does nothing.
//
// Rule: what decides a match is never a stub. `KEPT` names the modules that the matchers use.
import { readFile } from "node:fs/promises";
import { isBuiltin } from "node:module";
import { fileURLToPath } from "node:url";

const KEPT = ["fast-levenshtein", "fastest-levenshtein", "../utils/textUtils.js", "../../utils/text.js"];
const SCHEME = "stub:";

export async function resolve(specifier, context, next) {
  const parent = context.parentURL ?? "";
  if (!parent.includes("/matchers-packages/") || isBuiltin(specifier) || KEPT.includes(specifier)) return next(specifier, context);
  return { url: SCHEME + encodeURIComponent(JSON.stringify([parent, specifier])), shortCircuit: true };
}

export async function load(url, context, next) {
  if (!url.startsWith(SCHEME)) return next(url, context);
  const [parent, specifier] = JSON.parse(decodeURIComponent(url.slice(SCHEME.length)));
  const source = await readFile(fileURLToPath(parent), "utf8");
  const names = new Set();
  for (const found of source.matchAll(/import\s+(?:[\w$]+\s*,\s*)?\{([^}]*)\}\s*from\s*['"]([^'"]+)['"]/g)) {
    if (found[2] !== specifier) continue;
    for (const name of found[1].split(",")) names.add(name.trim().split(/\s+as\s+/)[0]);
  }
  names.delete("");
  const exported = [...names].filter((name) => name !== "default").map((name) => `export const ${name} = stub;`);
  const stub = `
    const stub = new Proxy(function () {}, {
      get: (target, name) => (name === "prototype" ? target.prototype : name === "then" ? undefined : stub),
      apply: () => undefined,
      construct: () => ({}),
    });
    export default stub;`;
  return { format: "module", source: `${stub}\n${exported.join("\n")}`, shortCircuit: true };
}
