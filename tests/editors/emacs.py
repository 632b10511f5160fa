"""Emacs with Eglot, in a terminal."""

from world import Page, World


class Editor:
    """Emacs, driven by its keys and commands."""

    def __init__(self, world: World, programs: list[str]):
        self._world, self._programs = world, programs
        self._page = Page("Emacs")

    def open(self, name: str) -> None:
        """Opens a file and waits until the server has it."""
        self._world.config(".emacs.d/init.el", self._page.block("elisp"))
        self._world.start([self._programs[0], "-nw", name])
        self._world.sent("editor", "textDocument/didOpen")
        self._world.shows("Connected!")

    def _command(self, name: str) -> None:
        self._world.press("M-x")
        self._world.shows("M-x")
        self._world.type(self._page.keys(name))
        self._world.press("Enter")

    def ask(self, text: str) -> None:
        """Asks, as the page says."""
        self._command("kode-ask")
        self._world.shows("Ask Kode:")
        self._world.type(text)
        self._world.press("Enter")

    def open_prompt(self) -> None:
        """Has the prompt shown: it is by itself."""

    def cancel(self) -> None:
        """Cancels what runs."""
        self._command("kode-cancel")

    def sees_progress(self, title: str, step: str) -> None:
        """Waits until the progress is on the screen. Eglot shows its title, and the steps only where it counts them."""
        self._world.shows(f"Kode: {title}")

    def sees_prompt(self, title: str) -> None:
        """Waits until a prompt is on the screen that is answered by a code action."""
        # The echo area has room for the end of the message alone; `*Messages*` has all of it.
        self._world.shows("Answer with a code action")

    def answer(self, title: str) -> None:
        """Answers the prompt: Eglot does not tell that it could ask, so that it is a code action."""
        # The colon tells "Deny: Edit a.py", the answer, from "Deny all in this file".
        self.act(1, f"Kode: {title}:")

    def dismiss(self) -> None:
        """Leaves the prompt unanswered: nothing is in the way."""

    def act(self, line: int, title: str) -> None:
        """Runs the code action with this title on a line."""
        self._go_to(line)
        self._code_action(title)

    def act_on(self, first: int, last: int, title: str) -> None:
        """Runs the code action with this title on some lines."""
        self._go_to(first)
        self._world.press("C-Space")
        self._go_to(last + 1)
        self._code_action(title)

    def _go_to(self, line: int) -> None:
        self._world.press("M-g", "g")
        self._world.shows("Goto line")
        self._world.type(str(line))
        self._world.press("Enter")

    def _code_action(self, title: str) -> None:
        self._command("eglot-code-actions")
        self._world.shows("Pick an action")
        for word in title.split():
            self._world.type(word)
            # A blank alone completes.
            self._world.press("C-q", "Space")
        self._world.press("BSpace", "Enter")

    def type_line(self, text: str) -> None:
        """Types a line at the top of the buffer."""
        self._world.press("M-<")
        self._world.type(text)
        self._world.press("Enter")

    def type_below(self, pieces: list[str]) -> None:
        """Types a line at the end of the buffer, piece by piece."""
        self._world.press("M->")
        for piece in pieces:
            self._world.type(piece)
        self._world.press("Enter")

    def complete(self, typed: str, shown: str) -> None:
        """Types a line at the top of the buffer whose end is completed to the shown text."""
        self._world.press("M-<")
        self._world.press("Enter", "Up")
        self._world.type(typed)
        self._command("completion-at-point")
        self._world.shows(shown)

    def save(self) -> None:
        """Writes the buffer."""
        self._world.press("C-x", "C-s")

    def undo(self) -> None:
        """Takes one step back."""
        self._world.press("C-x", "u")
