"""Emacs with the package `kode.el`, in a terminal."""

from pathlib import Path

import emacs
from world import Page

PACKAGE = Path(__file__).resolve().parent.parent.parent / "editors" / "emacs"


class Editor(emacs.Editor):
    """Emacs with our package: prompts are shown and answered by its commands."""

    def __init__(self, world, programs):
        super().__init__(world, programs)
        self._page = Page("Emacs with kode.el")
        self._is_open = False

    def open(self, name: str) -> None:
        """Opens a file and waits until the server has it."""
        box = self._page.block("elisp").replace("/path/to/kode-ls/editors/emacs", str(PACKAGE))
        self._world.config(".emacs.d/init.el", box)
        self._world.start([self._programs[0], "-nw", name])
        self._world.sent("editor", "textDocument/didOpen")
        self._world.shows("Connected!")

    def _prefix(self, key: str) -> None:
        self._world.press("C-c", "k", key)

    def ask(self, text: str) -> None:
        """Asks, by the key of the page."""
        self._prefix("k")
        self._world.shows("Ask Kode:")
        self._world.type(text)
        self._world.press("Enter")

    def cancel(self) -> None:
        """Cancels the turn."""
        self._prefix("c")

    def open_prompt(self) -> None:
        """Has the prompt shown."""
        self._world.shows("Answer with a code action")
        self._prefix("p")
        self._is_open = True

    def answer(self, title: str) -> None:
        """Gives the answer with this title by its number; a prompt that is not shown yet is shown before."""
        if not self._is_open:
            self._prefix("p")
        self._is_open = False
        line = self._world.until(
            f"the prompt offers {title!r}",
            lambda: next((line for line in self._world.screen().splitlines() if line[1:].strip() == title), None),
        )
        self._world.type(line.strip()[0])

    def dismiss(self) -> None:
        """Leaves the prompt unanswered."""
        self._world.press("q")
        self._is_open = False
