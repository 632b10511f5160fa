"""A real llama-server with a model of random numbers: what it serves is found out, and nothing is sent that it cannot read.

Rule: the answers are noise, so only what surrounds them is judged. The server is the one that tests/tools/install-llama.sh
installs, or $KODE_LS_LLAMA.
"""

import json
import os
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

import tiny
from harness import LIMIT

TRAINED = 65_536
START_LIMIT = 60


class Llama:
    """A running llama-server with a context window of this many tokens."""

    def __init__(self, folder: Path, window: int):
        model = folder / "tiny.gguf"
        tiny.write(model, TRAINED)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.base_url = f"http://127.0.0.1:{port}"
        self.log = folder / "llama.log"
        program = os.environ.get("KODE_LS_LLAMA")
        assert program, "set KODE_LS_LLAMA to what tests/tools/install-llama.sh prints"
        arguments = ["-m", model, "-c", window, "--port", port, "--host", "127.0.0.1", "--parallel", 1, "--seed", 1]
        with self.log.open("w") as log:
            self._process = subprocess.Popen([program, *map(str, arguments)], stdout=log, stderr=log)
        deadline = time.monotonic() + START_LIMIT
        while not self._is_ready():
            assert self._process.poll() is None and time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        try:
            return urllib.request.urlopen(f"{self.base_url}/health", timeout=LIMIT).status == 200
        except OSError:
            return False

    def is_idle(self) -> bool:
        """Whether it was never given a prompt to read."""
        return "task 0" not in self.log.read_text()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(LIMIT)


@pytest.fixture
def llama(tmp_path: Path):
    """A function that starts a server with a window."""
    servers: list[Llama] = []

    def start(window: int) -> Llama:
        servers.append(Llama(tmp_path, window))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def kode(kode_ls: str, tmp_path: Path, project: Path):
    """A function that runs the program with a home of its own and settings of the user's."""
    home = tmp_path / "home"
    (home / ".kode").mkdir(parents=True)
    environment = {"HOME": str(home), "KODE_LS_HOME": str(tmp_path / "state"), "PATH": os.environ["PATH"]}

    def run(*arguments: str, profile: dict | None = None) -> subprocess.CompletedProcess[str]:
        if profile:
            settings = {"modelProfiles": {"local": profile}, "modelPointers": {"main": "local"}}
            (home / ".kode" / "settings.json").write_text(json.dumps(settings), "utf-8")
        return subprocess.run(
            [kode_ls, *arguments], cwd=project, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=4 * LIMIT,
        )  # fmt: skip

    return run


def profile(server: Llama, **more: object) -> dict:
    return {"provider": "llamacpp", "baseUrl": f"{server.base_url}/v1", "model": "tiny", "maxTokens": 64, **more}


def test_setup_tries_the_model_that_the_server_has(llama, kode, tmp_path: Path):
    server = llama(32_768)
    made = kode("setup", "--provider", "llamacpp", "--option", f"baseUrl={server.base_url}/v1", "--json")
    assert made.returncode == 0, made.stderr
    kept = json.loads(Path(json.loads(made.stdout)["file"]).read_text("utf-8"))
    assert kept["modelProfiles"]["llamacpp"]["model"].endswith("tiny.gguf")
    assert kept["modelPointers"]["main"] == "llamacpp"


def test_a_turn_fits_the_window_that_is_served(llama, kode):
    server = llama(32_768)
    # The profile claims six times as much.
    ran = kode("run", "--output-format", "json", "--max-turns", "1", "Say something.", profile=profile(server, contextWindow=200_000))
    result = json.loads(ran.stdout)
    assert result["usage"]["output_tokens"] > 0, ran.stdout + ran.stderr
    # A window of that size gets few tools, told in text because the template has no place for them.
    assert 1_000 < result["usage"]["input_tokens"] < 32_768, result


def test_a_window_that_is_too_small_is_told_with_its_switch_and_asked_nothing(llama, kode):
    server = llama(2_048)
    ran = kode("run", "Say something.", profile=profile(server, contextWindow=200_000))
    assert ran.returncode != 0
    assert "reads 2048 tokens" in ran.stderr and "-c 32768" in ran.stderr, ran.stderr
    assert server.is_idle(), server.log.read_text()
