"""acpx, a client for the command line: each prompt is a command in a terminal, and a file has no buffer here.

Rule: the commands are those of the page, typed into a shell; the tests read the screen.
"""

import shlex

from clients import Client, settings

SIGN = "ready>"
"""The line that the shell shows when a command has ended."""


class Editor(Client):
    """acpx in a shell; the programs are Node and the program of acpx."""

    has_terminals = True
    # It asks for yes or no alone, keeps no session of a single prompt, asks nothing in others, and waits for their ends.
    cannot = (
        "the_answer_for_longer_keeps_the_narrowest_rule",
        "a_change_is_taken_back_by_a_command",
        "unsaved_text_of_a_client_alone_is_as_the_page_says",
        "unsaved_text_beside_the_language_server_is_seen_and_kept",
        "a_turn_is_cancelled_while_it_asks",
        "a_second_prompt_during_a_turn_is_answered_after_it",
    )

    def open(self, name: str, paired: bool = False) -> None:
        """Starts a shell in the project."""
        assert not paired
        self._name = name
        bin_folder = self.world.folder / "bin"
        bin_folder.mkdir(exist_ok=True)
        (bin_folder / "acpx").write_text(f'#!/bin/sh\nexec {shlex.join(self._programs)} "$@"\n')
        (bin_folder / "acpx").chmod(0o755)
        self.world.start(["sh"], {"PS1": f"{SIGN} "})

    def _type(self, command: str) -> None:
        self.world.until("the shell is ready", lambda: self.world.screen().rstrip().endswith(SIGN))
        start = settings("acpx", "text").strip().partition(" exec ")[0]
        self.world.type(f"clear; {start} {command}")
        self.world.press("Enter")

    def buffer(self) -> str:
        """The text of the file."""
        return self.world.read(self._name)

    def conversation(self) -> str:
        """The text of the screen."""
        return self.world.screen()

    def ask(self, text: str) -> None:
        """Sends a single prompt, as the page says."""
        self._type("exec " + shlex.quote(text))

    def ask_in_session(self, text: str) -> None:
        """Sends a prompt of the folder's session."""
        if not self.world.traffic("client", "session/new"):
            self._type("sessions new")
        self._type("prompt " + shlex.quote(text))

    def allow(self) -> None:
        """Allows the request once."""
        self._answer("y")

    def allow_in_terminal(self) -> None:
        """Allows the request, and then the terminal."""
        self.allow()
        self.world.until("it asks for the terminal", lambda: self.world.screen().count("(y/N)") == 2)
        self.allow()

    def deny(self) -> None:
        """Denies the request."""
        self._answer("n")

    def _answer(self, key: str) -> None:
        self.world.shows("(y/N)")
        self.world.type(key)
        self.world.press("Enter")

    def cancel(self) -> None:
        """Cancels the turn: the shell need not wait for it."""
        self.world.press("C-c")
        self._type("cancel")

    def sees_change(self, *lines: str) -> None:
        """Waits until a change is shown that waits for an answer."""
        self.world.shows("(y/N)")

    def resume(self, name: str, title: str) -> None:
        """Starts a shell again: the folder has a session."""
        self.open(name)
