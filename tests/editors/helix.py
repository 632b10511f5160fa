"""Helix."""

import re

from world import Failed, Page, World


class Editor:
    """Helix, driven by its keys and typed commands."""

    def __init__(self, world: World, programs: list[str]):
        self._world, self._program = world, programs[0]
        self._page = Page("Helix")

    def open(self, name: str) -> None:
        """Opens a file and waits until the server has it."""
        languages, config = self._page.blocks("toml")
        self._world.config("config/helix/languages.toml", languages)
        self._world.config("config/helix/config.toml", config)
        self._world.start([self._program, name])
        self._world.sent("editor", "textDocument/didOpen")
        self._world.shows("NOR")

    def open_wrapped(self, name: str) -> None:
        """Opens a file with Kode in place of its language server, and waits until both have it."""
        self._world.config("config/helix/languages.toml", Page("One server for a buffer").block("toml"))
        self._world.start([self._program, name])
        self._world.sent("editor", "textDocument/didOpen")
        self._world.shows("NOR")

    def _find(self, line: int, word: str) -> None:
        self._world.type(f"{line}gg")
        self._world.type(f"/{word}")
        self._world.press("Enter")

    def hover(self, line: int, word: str, shown: str) -> None:
        """Shows what the server says of a word."""
        self._find(line, word)
        self._world.press("Space", "k")
        self._world.shows(shown)
        self._world.press("Escape")

    def go_to_definition(self, line: int, word: str) -> None:
        """Goes to the definition of a word."""
        self._find(line, word)
        self._world.type("gd")

    def _command(self, line: str) -> None:
        self._world.type(line)
        self._world.shows(line)
        self._world.press("Enter")

    def ask(self, text: str) -> None:
        """Asks, as the page says."""
        self._command(self._page.keys("kode.ask").replace("fix the typo", text))

    def open_prompt(self) -> None:
        """Has the prompt shown: it is by itself."""

    def cancel(self) -> None:
        """Cancels what runs."""
        self._command(self._page.keys("kode.cancel"))

    def sees_progress(self, title: str, step: str) -> None:
        """Waits until the progress is on the screen."""
        self._world.shows(f"Kode: {title}", step)

    def sees_prompt(self, title: str) -> None:
        """Waits until a prompt is on the screen that is answered by a code action."""
        self._world.shows(f"Kode asks: {title}.")

    def _choose(self, title: str, is_choice: re.Pattern[str]) -> None:
        """Chooses from the menu that is open, whose first choice is selected."""
        self._world.shows(title)
        choices = [line for line in self._world.screen().splitlines() if is_choice.search(line)]
        found = [at for at, choice in enumerate(choices) if title in choice]
        if not found:
            raise Failed(f"the menu has no choice {title!r}: {choices}")
        for _ in range(found[0]):
            self._world.press("Down")
        self._world.press("Enter")

    def answer(self, title: str) -> None:
        """Answers the prompt that is open."""
        self._choose(title, re.compile(r"^ +(Deny|Allow once|Allow for this session|Always allow \w+ ?\w* ?\w*) *$"))

    def dismiss(self) -> None:
        """Closes the prompt unanswered."""
        self._world.press("Escape")
        self._world.shows("Still waiting for an answer")

    def act(self, line: int, title: str) -> None:
        """Runs the code action with this title on a line."""
        self._world.type(f"{line}gg")
        self._code_action(title)

    def act_on(self, first: int, last: int, title: str) -> None:
        """Runs the code action with this title on some lines."""
        self._world.type(f"{first}gg{last - first + 1}x")
        self._code_action(title)

    def _code_action(self, title: str) -> None:
        self._world.press("Space", "a")
        self._choose(title, re.compile("Kode: "))

    def type_line(self, text: str) -> None:
        """Types a line at the top of the buffer."""
        self._world.type("ggO")
        self._world.shows("INS")
        self._world.type(text)
        self._world.press("Escape")
        self._world.shows("NOR", text)

    def type_below(self, pieces: list[str]) -> None:
        """Types a line at the end of the buffer, piece by piece."""
        self._world.type("geo")
        self._world.shows("INS")
        for piece in pieces:
            self._world.type(piece)
        self._world.press("Escape")
        self._world.shows("NOR")

    def complete(self, typed: str, shown: str) -> None:
        """Types a line at the top of the buffer whose end is completed to the shown text."""
        self._world.type("ggO")
        self._world.shows("INS")
        self._world.type(typed)
        self._world.shows(shown)
        self._world.press("Tab", "Enter")
        self._world.press("Escape")
        self._world.shows("NOR")

    def save(self) -> None:
        """Writes the buffer, and waits: Helix refuses to write again before it knows that it has written."""
        self._command(":write")
        self._world.shows("written")

    def undo(self) -> None:
        """Takes one step back."""
        self._world.type("u")
