"""Compares the terminal behavior of kode-ls with that of other agents, and prints the table of server/docs/terminal.md.

    compare.py --kode-ls PROGRAM [--codex PROGRAM] [--claude PROGRAM]

Rule: every cell is observed here, against a model server that accepts any request and records it. Agents that are not named are
left out.
"""

import argparse
import json
import os
import pty
import select
import signal
import subprocess
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

LIMIT = 40
PIECES = ["The first half. ", "The second half."]


class Model(ThreadingHTTPServer):
    """Answers in the formats of Anthropic Messages and OpenAI Responses."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[str] = []
        self.plan: list[dict] = []
        self.pause = 0.0
        self.status = 200
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def begin(self, *plan: dict, pause: float = 0.0, status: int = 200) -> None:
        """The answers to the next prompt: texts, and calls by the name of their action."""
        self.requests.clear()
        self.plan, self.pause, self.status = list(plan), pause, status

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server: Model

    def log_message(self, *_):
        """Says nothing."""

    def do_GET(self):
        self._whole({"data": [], "models": []})

    def do_HEAD(self):
        self._whole({})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if "count_tokens" in self.path:
            return self._whole({"input_tokens": 10})
        request = json.loads(body)
        if self.server.status != 200:
            return self._whole({"type": "error", "error": {"type": "authentication_error", "message": "bad key"}}, self.server.status)
        # Requests beside the conversation have no tools: titles and the like.
        is_main = bool(request.get("tools"))
        step = {"text": ["Title"]}
        if is_main:
            self.server.requests.append(body.decode())
            step = self.server.plan.pop(0) if self.server.plan else {"text": ["Done."]}
        events = self._responses(step) if self.path.endswith("/responses") else self._messages(step, request)
        if not request.get("stream"):
            return self._whole(self._message(step, request))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for name, event in events:
                if event == "pause":
                    time.sleep(self.server.pause if is_main else 0)
                    continue
                self.wfile.write(f"event: {name}\ndata: {json.dumps(event)}\n\n".encode())
                self.wfile.flush()
        except OSError:
            pass

    def _whole(self, value: dict, status: int = 200):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _message(self, step: dict, request: dict) -> dict:
        content = [{"type": "text", "text": "".join(step.get("text", []))}]
        usage = {"input_tokens": 10, "output_tokens": 10}
        return {"id": "msg_1", "type": "message", "role": "assistant", "model": request.get("model"), "content": content,
                "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}

    def _messages(self, step: dict, request: dict):
        usage = {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
        message = {**self._message({}, request), "content": [], "stop_reason": None, "usage": usage}
        yield "message_start", {"type": "message_start", "message": message}
        call = step.get("claude")
        if call:
            block = {"type": "tool_use", "id": f"toolu_{time.monotonic_ns()}", "name": call[0], "input": {}}
            yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
            yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
        else:
            block = {"type": "text", "text": ""}
            yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}
            for piece in step["text"]:
                delta = {"type": "text_delta", "text": piece}
                yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
                yield "", "pause"
        yield "content_block_stop", {"type": "content_block_stop", "index": 0}
        end = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
        yield "message_delta", {"type": "message_delta", "delta": end, "usage": usage}
        yield "message_stop", {"type": "message_stop"}

    def _responses(self, step: dict):
        number = time.monotonic_ns()
        base = {"id": f"resp_{number}", "object": "response", "created_at": 0, "model": "scripted"}
        yield "response.created", {"type": "response.created", "response": {**base, "status": "in_progress", "output": []}}
        call = step.get("codex")
        if call:
            item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": call[0],
                    "arguments": json.dumps(call[1]), "status": "completed"}
        else:
            item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "in_progress", "content": []}
            yield "response.output_item.added", {"type": "response.output_item.added", "output_index": 0, "item": item}
            for piece in step["text"]:
                yield "response.output_text.delta", {"type": "response.output_text.delta", "item_id": item["id"],
                                                     "output_index": 0, "content_index": 0, "delta": piece}
                yield "", "pause"
            text = {"type": "output_text", "text": "".join(step["text"]), "annotations": []}
            item = {**item, "status": "completed", "content": [text]}
        yield "response.output_item.done", {"type": "response.output_item.done", "output_index": 0, "item": item}
        usage = {"input_tokens": 10, "output_tokens": 10, "total_tokens": 20, "input_tokens_details": {"cached_tokens": 0},
                 "output_tokens_details": {"reasoning_tokens": 0}}
        done = {**base, "status": "completed", "output": [item], "usage": usage}
        yield "response.completed", {"type": "response.completed", "response": done}


class Agent:
    """An agent's command line, with its words for what they all do."""

    name = ""
    run: list[str] = []
    resume: list[str] = []
    json: list[str] = []
    stream: list[str] = []
    ephemeral: list[str] = []
    schema: list[str] = []
    deny = "denials"
    shells: list[str] = []
    manual: list[str] = []
    lax: list[str] = []

    def __init__(self, program: Path, model: Model):
        self.program, self.model = program, model
        self.folder = Path(tempfile.mkdtemp(prefix="kode-compare-")).resolve()
        self.project, self.home = self.folder / "project", self.folder / "home"
        self.project.mkdir()
        self.home.mkdir()
        subprocess.run(["git", "init", "-q", self.project], check=True)
        (self.project / "a.txt").write_text("old\n")
        self.configure()

    def configure(self) -> None:
        """Writes what the agent needs to know."""

    def environment(self) -> dict[str, str]:
        """The environment it runs in."""
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), "TERM": "xterm-256color", "LANG": "C.UTF-8"}

    def call(self, arguments: list[str], given: str | None = None) -> subprocess.CompletedProcess:
        """Runs it without a terminal."""
        stdin = {"input": given} if given is not None else {"stdin": subprocess.DEVNULL}
        return subprocess.run([self.program, *arguments], cwd=self.project, env=self.environment(), capture_output=True,
                              text=True, timeout=LIMIT, check=False, **stdin)

    def watch(self, arguments: list[str], until: str, during: float) -> tuple[str, str, int]:
        """Runs it in a terminal: what it had written after `during` seconds from its first request on, all of it, and the exit
        code. It is interrupted where `until` says so."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.project)
            os.execve(self.program, [str(self.program), *arguments], self.environment())
        said, early, asked = b"", None, None
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    said += os.read(terminal, 65536)
                except OSError:
                    break
            if asked is None and self.model.requests:
                asked = time.monotonic()
            if asked is not None and early is None and time.monotonic() - asked >= during:
                early = said
                if until == "interrupt":
                    os.write(terminal, b"\x03")
        else:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        return (early or b"").decode(errors="replace"), said.decode(errors="replace"), code


class KodeLs(Agent):
    name = "kode-ls"
    run, resume = ["run"], ["run", "-c"]
    json, stream = ["--output-format", "json"], ["--output-format", "stream-json"]
    ephemeral, schema = ["--ephemeral"], ["--output-schema"]
    deny, shells, manual = "permission_denials", ["completions", "bash"], ["man"]
    lax = ["--mode", "bypassPermissions"]

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "KODE_LS_HOME": str(self.home / "state"), "ANTHROPIC_BASE_URL": self.model.address,
                "ANTHROPIC_API_KEY": "test-key"}


class Codex(Agent):
    name = "codex"
    run, resume = ["exec"], ["exec", "resume", "--last"]
    json, stream = [], ["--json"]
    ephemeral, schema = ["--ephemeral"], ["--output-schema"]
    shells = ["completion", "bash"]
    lax = ["--dangerously-bypass-approvals-and-sandbox"]

    def configure(self) -> None:
        folder = self.home / ".codex"
        folder.mkdir()
        (folder / "config.toml").write_text(
            'model = "scripted"\nmodel_provider = "local"\n[model_providers.local]\nname = "local"\n'
            f'base_url = "{self.model.address}/v1"\nenv_key = "LOCAL_KEY"\nwire_api = "responses"\n'
            "request_max_retries = 0\nstream_max_retries = 0\n"
        )

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "LOCAL_KEY": "test-key", "CODEX_HOME": str(self.home / ".codex")}


class Claude(Agent):
    name = "claude"
    run, resume = ["-p"], ["-p", "-c"]
    json, stream = ["--output-format", "json"], ["--output-format", "stream-json", "--verbose"]
    ephemeral, schema = ["--no-session-persistence"], ["--json-schema"]
    deny = "permission_denials"
    lax = ["--allowedTools=Bash"]

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "ANTHROPIC_BASE_URL": self.model.address, "ANTHROPIC_API_KEY": "test-key",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
                "CLAUDE_CONFIG_DIR": str(self.home / ".claude"), "CLAUDE_CODE_MAX_RETRIES": "0"}


SLEEP = {"claude": ["Bash", {"command": "sleep 3 && echo slept", "description": "Sleep"}],
         "codex": ["exec_command", {"cmd": "sleep 3 && echo slept"}]}
WRITE = {"claude": ["Write", {"file_path": "{}/new.txt", "content": "x\n"}],
         "codex": ["exec_command", {"cmd": "echo x > new.txt"}]}
SAY = {"text": PIECES}

ROWS = []


def row(title: str):
    """Names a row."""

    def add(function):
        ROWS.append((title, function))

    return add


def requests(agent: Agent) -> str:
    """The last request to the model."""
    return agent.model.requests[-1] if agent.model.requests else ""


@row("piped input beside the prompt reaches the model")
def _(agent: Agent):
    agent.model.begin(SAY)
    agent.call([*agent.run, "review this"], "+ piped text\n")
    return "review this" in requests(agent) and "piped text" in requests(agent)


@row("piped input alone is the prompt")
def _(agent: Agent):
    agent.model.begin(SAY)
    agent.call(agent.run, "only piped\n")
    return "only piped" in requests(agent)


@row("standard output has the answer alone")
def _(agent: Agent):
    agent.model.begin(SAY)
    return agent.call([*agent.run, "hello"]).stdout.strip() == "".join(PIECES)


@row("in a terminal the answer streams")
def _(agent: Agent):
    agent.model.begin(SAY, pause=2)
    early, _, _ = agent.watch([*agent.run, "hello"], "", 1.2)
    return "first half" in early


@row("in a terminal the running call is shown")
def _(agent: Agent):
    agent.model.begin(SLEEP, SAY)
    early, _, _ = agent.watch([*agent.run, *agent.lax, "sleep"], "", 1.8)
    return "sleep 3" in early


@row("one JSON object as the result")
def _(agent: Agent):
    if not agent.json:
        return False
    agent.model.begin(SAY)
    return "".join(PIECES) in json.loads(agent.call([*agent.run, *agent.json, "hello"]).stdout)["result"]


@row("one JSON object per line")
def _(agent: Agent):
    agent.model.begin(SAY)
    lines = agent.call([*agent.run, *agent.stream, "hello"]).stdout.splitlines()
    return len([json.loads(line) for line in lines]) > 1


@row("a write without permission does not happen")
def _(agent: Agent):
    write = {**WRITE, "claude": ["Write", {"file_path": str(agent.project / "new.txt"), "content": "x\n"}]}
    agent.model.begin(write, SAY)
    agent.call([*agent.run, "write"])
    return not (agent.project / "new.txt").exists()


@row("denied calls are listed in the result")
def _(agent: Agent):
    write = {**WRITE, "claude": ["Write", {"file_path": str(agent.project / "new.txt"), "content": "x\n"}]}
    agent.model.begin(write, SAY)
    done = agent.call([*agent.run, *(agent.json or agent.stream), "write"])
    last = json.loads(done.stdout.splitlines()[-1])
    return bool(last.get(agent.deny))


@row("denied calls are an exit code on request")
def _(agent: Agent):
    if agent.name != "kode-ls":
        return False
    write = {"claude": ["Write", {"file_path": str(agent.project / "new.txt"), "content": "x\n"}]}
    agent.model.begin(write, SAY)
    return agent.call([*agent.run, "--fail-on-denial", "write"]).returncode == 3


@row("the last conversation is continued")
def _(agent: Agent):
    agent.model.begin(SAY, SAY)
    agent.call([*agent.run, "the first prompt"])
    agent.call([*agent.resume, "and another"])
    return "the first prompt" in requests(agent) and "and another" in requests(agent)


@row("a run that is not stored")
def _(agent: Agent):
    agent.model.begin(SAY, SAY, SAY)
    agent.call([*agent.run, "stored prompt"])
    if agent.call([*agent.run, *agent.ephemeral, "secret prompt"]).returncode:
        return False
    agent.call([*agent.resume, "and another"])
    return "secret prompt" not in requests(agent) and "stored prompt" in requests(agent)


@row("the answer has to match a JSON Schema")
def _(agent: Agent):
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"], "additionalProperties": False}
    path = agent.project / "schema.json"
    path.write_text(json.dumps(schema))
    agent.model.begin({"text": ['{"count": 3}'], "claude": None})
    given = json.dumps(schema) if agent.name == "claude" else str(path)
    agent.call([*agent.run, *agent.schema, given, "count"])
    return "count" in requests(agent) and "integer" in requests(agent)


@row("a wrong key is exit code 1, with the reason")
def _(agent: Agent):
    agent.model.begin(status=401)
    done = agent.call([*agent.run, "hello"])
    return done.returncode == 1 and "bad key" in done.stdout + done.stderr


@row("an unknown option is exit code 2 or 1, with a tip")
def _(agent: Agent):
    done = agent.call([*agent.run, "--nosuch", "hello"])
    return done.returncode in (1, 2) and "--nosuch" in done.stderr


@row("Ctrl-C ends it with exit code 130")
def _(agent: Agent):
    agent.model.begin(SAY, pause=15)
    _, _, code = agent.watch([*agent.run, "hello"], "interrupt", 1.5)
    return code == 130


@row("a bare start in a terminal is a conversation")
def _(agent: Agent):
    agent.model.begin()
    agent.model.requests.append("")
    _, said, _ = agent.watch([], "interrupt", 4)
    return len(said) > 100 and "Content-Length" not in said


@row("help of a subcommand")
def _(agent: Agent):
    return agent.call(["help", "mcp"]).returncode == 0


@row("shell completions")
def _(agent: Agent):
    return bool(agent.shells) and agent.call(agent.shells).returncode == 0


@row("a manual page")
def _(agent: Agent):
    return bool(agent.manual) and ".TH" in agent.call(agent.manual).stdout


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser()
    kinds = {"kode_ls": KodeLs, "codex": Codex, "claude": Claude}
    for name in kinds:
        parser.add_argument(f"--{name.replace('_', '-')}", type=Path)
    given = vars(parser.parse_args())
    model = Model()
    named = [(kind, given[name].resolve()) for name, kind in kinds.items() if given[name]]
    head = [kind.name for kind, _ in named]
    print("| | " + " | ".join(head) + " |")
    print("| --- " * (len(head) + 1) + "|")
    for title, observe in ROWS:
        cells = []
        for kind, program in named:
            agent = kind(program, model)
            try:
                cells.append("yes" if observe(agent) else "no")
            except (OSError, ValueError, KeyError, IndexError, subprocess.SubprocessError) as problem:
                cells.append(f"no ({type(problem).__name__})")
            subprocess.run(["rm", "-rf", agent.folder], check=False)
        print(f"| {title} | " + " | ".join(cells) + " |", flush=True)


main()
