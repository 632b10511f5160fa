"""Neovim with nothing but `vim.lsp.start`."""

from vi import Vi
from world import Page


class Editor(Vi):
    """Neovim, whose picker is the one it has by itself."""

    section = "Neovim"

    def open(self, name: str) -> None:
        """Opens a file and waits until the server has it."""
        self._world.config("config/nvim/init.lua", self._page.block("lua"))
        self._world.start([self._programs[0], name])
        self._world.sent("editor", "textDocument/didOpen")

    def open_wrapped(self, name: str) -> None:
        """Opens a file with Kode in place of its language server, and waits until both have it."""
        self._world.config("config/nvim/init.lua", Page("One server for a buffer").block("lua"))
        self._world.start([self._programs[0], name])
        self._world.sent("editor", "textDocument/didOpen")

    def _find(self, line: int, word: str) -> None:
        self._command(f":{line}")
        self._command(f":call search('{word}', 'c', {line})")

    def hover(self, line: int, word: str, shown: str) -> None:
        """Shows what the server says of a word."""
        self._find(line, word)
        self._world.type("K")
        self._world.shows(shown)
        # The window closes with a move of the cursor.
        self._world.type("0")

    def go_to_definition(self, line: int, word: str) -> None:
        """Goes to the definition of a word."""
        self._find(line, word)
        self._command(":lua vim.lsp.buf.definition()")

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

    def lens(self, line: int, title: str) -> None:
        """Shows lenses, and runs the one with this title at a line."""
        self._command(self._page.keys("codelens"))
        self._world.shows(title)
        self._command(f":{line}")
        self._world.type(self._page.keys("grx"))
        self._choose(title)

    def _code_actions(self) -> None:
        self._world.type("gra")
