// Carries requests to a matcher: JSON lines `{text, old, new}` on standard input, one `{text}` for each on standard output.
// `text` is null for a refusal.
import { register } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

register("./stubs.mjs", import.meta.url);

/** The module `path` of the folder of packages, which is the first argument. */
export function load(path) {
  return import(pathToFileURL(`${process.argv[2]}/matchers-packages/${path}`).href);
}

/** Answers each request with what `replace(text, old, new)` resolves to; an error is a refusal. */
export async function answer(replace) {
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const request = JSON.parse(line);
    let text = null;
    try {
      text = (await replace(request.text, request.old, request.new)) ?? null;
    } catch (error) {
      if (error instanceof TypeError || error instanceof ReferenceError) throw error;
    }
    process.stdout.write(`${JSON.stringify({ text })}\n`);
  }
}
