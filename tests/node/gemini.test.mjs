// Google's own SDK takes the scripted model for the real API.
//
// Rule: the scripted model is what all other tests believe, so an independent client judges it. Run by
// tests/node/run, which installs the SDK outside of the checkout.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";

const require = createRequire(join(process.env.KODE_LS_NODE_TOOLS, "package.json"));
const { ApiError, FunctionCallingConfigMode, GoogleGenAI } = require("@google/genai");

const MODEL = "gemini-3-test";
const read = {
  name: "Read",
  description: "Reads a file.",
  parametersJsonSchema: { type: "object", properties: { file_path: { type: "string" } }, required: ["file_path"] },
};
const config = { tools: [{ functionDeclarations: [read] }], thinkingConfig: { includeThoughts: true } };

/** Serves steps for the time of a test; `ask` asks once whole and once streamed. */
async function serve(t, ...steps) {
  const folder = mkdtempSync(join(tmpdir(), "kode-gemini-"));
  const script = join(folder, "script.json");
  writeFileSync(script, JSON.stringify({ programs: [{ steps }] }));
  const server = spawn(process.env.KODE_LS_BIN, ["scripted-model", "--script", script], { stdio: ["pipe", "pipe", "inherit"] });
  t.after(() => {
    server.stdin.end();
    rmSync(folder, { recursive: true });
  });
  for await (const line of createInterface({ input: server.stdout })) {
    const baseUrl = JSON.parse(line).listening;
    return new GoogleGenAI({ apiKey: "test-key", httpOptions: { baseUrl, retryOptions: { attempts: 1 } } });
  }
  throw new Error("the scripted model said nothing");
}

const user = (...parts) => ({ role: "user", parts });

/** All parts of an answer, however it came, with its last finish reason and usage. */
async function whole(client, contents) {
  const answer = await client.models.generateContent({ model: MODEL, contents, config });
  const [candidate] = answer.candidates;
  return { parts: candidate.content.parts, finishReason: candidate.finishReason, usage: answer.usageMetadata };
}

async function streamed(client, contents) {
  const stream = await client.models.generateContentStream({ model: MODEL, contents, config });
  const answer = { parts: [] };
  for await (const chunk of stream) {
    const [candidate] = chunk.candidates;
    answer.parts.push(...(candidate.content.parts ?? []));
    answer.finishReason = candidate.finishReason ?? answer.finishReason;
    answer.usage = chunk.usageMetadata;
  }
  return answer;
}

const text = (answer) => answer.parts.filter((part) => !part.thought).map((part) => part.text ?? "").join("");

for (const ask of [whole, streamed]) {
  test(`${ask.name}: text, thoughts and usage`, async (t) => {
    const usage = { input_tokens: 200, output_tokens: 34, cache_read_input_tokens: 1000, reasoning_tokens: 20 };
    const content = [{ type: "thinking", thinking: "Let me see…" }, { type: "text", text: "It says 🙂 häh?" }];
    const client = await serve(t, { content, usage, chunk: 1 });
    const answer = await ask(client, [user({ text: "Look at it." })]);
    assert.equal(text(answer), "It says 🙂 häh?");
    assert.equal(answer.parts.filter((part) => part.thought).map((part) => part.text).join(""), "Let me see…");
    assert.equal(answer.finishReason, "STOP");
    assert.deepEqual(
      { ...answer.usage },
      { promptTokenCount: 1200, candidatesTokenCount: 14, thoughtsTokenCount: 20, cachedContentTokenCount: 1000, totalTokenCount: 1234 },
    );
    assert.ok(answer.parts.at(-1).thoughtSignature, "the last part is signed");
  });

  test(`${ask.name}: calls, and the history that they make`, async (t) => {
    const call = (path) => ({ type: "tool_use", name: "Read", input: { file_path: path } });
    const client = await serve(t, { content: [call("/a"), call("/b")] }, { content: [{ type: "text", text: "Done: {{last_result}}" }] });
    const prompt = user({ text: "Look at both." });
    const first = await ask(client, [prompt]);
    const calls = first.parts.filter((part) => part.functionCall);
    assert.deepEqual(calls.map((part) => part.functionCall.args.file_path), ["/a", "/b"]);
    assert.deepEqual(calls.map((part) => Boolean(part.thoughtSignature)), [true, false]);
    const results = calls.map(({ functionCall: { id, name, args } }) => ({
      functionResponse: { id, name, response: { output: `text of ${args.file_path}` } },
    }));
    const history = [prompt, { role: "model", parts: calls }, user(...results)];
    assert.equal(text(await ask(client, history)), "Done: text of /b");

    const unsigned = calls.map(({ functionCall }) => ({ functionCall }));
    await assert.rejects(ask(client, [prompt, { role: "model", parts: unsigned }, user(...results)]), (error) => {
      assert.ok(error instanceof ApiError && error.status === 400, String(error));
      return /thought_signature/.test(error.message);
    });
    await assert.rejects(ask(client, [prompt, { role: "model", parts: calls }]), ApiError);
  });

  test(`${ask.name}: faults have the SDK's errors`, async (t) => {
    const client = await serve(t, { content: [{ type: "text", text: "Never." }], faults: [{ status: 429 }] });
    await assert.rejects(ask(client, [user({ text: "hello" })]), (error) => error.status === 429);
  });
}

test("documents and pictures are taken, and a mode for calls", async (t) => {
  const client = await serve(t, { content: [{ type: "text", text: "A page." }] });
  const pdf = { inlineData: { mimeType: "application/pdf", data: "JVBERi0xLjQK" } };
  const toolConfig = { functionCallingConfig: { mode: FunctionCallingConfigMode.AUTO } };
  const contents = [user({ text: "What is it?" }, pdf)];
  const answer = await client.models.generateContent({ model: MODEL, contents, config: { ...config, toolConfig } });
  assert.equal(answer.text, "A page.");
});
