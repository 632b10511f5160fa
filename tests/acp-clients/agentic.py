"""agentic.nvim, in Neovim.

Rule: as in the other clients in Neovim.
"""

import re

import acp_cases
from nvim import Neovim


class Editor(Neovim):
    """The chat of agentic.nvim."""

    section = "agentic.nvim"
    answers = ("Allow once", "Allow for this session", "Deny")

    def _open_panel(self) -> None:
        self.command("lua require('agentic').open()")
        self.world.answered("session/new")
        acp_cases.sees(self.world, self, "session id")

    def ask(self, text: str) -> None:
        """Sends a prompt."""
        self.focus("AgenticInput")
        self.world.type("Go" + text)
        self.normal()
        self.world.press("C-s")

    def _answer(self, answer: str) -> None:
        pattern = re.compile(rf"(\d)\W+{answer}")
        found = self.world.until(f"the chat offers {answer}", lambda: pattern.search(self.conversation()))
        self.focus("AgenticChat")
        # Only the first answers have their numbers as keys.
        self.world.type("j" * (int(found[1]) - 1))
        self.world.press("Enter")

    def cancel(self) -> None:
        """Cancels the turn."""
        self.focus_file()
        self.command("lua require('agentic').stop_generation()")

    def sees_change(self, *lines: str) -> None:
        """Waits until a change is shown that waits for an answer."""
        acp_cases.sees(self.world, self, "Allow once", *lines)

    def check_unsaved(self) -> None:
        """The change is on the disk."""
        assert self.world.read(acp_cases.NAME) == acp_cases.AFTER
        self.world.until("the text that was typed is gone", lambda: self.buffer() == acp_cases.AFTER)

    def resume(self, name: str, title: str) -> None:
        """Opens a file, and continues the session of this title."""
        self.open(name)
        self.focus_file()
        self.command("lua require('agentic').restore_session()")
        pattern = re.compile(rf"(\d+): .*{title}")
        found = self.world.until("the session is offered", lambda: pattern.search(self.world.screen()))
        self.world.type(found[1])
        self.world.press("Enter")
        acp_cases.sees(self.world, self, title)
