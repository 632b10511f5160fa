"""Toad, which is a client in the terminal and no editor: a file has no buffer here.

Rule: keys are typed as a user types them, and the tests read the screen.
"""

import re

from clients import Client, settings


class Editor(Client):
    """Toad; the program is Toad's own."""

    has_terminals = True
    cannot = ("unsaved_text_of_a_client_alone_is_as_the_page_says", "unsaved_text_beside_the_language_server_is_seen_and_kept")

    def open(self, name: str, paired: bool = False) -> None:
        """Starts Toad in the project, as the page says."""
        assert not paired
        self._name = name
        self.world.start(["sh", "-c", settings("Toad", "text").replace("toad ", f"{self._programs[0]} ", 1)])
        self.world.shows("How can I help you today?", "Ask")

    def buffer(self) -> str:
        """The text of the file."""
        return self.world.read(self._name)

    def conversation(self) -> str:
        """The text of the screen, without the frames."""
        return re.sub(r"[▎▊▌▐▏▔▁╍]+", " ", self.world.screen())

    def ask(self, text: str) -> None:
        """Sends a prompt."""
        self.world.type(text)
        self.world.shows(text)
        self.world.press("Enter")

    def ask_command(self, line: str) -> None:
        """Sends a command of the agent."""
        # Pasted: keys behind a slash go into a search for names.
        self.world.paste("/" + line)
        self.world.shows("/" + line)
        self.world.press("Enter")

    def _press_for(self, shown: str, key: str) -> None:
        self.world.shows(shown)
        self.world.type(key)

    def allow(self) -> None:
        """Allows the request once."""
        self._press_for("Allow once", "a")

    def allow_always(self) -> None:
        """Allows for longer."""
        self._press_for("A Allow for this session", "A")

    def deny(self) -> None:
        """Denies the request."""
        self._press_for("r Deny", "r")

    def cancel(self) -> None:
        """Cancels the turn."""
        self.world.press("Escape")
        self.world.shows("again to cancel")
        self.world.press("Escape")

    def sees_change(self, *lines: str) -> None:
        """Waits until a change is shown that waits for an answer."""
        self.world.shows("Approval request", *lines)

    def resume(self, name: str, title: str) -> None:
        """Continues the session that was used last."""
        self._name = name
        self.world.start([self._programs[0]])
        self.world.shows("Resume")
        self.world.press("C-r")
        # Its list does not show the titles of sessions.
        self.world.shows("Pick a session to resume", str(self.world.project))
        self.world.press("Enter")
        self.world.shows("How can I help you today?", "Ask")
