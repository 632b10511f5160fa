"""Vim with ALE, which shows no prompts and no progress, and does not announce that it applies edits."""

from vi import Vi


class Editor(Vi):
    """Vim; the second program is the folder of ALE."""

    section = "Vim"

    def open(self, name: str) -> None:
        """Opens a file and waits until the server has it."""
        self._world.config(".vimrc", f"set runtimepath^={self._programs[1]}\n" + self._page.block("vim"))
        self._world.start([self._programs[0], name])
        self._world.sent("editor", "textDocument/didOpen")

    def sees_progress(self, title: str, step: str) -> None:
        """ALE shows none."""

    def sees_prompt(self, title: str) -> None:
        """Waits until a prompt is on the screen that is answered by a code action: beside the line it is about."""
        self._world.shows(f"Kode asks: {title}.")

    def answer(self, title: str) -> None:
        """Answers the prompt by a code action."""
        self.act(1, f"Kode: {title}")

    def dismiss(self) -> None:
        """Leaves the prompt unanswered: nothing is in the way."""

    def _code_actions(self) -> None:
        self._world.type(self._page.keys(":ALECodeAction"))
        self._world.press("Enter")
