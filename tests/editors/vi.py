"""The common part of Vim and Neovim: their keys, and menus whose choices are numbered."""

import re

from world import Page, World


class Vi:
    """An editor of the family, driven by its keys and typed commands."""

    section = ""
    """The section of the page that is about it."""

    def __init__(self, world: World, programs: list[str]):
        self._world, self._programs = world, programs
        self._page = Page(self.section)

    def _command(self, line: str) -> None:
        # A colon leads out of a message that waits for a key, too. Escape would not do: what follows it soon enough is
        # read as one key with Alt.
        self._world.type(line)
        self._world.press("Enter")

    def ask(self, text: str) -> None:
        """Asks, as the page says."""
        self._command(self._page.keys(":Kode fix").replace("fix the typo", text))

    def open_prompt(self) -> None:
        """Has the prompt shown: it is by itself."""

    def cancel(self) -> None:
        """Cancels what runs."""
        self._command(self._page.keys(":KodeCancel"))

    def sees_prompt(self, title: str) -> None:
        """Waits until a prompt is on the screen that is answered by a code action."""
        self._world.shows(title, "Answer with a code action")

    def _choose(self, title: str) -> None:
        """Chooses from the menu that is open."""
        pattern = re.compile(rf"^(\d+)[:)] {re.escape(title)}", re.MULTILINE)
        found = self._world.until(f"the menu offers {title!r}", lambda: pattern.search(self._world.screen()))
        self._world.type(found[1])
        self._world.press("Enter")

    def act(self, line: int, title: str) -> None:
        """Runs the code action with this title on a line."""
        self._command(f":{line}")
        self._code_actions()
        self._choose(title)

    def act_on(self, first: int, last: int, title: str) -> None:
        """Runs the code action with this title on some lines."""
        self._command(f":{first}")
        self._world.type(f"V{last}G")
        self._world.shows("VISUAL LINE")
        self._code_actions()
        self._choose(title)

    def _code_actions(self) -> None:
        raise NotImplementedError

    def type_line(self, text: str) -> None:
        """Types a line at the top of the buffer."""
        self._world.type("ggO")
        self._world.shows("-- INSERT --")
        self._world.type(text)
        self._world.press("Escape")
        self._world.hides("-- INSERT --")

    def type_below(self, pieces: list[str]) -> None:
        """Types a line at the end of the buffer, piece by piece."""
        self._world.type("Go")
        self._world.shows("-- INSERT --")
        for piece in pieces:
            self._world.type(piece)
        self._world.press("Escape")
        self._world.hides("-- INSERT --")

    def complete(self, typed: str, shown: str) -> None:
        """Types a line at the top of the buffer whose end is completed to the shown text."""
        self._world.type("ggO")
        self._world.shows("-- INSERT --")
        self._world.type(typed)
        for key in re.findall(r"<(C-\w)>", self._page.keys("<C-x>")):
            self._world.press(key)
        self._world.shows(shown)
        self._world.press("C-y")
        self._world.press("Escape")
        self._world.hides("-- INSERT --")

    def save(self) -> None:
        """Writes the buffer."""
        self._command(":write")

    def undo(self) -> None:
        """Takes one step back."""
        self._command(":undo")
