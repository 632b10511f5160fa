"""avante.nvim, in Neovim.

Rule: as in the other clients in Neovim.
"""

import acp_cases
from nvim import Neovim


class Editor(Neovim):
    """The sidebar of avante."""

    section = "avante.nvim"
    # It wraps prompts into marks, so that no command is one.
    cannot = ("a_command_of_the_agent_is_answered", "a_change_is_taken_back_by_a_command")

    def _open_panel(self) -> None:
        before = self._sessions()
        self.command("AvanteChat")
        # A prompt before that would begin a session of its own.
        self.world.until("its session is open", lambda: self._sessions() > before)
        self.world.until("the input is typed into", self._is_typed_into)

    def _sessions(self) -> int:
        told = (message.get("result") or {} for message in self.world.traffic("agent"))
        return sum("modes" in result for result in told)

    def ask(self, text: str) -> None:
        """Sends a prompt."""
        # The input is typed into at once, whenever it is entered.
        self.focus_file()
        self.command(f"execute {self.window('AvanteInput')} . 'wincmd w'")
        self.world.until("the input is typed into", self._is_typed_into)
        self.world.type(text)
        self.normal()
        self.world.press("Enter")

    def _is_typed_into(self) -> bool:
        return self._evaluate("&filetype .. mode()") == "AvanteInputi"

    def _confirm(self, key: str) -> None:
        self.world.until("the question has the focus", lambda: self._evaluate("&filetype") == "AvanteConfirm")
        self.normal()
        self.world.type(key)

    def allow(self) -> None:
        """Allows the request once."""
        self._confirm("y")

    def allow_always(self) -> None:
        """Allows for longer."""
        self._confirm("a")

    def deny(self) -> None:
        """Denies the request."""
        self._confirm("n")

    def cancel(self) -> None:
        """Cancels the turn."""
        self.focus_file()
        self.command("AvanteStop")

    def reload(self) -> None:
        """Loads a file that has changed on the disk: it does not by itself."""
        self.focus_file()
        self.command("checktime")

    def sees_change(self, *lines: str) -> None:
        """Waits until a change is shown that waits for an answer."""
        acp_cases.sees(self.world, self, *lines)

    def edits_beside_unsaved(self) -> None:
        """The change of the file on the disk is shown, and allowed."""
        self.sees_change('greeting = "Hello"')
        assert acp_cases.MINE not in self.world.heard()
        self.allow()

    def check_unsaved(self) -> None:
        """The change is on the disk, and the text in the buffer."""
        assert self.world.read(acp_cases.NAME) == acp_cases.AFTER
        assert self.buffer() == acp_cases.UNSAVED and self.is_unsaved(), self.buffer()

    def resume(self, name: str, title: str) -> None:
        """Opens a file: the newest chat of its folder is the one that goes on."""
        self.open(name)
        acp_cases.sees(self.world, self, title)
