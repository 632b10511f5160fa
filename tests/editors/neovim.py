"""Neovim with nothing but `vim.lsp.start`."""

import re

from vi import Vi


class Editor(Vi):
    """Neovim, whose picker is the one it has by itself."""

    section = "Neovim"

    def open(self, name: str) -> None:
        """Opens a file and waits until the server has it."""
        self._world.config("config/nvim/init.lua", self._page.block("lua"))
        self._world.start([self._programs[0], name])
        self._world.sent("editor", "textDocument/didOpen")

    def sees_progress(self, title: str, step: str) -> None:
        """Waits until the progress is on the screen."""
        self._world.shows(f"Kode: {title}: {step}")

    def answer(self, title: str) -> None:
        """Answers the prompt that is open."""
        self._choose(title)

    def dismiss(self) -> None:
        """Closes the prompt unanswered."""
        self._world.shows("Type number")
        self._world.press("Enter")
        self._world.shows("Still waiting for an answer")

    def complete(self, typed: str, shown: str) -> None:
        """Types a line at the top of the buffer whose end is completed to what is shown."""
        self._world.type("ggO")
        self._world.shows("-- INSERT --")
        self._world.type(typed)
        for key in re.findall(r"<(C-\w)>", self._page.keys("<C-x>")):
            self._world.press(key)
        self._world.shows(shown)
        self._world.press("C-y")
        self._world.press("Escape")
        self._world.hides("-- INSERT --")

    def _code_actions(self) -> None:
        self._world.type("gra")
