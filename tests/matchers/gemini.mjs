// The matcher of gemini-cli's edit tool, without the model that it asks for a repair.
import { answer, load } from "./requests.mjs";

const matcher = await load("gemini/dist/src/tools/edit.js");
const config = new Proxy({}, { get: () => () => undefined });

await answer(async (text, old, wanted) => {
  const isCrlf = text.includes("\r\n");
  const params = { file_path: "file", old_string: old, new_string: wanted };
  const currentContent = text.replace(/\r\n/g, "\n");
  const found = await matcher.calculateReplacement(config, { params, currentContent, abortSignal: undefined });
  if (found.occurrences !== 1 || found.finalOldString === found.finalNewString) return null;
  return isCrlf ? found.newContent.replace(/\n/g, "\r\n") : found.newContent;
});
