"""avante.nvim, in Neovim.

Rule: as in the other clients in Neovim.
"""

import acp_cases
from nvim import Neovim


class Editor(Neovim):
    """The sidebar of avante."""

    section = "avante.nvim"
    answers = ("y", "a", "n")
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

    def _answer(self, answer: str) -> None:
        self.world.until("the question has the focus", lambda: self._evaluate("&filetype") == "AvanteConfirm")
        self.normal()
        self.world.type(answer)

    def cancel(self) -> None:
        """Cancels the turn."""
        self.focus_file()
        self.command("AvanteStop")

    def resume(self, name: str, title: str) -> None:
        """Opens a file: the newest chat of its folder is the one that goes on."""
        self.open(name)
        acp_cases.sees(self.world, self, title)
