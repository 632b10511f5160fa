"""Kakoune with kakoune-lsp, which shows activity without its steps, shows prompts only on request, and writes a file
after it was edited."""

import os
from pathlib import Path

from world import Page, World


class Editor:
    """Kakoune, driven by its keys and typed commands; the second program is kakoune-lsp."""

    saves_edits = True
    """Whether edited files are written at once."""

    def __init__(self, world: World, programs: list[str]):
        self._world, self._programs = world, programs
        self._page = Page("Kakoune")
        self._is_open = False

    def open(self, name: str) -> None:
        """Opens a file and waits until the server has it."""
        self._world.config("config/kak/kakrc", self._page.block("kak"))
        folders = [self._world.folder / "bin", Path(self._programs[1]).parent, os.environ["PATH"]]
        self._world.start([self._programs[0], name], {"PATH": ":".join(map(str, folders))})
        self._world.sent("editor", "textDocument/didOpen")

    def _command(self, line: str) -> None:
        # It is not looked for first: the screen of tmux does not keep what Kakoune draws there.
        self._world.type(line)
        self._world.press("Enter")

    def ask(self, text: str) -> None:
        """Asks, as the page says."""
        self._command(self._page.keys(":kode fix").replace("fix the typo", text))

    def cancel(self) -> None:
        """Cancels what runs."""
        self._command(self._page.keys("kode.cancel"))

    def sees_progress(self, title: str, step: str) -> None:
        """Kakoune shows no steps."""

    def sees_prompt(self, title: str) -> None:
        """Waits until a prompt is on the screen that is answered by a code action."""
        self._world.shows(title)

    def _choose(self, title: str) -> None:
        """Chooses from the menu that is open."""
        self._world.shows(title)
        self._world.type(title)
        # The first choice that begins so.
        self._world.press("Tab", "Enter")

    def open_prompt(self) -> None:
        """Has the prompt shown, which waits unseen."""
        self._world.sent("server", "window/showMessageRequest")
        self._command(self._page.keys(":lsp-show-message-request-next"))
        self._is_open = True

    def answer(self, title: str) -> None:
        """Answers the prompt, which is shown first where it is not."""
        if not self._is_open:
            self.open_prompt()
        self._choose(title)

    def dismiss(self) -> None:
        """Closes the prompt unanswered."""
        self._world.press("Escape")
        self._world.shows("Still waiting for an answer")

    def act(self, line: int, title: str) -> None:
        """Runs the code action with this title on a line."""
        self._world.type(f"{line}g")
        self._code_action(title)

    def act_on(self, first: int, last: int, title: str) -> None:
        """Runs the code action with this title on some lines."""
        self._world.type(f"{first}gx{last - first}Jx")
        self._code_action(title)

    def _code_action(self, title: str) -> None:
        self._command(self._page.keys(":lsp-code-actions"))
        self._choose(title)

    def type_line(self, text: str) -> None:
        """Types a line at the top of the buffer."""
        self._world.type("ggO")
        self._world.shows("insert")
        self._world.type(text)
        self._world.press("Escape")
        self._world.hides("insert")

    def type_below(self, pieces: list[str]) -> None:
        """Types a line at the end of the buffer, piece by piece."""
        self._world.type("geo")
        self._world.shows("insert")
        for piece in pieces:
            self._world.type(piece)
        self._world.press("Escape")
        self._world.hides("insert")

    def complete(self, typed: str, shown: str) -> None:
        """Types a line at the top of the buffer whose end is completed to the shown text."""
        self._world.type("ggO")
        self._world.shows("insert")
        self._world.type(typed)
        self._world.shows(shown)
        self._world.press("C-n")
        self._world.press("Escape")
        self._world.hides("insert")

    def save(self) -> None:
        """Writes the buffer."""
        self._command(":write")

    def undo(self) -> None:
        """Takes one step back."""
        self._world.type("u")
