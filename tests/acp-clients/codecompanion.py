"""CodeCompanion, in Neovim.

Rule: as in the other clients in Neovim.
"""

import re

import acp_cases
from nvim import Neovim


class Editor(Neovim):
    """A chat of CodeCompanion."""

    section = "CodeCompanion"
    answers = ("Accept", "Always accept", "Reject")
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

    def _answer(self, answer: str) -> None:
        key = self.world.until(f"the chat offers {answer}", lambda: self._offered().get(answer))
        self.focus("codecompanion")
        self.world.type(key)

    def _offered(self) -> dict[str, str]:
        """The choices of the newest request by their labels."""
        lines = [line.split("`") for line in self.conversation().splitlines() if line.startswith("- `")]
        return {parts[2].removeprefix(" - "): parts[1] for parts in lines}

    def cancel(self) -> None:
        """Cancels the turn."""
        self.focus("codecompanion")
        self.world.type("q")

    def ask_command(self, line: str) -> None:
        """Sends a command of the agent."""
        self.ask("\\" + line)

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
