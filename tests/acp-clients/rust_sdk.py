"""The client in rust-sdk, which speaks through the official Rust SDK: a client in the terminal, and a file has no buffer here.

Rule: lines are typed as a user types them, and the tests read the screen.
"""

import re

from clients import Client


class Editor(Client):
    """The program of rust-sdk."""

    cannot = ("unsaved_text_of_a_client_alone_is_as_the_page_says", "unsaved_text_beside_the_language_server_is_seen_and_kept")

    def open(self, name: str, paired: bool = False) -> None:
        """Starts the client in the project."""
        assert not paired
        self._start(name)

    def resume(self, name: str, title: str) -> None:
        """Continues the session that was used last."""
        self._start(name, "--resume")

    def _start(self, name: str, *options: str) -> None:
        self._name = name
        self.world.start([self._programs[0], *options, "kode-ls", "acp"])
        self.world.shows("ready:")

    def buffer(self) -> str:
        """The text of the file."""
        return self.world.read(self._name)

    def conversation(self) -> str:
        """The text of the screen."""
        return self.world.screen()

    def ask(self, text: str) -> None:
        """Sends a prompt."""
        self.world.type(text)
        self.world.press("Enter")

    def _choose(self, option: str) -> None:
        self.world.shows("permission:", option)
        numbers = re.findall(rf"\[(\d+)\] {re.escape(option)}", self.world.screen())
        self.ask(numbers[-1])

    def allow(self) -> None:
        """Allows the request once."""
        self._choose("Allow once")

    def allow_always(self) -> None:
        """Allows for longer."""
        self._choose("Allow for this session")

    def deny(self) -> None:
        """Denies the request."""
        self._choose("Deny")

    def cancel(self) -> None:
        """Cancels the turn."""
        self.ask(":cancel")

    def sees_change(self, *lines: str) -> None:
        """Waits until a change is shown that waits for an answer."""
        self.world.shows("permission:", *lines)
