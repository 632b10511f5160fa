"""The world of one case with an ACP client: as that of an editor, with the agent behind a tap.

Rule: the client under test has what its users have, and the settings that the page for users shows.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from world import LIMIT, Page, World

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent.parent / "server" / "docs"


def settings(client: str, language: str) -> str:
    """The part of the page for a client."""
    return Page(client, DOCS / "acp.md").block(language)


def changed(text: str, change: dict) -> str:
    """A text after a change of the language server protocol."""
    if "range" not in change:
        return change["text"]
    lines = text.splitlines(keepends=True)
    start, end = (
        sum(map(len, lines[: at["line"]])) + at["character"] for at in (change["range"]["start"], change["range"]["end"])
    )
    return text[:start] + change["text"] + text[end:]


class ClientWorld(World):
    """A world whose `kode-ls acp` is tapped, and so is `kode-ls`, which is the language server."""

    @property
    def _lsp_log(self) -> Path:
        return self.folder / "lsp-traffic"

    def server_has(self) -> str:
        """The text of the document that the editor has sent to the language server; it is plain ASCII."""
        text = ""
        lines = self._lsp_log.read_bytes().splitlines(keepends=True) if self._lsp_log.exists() else []
        for message in (json.loads(line)["message"] for line in lines if line.endswith(b"\n")):
            if message.get("method") == "textDocument/didOpen":
                text = message["params"]["textDocument"]["text"]
            elif message.get("method") == "textDocument/didChange":
                for change in message["params"]["contentChanges"]:
                    text = changed(text, change)
        return text

    def start(self, command: list[str], env: dict[str, str] | None = None) -> None:
        """Starts a client in the project, with `kode-ls` on its path."""
        bin_folder = self.folder / "bin"
        bin_folder.mkdir(exist_ok=True)
        tap = shlex.join([sys.executable, str(HERE / "tap.py"), str(self.server), str(self.log)])
        editors = HERE.parent / "editors" / "tap.py"
        lsp_tap = shlex.join([sys.executable, str(editors), str(self.server), str(self._lsp_log), "[]"])
        lines = ["#!/bin/sh", f'[ "$1" != acp ] || exec {tap} "$@"', f'exec {lsp_tap} "$@"']
        (bin_folder / "kode-ls").write_text("\n".join(lines) + "\n")
        (bin_folder / "kode-ls").chmod(0o755)
        self.open(command, bin_folder, env)

    def kill(self) -> None:
        """Kills the client and the agent, as a crash of the machine would."""
        running = self.running()
        for process in running:
            os.kill(process, signal.SIGKILL)
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, timeout=LIMIT, check=False)
        self.until("they have ended", lambda: not any(Path(f"/proc/{process}/cmdline").exists() for process in running))

    def paste(self, text: str) -> None:
        """Pastes a text."""
        self._tmux("set-buffer", "--", text)
        self._tmux("paste-buffer", "-p")

    def answered(self, method: str, count: int = 1) -> list[dict]:
        """Waits until this number of requests of the client with this method are answered, and gives the answers."""

        def look() -> list[dict] | None:
            asked = [message["id"] for message in self.traffic("client", method)]
            told = [message for message in self.traffic("agent") if "method" not in message and message["id"] in asked]
            return told if len(told) >= count else None

        return self.until(f"{method} is answered {count} times", look)

    def heard(self) -> str:
        """The results that the model was given."""
        return "\n".join(self.results())

    def asked(self) -> list[dict]:
        """The requests of the model so far."""
        return self.scripted("requests") or []

    def stops(self) -> list[str]:
        """How the turns have ended so far."""
        prompts = [message["id"] for message in self.traffic("client", "session/prompt")]
        ended = [told for told in self.traffic("agent") if "method" not in told and told["id"] in prompts]
        return [(told.get("result") or told["error"]).get("stopReason", "an error") for told in ended]

    def chosen(self) -> list[str]:
        """The answers that were chosen so far."""
        outcomes = [(told.get("result") or {}).get("outcome") or {} for told in self.traffic("client")]
        return [outcome["optionId"] for outcome in outcomes if "optionId" in outcome]


class Client:
    """A client as the cases drive it, with what most clients do."""

    cannot: tuple[str, ...] = ()
    """The cases that it has nothing for."""
    has_terminals = False
    """Whether it runs commands in terminals of its own."""
    denial_ends_turn = False
    """Whether it cancels the turn when something is denied."""

    def __init__(self, world: ClientWorld, programs: list[str]):
        self.world, self._programs = world, programs
        self._name = ""

    def ask(self, text: str) -> None:
        """Sends a prompt."""
        raise NotImplementedError

    def ask_in_session(self, text: str) -> None:
        """Sends a prompt whose session can be continued."""
        self.ask(text)

    def allow(self) -> None:
        """Allows the request once."""
        raise NotImplementedError

    def allow_in_terminal(self) -> None:
        """Allows a command that runs in the client's terminal."""
        self.allow()

    def ask_command(self, line: str) -> None:
        """Sends a command of the agent."""
        self.ask("/" + line)

    def ask_meanwhile(self, text: str) -> None:
        """Sends a prompt while a turn runs."""
        self.ask(text)

    def cancel(self) -> None:
        """Cancels the turn."""
        raise NotImplementedError

    def cancel_asking(self) -> None:
        """Cancels the turn while it asks."""
        self.cancel()

    def reload(self) -> None:
        """Loads a file that has changed on the disk, where the client does not by itself."""
