// `kode-ls acp` behind the TypeScript SDK of the Agent Client Protocol.
//
// Rule: every line that the agent writes is checked by the SDK's own validators, answers by the method they answer. What the
// SDK itself gives to its handlers is what a client would show. Run by tests/node/run, which installs the SDK outside of the
// checkout.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const sdk = join(process.env.KODE_LS_NODE_TOOLS, "node_modules/@agentclientprotocol/sdk");
const load = (path) => import(pathToFileURL(join(sdk, path)));
const acp = await load("dist/v1/stable/acp.js");
const validators = await load("dist/v1/schema/zod.gen.js");

const say = (text) => ({ content: [{ type: "text", text }] });
const call = (name, input) => ({ content: [{ type: "tool_use", name, input }] });

/** The name of the validator of a method: `session/set_mode` has `zSetSessionModeRequest`. */
function validator(method, suffix) {
  const special = {
    "session/update": "zSessionNotification",
    "session/prompt": `zPrompt${suffix}`,
    "session/request_permission": `zRequestPermission${suffix}`,
    "elicitation/complete": "zCompleteElicitationNotification",
    "session/list": `zListSessions${suffix}`,
    "$/cancel_request": "zCancelRequestNotification",
  };
  const words = method.split(/[/_]/).map((word) => word[0].toUpperCase() + word.slice(1));
  const [group, verb, ...rest] = words;
  const name =
    special[method] ??
    { Fs: `z${verb}${rest.join("")}${suffix}`, Session: `z${verb}Session${rest.join("")}${suffix}` }[group] ??
    `z${words.join("")}${suffix}`;
  const found = validators[name];
  assert.ok(found, `there is a validator ${name} for ${method}`);
  return found;
}

/** Checks the lines of an agent; `sent` has the methods of the requests to it, by id. */
function check(line, sent, seen) {
  const message = JSON.parse(line);
  assert.equal(message.jsonrpc, "2.0");
  if (message.method) {
    const suffix = message.id === undefined ? "Notification" : "Request";
    validator(message.method, suffix).parse(message.params);
  } else {
    const method = sent.get(message.id);
    assert.ok(method, `the answer ${message.id} is one of a request`);
    if (message.error) assert.ok(Number.isInteger(message.error.code) && message.error.message);
    else validator(method, "Response").parse(message.result ?? {});
  }
  seen.push(message.method ?? sent.get(message.id));
}

/** An agent for a model of these steps, connected to a client of the SDK; `run` gets what it needs. */
async function connected(t, steps, run, answer = "allow_once") {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "kode-acp-")));
  const project = join(folder, "project");
  mkdirSync(project);
  const script = join(folder, "script.json");
  writeFileSync(script, JSON.stringify({ programs: [{ steps }] }));
  const model = spawn(process.env.KODE_LS_BIN, ["scripted-model", "--script", script], { stdio: ["pipe", "pipe", "inherit"] });
  const { value: first } = await createInterface({ input: model.stdout })[Symbol.asyncIterator]().next();
  const agent = spawn(process.env.KODE_LS_BIN, ["acp"], {
    cwd: project,
    stdio: ["pipe", "pipe", "inherit"],
    env: {
      PATH: process.env.PATH,
      KODE_LS_HOME: join(folder, "home"),
      ANTHROPIC_BASE_URL: JSON.parse(first).listening,
      ANTHROPIC_API_KEY: "test-key",
    },
  });
  const ended = new Promise((resolve) => agent.on("exit", resolve));
  t.after(async () => {
    agent.stdin.end();
    assert.equal(await ended, 0);
    model.stdin.end();
    rmSync(folder, { recursive: true });
  });

  const sent = new Map();
  const seen = [];
  const faults = [];
  const lines = (onLine) => {
    let rest = "";
    return new TransformStream({
      transform(chunk, controller) {
        const parts = (rest + Buffer.from(chunk).toString("utf8")).split("\n");
        rest = parts.pop();
        for (const line of parts.filter(Boolean)) {
          try {
            onLine(line);
          } catch (error) {
            faults.push(`${error.message}: ${line}`);
          }
        }
        controller.enqueue(chunk);
      },
    });
  };
  const outgoing = lines((line) => {
    const { id, method } = JSON.parse(line);
    if (id !== undefined && method) sent.set(id, method);
  });
  outgoing.readable.pipeTo(Writable.toWeb(agent.stdin)).catch(() => {});
  const incoming = Readable.toWeb(agent.stdout).pipeThrough(lines((line) => check(line, sent, seen)));

  const updates = [];
  const asked = [];
  const methods = acp.methods;
  const client = acp
    .client({ name: "kode-tests" })
    .onNotification(methods.client.session.update, ({ params }) => void updates.push(params.update))
    .onRequest(methods.client.session.requestPermission, async ({ params }) => {
      asked.push(params);
      if (answer === "wait") await new Promise(() => {});
      const option = params.options.find((one) => one.kind === answer);
      return { outcome: { outcome: "selected", optionId: option.optionId } };
    })
    .onRequest(methods.client.fs.readTextFile, ({ params }) => ({ content: readFileSync(params.path, "utf8") }))
    .onRequest(methods.client.fs.writeTextFile, ({ params }) => {
      writeFileSync(params.path, params.content);
      return {};
    });
  await client.connectWith(acp.ndJsonStream(outgoing.writable, incoming), async (context) => {
    const request = (method, params) => context.request(method, params);
    const told = await request(methods.agent.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: { fs: { readTextFile: true, writeTextFile: true } },
      clientInfo: { name: "kode-tests", version: "1" },
    });
    const text = () => updates.filter((one) => one.sessionUpdate === "agent_message_chunk").map((one) => one.content.text).join("");
    const prompt = (sessionId, words) => request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: words }] });
    await run({ context, request, methods: methods.agent, told, project, updates, asked, text, prompt, seen });
  });
  assert.deepEqual(faults, []);
}

test("an allowed edit is shown as a diff and written by the client", (t) => {
  const steps = [
    call("Read", { file_path: "a.txt" }),
    call("Edit", { file_path: "a.txt", old_string: "two", new_string: "2" }),
    say("Done."),
  ];
  return connected(t, steps, async ({ request, methods, told, project, updates, asked, text, prompt, seen }) => {
    assert.equal(told.protocolVersion, 1);
    writeFileSync(join(project, "a.txt"), "one\ntwo\n");
    const { sessionId } = await request(methods.session.new, { cwd: project, mcpServers: [] });
    assert.equal((await prompt(sessionId, "edit")).stopReason, "end_turn");
    assert.equal(text(), "Done.");
    assert.equal(readFileSync(join(project, "a.txt"), "utf8"), "one\n2\n");
    const [{ toolCall, options }] = asked;
    assert.equal(toolCall.content.find((one) => one.type === "diff").newText, "one\n2\n");
    assert.ok(options.some((one) => one.kind === "reject_once"));
    assert.deepEqual(updates.filter((one) => one.sessionUpdate === "tool_call").map((one) => one.kind), ["read", "edit"]);
    for (const method of ["session/update", "session/request_permission", "fs/read_text_file", "session/prompt"])
      assert.ok(seen.includes(method), `${method} was checked`);
  });
});

test("a turn that is cancelled while it asks ends as cancelled", (t) =>
  connected(
    t,
    [call("Bash", { command: "touch made" }), say("Never.")],
    async ({ context, request, methods, project, asked, prompt }) => {
      const { sessionId } = await request(methods.session.new, { cwd: project, mcpServers: [] });
      const turn = prompt(sessionId, "run");
      while (asked.length === 0) await new Promise((resolve) => setImmediate(resolve));
      await context.notify(methods.session.cancel, { sessionId });
      assert.equal((await turn).stopReason, "cancelled");
    },
    "wait",
  ));

test("sessions are listed, replayed, renamed by their title, closed and deleted", (t) =>
  connected(t, [say("Remember this.")], async ({ request, methods, project, updates, text, prompt }) => {
    const begun = await request(methods.session.new, { cwd: project, mcpServers: [] });
    const { sessionId } = begun;
    await prompt(sessionId, "hello there");
    await request(methods.session.setMode, { sessionId, modeId: "plan" });
    const option = begun.configOptions[0];
    await request(methods.session.setConfigOption, { sessionId, configId: option.id, value: option.currentValue });
    await request(methods.session.close, { sessionId });
    const { sessions } = await request(methods.session.list, { cwd: project });
    assert.deepEqual(sessions.map((one) => one.sessionId), [sessionId]);
    updates.length = 0;
    await request(methods.session.load, { sessionId, cwd: project, mcpServers: [] });
    assert.equal(updates.find((one) => one.sessionUpdate === "user_message_chunk").content.text, "hello there");
    assert.equal(text(), "Remember this.");
    await request(methods.session.close, { sessionId });
    await request(methods.session.resume, { sessionId, cwd: project, mcpServers: [] });
    await request(methods.session.close, { sessionId });
    await request(methods.session.delete, { sessionId });
    assert.deepEqual((await request(methods.session.list, { cwd: project })).sessions, []);
  }));

test("what is wrong is refused with an error of JSON-RPC, and the connection goes on", (t) =>
  connected(t, [say("Still here.")], async ({ request, methods, project, text, prompt }) => {
    await assert.rejects(request(methods.session.prompt, { sessionId: "none", prompt: [{ type: "text", text: "x" }] }));
    await assert.rejects(request("session/unknown", {}), { code: -32601 });
    const { sessionId } = await request(methods.session.new, { cwd: project, mcpServers: [] });
    await prompt(sessionId, "hello");
    assert.equal(text(), "Still here.");
  }));
