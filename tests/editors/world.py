"""The world of one case: a project, a scripted model, and an editor in a real terminal whose keys are typed and whose
screen is read.

Rule: the editor under test has what its users have, and what the page for users says; every wait is for something that
happens, with a limit that no case comes near.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

LIMIT = 30
"""Seconds that any wait may take."""

SIZE = (140, 45)
"""Columns and lines of the terminal."""

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "server" / "docs" / "editors.md"

Found = TypeVar("Found")


class Failed(Exception):
    """An expected event did not happen."""


def say(text: str, **more: Any) -> dict:
    """A step of the model that answers."""
    return {"content": [{"type": "text", "text": text}], **more}


def call(name: str, **arguments: Any) -> dict:
    """A step of the model that calls a tool."""
    return {"content": [{"type": "tool_use", "name": name, "input": arguments}]}


class Page:
    """The section of a page for users that is about one editor."""

    def __init__(self, editor: str, page: Path = PAGE):
        sections = re.split(r"^###? ", page.read_text(), flags=re.MULTILINE)
        found = [section for section in sections if section.split("\n", 1)[0] == editor]
        if len(found) != 1:
            raise Failed(f"{page} has {len(found)} sections called {editor}")
        self._page, self._editor, self._text = page, editor, found[0]

    def blocks(self, language: str) -> list[str]:
        """The section's blocks in a language."""
        return re.findall(rf"^```{language}\n(.*?)^```$", self._text, flags=re.MULTILINE | re.DOTALL)

    def block(self, language: str) -> str:
        """The section's only block in a language."""
        blocks = self.blocks(language)
        if len(blocks) != 1:
            raise Failed(f"the section {self._editor} of {self._page} has {len(blocks)} blocks in {language}")
        return blocks[0]

    def keys(self, part: str) -> str:
        """The only thing to type in the section that holds `part`, as it is given between backquotes."""
        found = {keys for keys in re.findall(r"`([^`\n]+)`", self._text) if part in keys}
        if len(found) != 1:
            raise Failed(f"the section {self._editor} of {self._page} has not one `…{part}…` to type but {sorted(found)}")
        return found.pop()


class World:
    """One case's world; `close` ends it."""

    def __init__(self, server: Path):
        self.server = server
        self.folder = Path(tempfile.mkdtemp(prefix="kode-editor-")).resolve()
        self.home = self.folder / "home"
        self.project = self.folder / "project"
        self.without: list[str] = []
        self.log = self.folder / "traffic"
        self.socket = self.folder / "tmux"
        self._model: subprocess.Popen | None = None
        self._address = ""
        self._read: tuple[int, list[dict]] = (0, [])
        self.log.touch()
        self.home.mkdir()
        (self.project / ".git").mkdir(parents=True)

    # ---- files

    def write(self, name: str, text: str) -> None:
        """Writes a file of the project."""
        (self.project / name).write_text(text)

    def read(self, name: str) -> str:
        """The content of a project file on the disk."""
        return (self.project / name).read_text()

    def has(self, name: str) -> bool:
        """Whether a file of the project is on the disk."""
        return (self.project / name).exists()

    def config(self, name: str, text: str) -> Path:
        """Writes a file of the user's configuration, named from the home folder."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    # ---- the model

    def serve(self, *steps: dict, prompts: Iterable[tuple[str, list[dict]]] = ()) -> None:
        """Serves a model that answers some prompts, by patterns, with steps of their own, and any other with these."""
        script = self.folder / "script.json"
        programs = [*({"when": when, "steps": own} for when, own in prompts), {"steps": steps}]
        script.write_text(json.dumps({"programs": programs}))
        self._model = subprocess.Popen(
            [self.server, "scripted-model", "--script", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._model.stdout
        self._address = json.loads(self._model.stdout.readline())["listening"]

    def scripted(self, what: str, post: bool = False) -> Any:
        request = urllib.request.Request(f"{self._address}/scripted/{what}", data=b"" if post else None)
        with urllib.request.urlopen(request, timeout=LIMIT) as response:
            body = response.read()
        return json.loads(body) if body[:1] in (b"[", b"{") else None

    def wait_held(self, gate: str) -> None:
        """Waits until an answer of the model is held at a gate."""
        self.scripted(f"waiting/{gate}")

    def release(self, gate: str) -> None:
        """Opens a gate."""
        self.scripted(f"release/{gate}", post=True)

    def prompt(self) -> str:
        """The last text of the newest request to the model."""
        return json.dumps(self.scripted("requests")[-1]["body"]["messages"][-1])

    def results(self) -> list[str]:
        """The texts of the tool results in the newest request."""
        requests = self.scripted("requests")
        found = []
        for message in requests[-1]["body"]["messages"] if requests else []:
            for block in message["content"] if isinstance(message["content"], list) else []:
                if block["type"] == "tool_result":
                    found.append(json.dumps(block["content"]))
        return found

    # ---- the terminal

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(["tmux", "-S", self.socket, *arguments], capture_output=True, text=True, timeout=LIMIT)
        if done.returncode:
            raise Failed(f"tmux {' '.join(arguments)}: {done.stderr}{self._why_gone()}")
        return done.stdout

    def _why_gone(self) -> str:
        said = self.folder / "said"
        return f"the editor has said:\n{said.read_text()}" if said.exists() else ""

    def start(self, command: list[str], env: dict[str, str] | None = None) -> None:
        """Starts an editor in the project, with `kode-ls` on its path."""
        bin_folder = self.folder / "bin"
        bin_folder.mkdir()
        tap = [sys.executable, str(HERE / "tap.py"), str(self.server), str(self.log), json.dumps(self.without)]
        (bin_folder / "kode-ls").write_text(f'#!/bin/sh\nexec {shlex.join(tap)} "$@"\n')
        (bin_folder / "kode-ls").chmod(0o755)
        self.open(command, bin_folder, env)

    def open(
        self, command: list[str], bin_folder: Path, env: dict[str, str] | None = None, size: tuple[int, int] = SIZE
    ) -> None:
        """Opens a terminal in the project and runs a command in it."""
        whole = {
            "PATH": f"{bin_folder}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "KODE_LS_HOME": str(self.folder / "state"),
            "ANTHROPIC_BASE_URL": self._address,
            "ANTHROPIC_API_KEY": "test-key",
            "XDG_RUNTIME_DIR": str(self.folder),
            **{f"XDG_{kind}_HOME": str(self.home / kind.lower()) for kind in ("CONFIG", "DATA", "STATE", "CACHE")},
            **(env or {}),
        }
        line = shlex.join(["env", *(f"{name}={value}" for name, value in whole.items()), *map(str, command)])
        screen = ["-x", str(size[0]), "-y", str(size[1])]
        self._tmux("-f", "/dev/null", "new-session", "-d", *screen, "-c", str(self.project), line)
        self._tmux("set-option", "-g", "remain-on-exit", "on")
        self._tmux("set-option", "-s", "escape-time", "0")

    def press(self, *keys: str) -> None:
        """Presses keys, by the names that tmux has for them."""
        self._tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        """Types a text as it is."""
        self._tmux("send-keys", "-l", "--", text)

    def screen(self) -> str:
        """The text on the screen."""
        return self._tmux("capture-pane", "-p")

    # ---- waiting

    def until(self, what: str, look: Callable[[], Found]) -> Found:
        """Waits until `look` finds something, and gives it."""
        end = time.monotonic() + LIMIT
        while True:
            found = look()
            if found:
                return found
            if time.monotonic() > end:
                raise Failed(f"waited in vain until {what}")
            time.sleep(0.03)

    def shows(self, *parts: str) -> str:
        """Waits until all of these stand on the screen, whatever the editor puts between their words, and gives it."""
        patterns = [re.compile(r"\s+".join(map(re.escape, part.split()))) for part in parts]

        def look() -> str | None:
            screen = self.screen()
            return screen if all(pattern.search(screen) for pattern in patterns) else None

        return self.until(f"the screen shows {parts}", look)

    def hides(self, part: str) -> None:
        """Waits until this is not on the screen any more."""
        self.until(f"the screen hides {part!r}", lambda: part not in self.screen())

    def traffic(self, who: str, method: str | None = None) -> list[dict]:
        """The messages of one side so far, with this method if one is named."""
        position, lines = self._read
        with self.log.open("rb") as log:
            log.seek(position)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                lines.append(json.loads(line))
                position += len(line)
        self._read = (position, lines)
        sent = (line["message"] for line in lines if line["from"] == who)
        return [message for message in sent if method is None or message.get("method") == method]

    def sent(self, who: str, method: str, count: int = 1) -> list[dict]:
        """Waits until one side has sent this many messages of a method, and returns them."""

        def look() -> list[dict] | None:
            found = self.traffic(who, method)
            return found if len(found) >= count else None

        return self.until(f"the {who} has sent {method} {count} times", look)

    def told(self, text: str) -> None:
        """Waits until the editor was given this message, wherever it has shown it, and for how long."""

        def look() -> bool:
            given = self.traffic("server", "window/showMessage")
            return any(text in message["params"]["message"] for message in given)

        self.until(f"the editor was told {text!r}", look)

    # ---- the end

    def keep(self, folder: Path) -> None:
        """Keeps the screen and what passed between editor and server."""
        folder.mkdir(parents=True, exist_ok=True)
        try:
            (folder / "screen.txt").write_text(self.screen())
        except (Failed, subprocess.SubprocessError) as problem:
            (folder / "screen.txt").write_text(f"there is no screen: {problem}\n")
        shutil.copy(self.log, folder / "traffic.jsonl")

    def close(self) -> None:
        """Ends everything this world has started."""
        running = self.running()
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, timeout=LIMIT, check=False)
        for process in running:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self._model:
            self._model.kill()
            self._model.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def running(self) -> list[int]:
        """The processes below the terminal and those that were started for this world: an editor can outlive the terminal, and
        what it has started can outlive it."""
        below = self._descendants()
        return below + [process for process in self._with_the_home() if process not in below]

    def _with_the_home(self) -> list[int]:
        """The processes that have this world's home in their environment."""
        wanted = f"HOME={self.home}".encode()
        found = []
        for environment in Path("/proc").glob("[0-9]*/environ"):
            try:
                if wanted in environment.read_bytes().split(b"\0"):
                    found.append(int(environment.parent.name))
            except OSError:
                # It has ended, or is another user's.
                pass
        return found

    def _descendants(self) -> list[int]:
        """The processes below the terminal."""
        listed = subprocess.run(
            ["tmux", "-S", self.socket, "list-panes", "-a", "-F", "#{pane_pid}"],
            capture_output=True, text=True, timeout=LIMIT, check=False,
        )
        found = [int(process) for process in listed.stdout.split()]
        table = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
        pairs = [tuple(map(int, line.split())) for line in table.splitlines()]
        for parent in found:
            found.extend(process for process, of in pairs if of == parent)
        return found
