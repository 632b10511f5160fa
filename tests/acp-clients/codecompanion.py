"""CodeCompanion, in Neovim.

Rule: as in the other clients in Neovim.
"""

import re

import acp_cases
from nvim import Neovim


class Editor(Neovim):
    """A chat of CodeCompanion."""

    section = "CodeCompanion"
    # Debian builds LuaJIT with an extension of Lua 5.2, by which the main coroutine is one. CodeCompanion then waits in it, and
    # its /resume fails.
    before = """local running = coroutine.running
coroutine.running = function()
  local thread, is_main = running()
  return not is_main and thread or nil
end
"""
    # It sends nothing while a turn runs.
    cannot = ("a_second_prompt_during_a_turn_is_answered_after_it",)

    def _open_panel(self) -> None:
        self.command("CodeCompanionChat")
        self.world.answered("session/new")

    def ask(self, text: str) -> None:
        """Sends a prompt."""
        self.focus("codecompanion")
        self.world.type("Go" + text)
        self.normal()
        self.world.press("Enter")

    def _choose(self, label: str) -> None:
        key = self.world.until(f"the chat offers {label}", lambda: self._offered().get(label))
        self.focus("codecompanion")
        self.world.type(key)

    def _offered(self) -> dict[str, str]:
        """The choices of the newest request by their labels."""
        lines = [line.split("`") for line in self.conversation().splitlines() if line.startswith("- `")]
        return {parts[2].removeprefix(" - "): parts[1] for parts in lines}

    def allow(self) -> None:
        """Allows the request once."""
        self._choose("Accept")

    def allow_always(self) -> None:
        """Allows for longer."""
        self._choose("Always accept")

    def deny(self) -> None:
        """Denies the request."""
        self._choose("Reject")

    def cancel(self) -> None:
        """Cancels the turn."""
        self.focus("codecompanion")
        self.world.type("q")

    def reload(self) -> None:
        """Loads a file that has changed on the disk: it does not by itself."""
        self.command("checktime")

    def ask_command(self, line: str) -> None:
        """Sends a command of the agent."""
        self.ask("\\" + line)

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
        """Opens a file, and continues the session of this title."""
        self.open(name)
        self.focus("codecompanion")
        self.world.type("Go/res")
        self.world.press("C-x", "C-o")
        # It complains of its own prompts in files, because no parser for them is installed.
        self.world.until("names are offered", self._passes_complaints)
        self.world.press("C-y")
        pattern = re.compile(rf"(\d+): .*{title}")
        found = self.world.until("the session is offered", lambda: pattern.search(self.world.screen()))
        self.world.type(found[1])
        self.world.press("Enter")
        self.world.shows("Resumed session", "Press ENTER")
        self.world.press("Enter")
        acp_cases.sees(self.world, self, title)

    def _passes_complaints(self) -> bool:
        screen = self.world.screen()
        if "Press ENTER" in screen:
            self.world.press("Enter")
            return False
        return "[slash_command]" in screen or "/resume" in screen
