// The matcher of pi's edit tool.
import { answer, load } from "./requests.mjs";

const matcher = await load("pi/dist/core/tools/edit-diff.js");

await answer((text, oldText, newText) => {
  const normalized = matcher.normalizeToLF(text);
  const { replacements } = matcher.applyEditsToNormalizedContent(normalized, [{ oldText, newText }], "file");
  return matcher.applyReplacementsToOriginal(text, replacements);
});
