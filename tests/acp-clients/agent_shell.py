"""agent-shell, in Emacs.

Rule: keys are typed as a user types them. The tests read the buffers, without the text that Emacs hides.
"""

import subprocess

import acp_cases
from clients import DOCS, Client, settings
from world import LIMIT, Page

VISIBLE = """
(with-current-buffer buffer
  (let ((at (point-min)) (parts nil))
    (while (< at (point-max))
      (let ((next (next-single-char-property-change at 'invisible)))
        (unless (invisible-p at) (push (buffer-substring-no-properties at next) parts))
        (setq at next)))
    (apply #'concat (nreverse parts))))
"""
"""The text of a buffer that is not hidden."""


class Editor(Client):
    """A shell of agent-shell; the programs are Emacs and the folders of the packages."""

    denial_ends_turn = True

    def open(self, name: str, paired: bool = False) -> None:
        """Opens a file, and a new shell beside it; with the language server in the same Emacs if it is to be paired."""
        self._start(name, paired)
        self._open_shell("")
        self.world.answered("session/new")

    def _start(self, name: str, paired: bool) -> None:
        self._name = name
        folders = "".join(f'(add-to-list \'load-path "{folder}")\n' for folder in self._programs[1:])
        server = Page("Emacs", DOCS / "editors.md").block("elisp") if paired else ""
        socket = f'(setq server-name "{self.world.folder}/emacs")\n(server-start)\n'
        box = f"{folders}(require 'agent-shell)\n{settings('agent-shell', 'elisp')}{server}{socket}"
        self.world.config(".emacs.d/init.el", box)
        self.world.start([self._programs[0], "-nw", name])
        self.world.until("Emacs has the file", lambda: self.buffer())
        if paired:
            self.world.shows("Connected!")

    def _open_shell(self, session: str) -> None:
        self._command("agent-shell")
        self.world.shows("Start shell")
        self.world.type(session)
        self.world.press("Enter")

    def _evaluate(self, expression: str) -> str:
        found = self.world.folder / "found"
        write = f"(with-temp-file \"{found}\" (insert (format \"%s\" {expression})))"
        command = ["emacsclient", "-s", f"{self.world.folder}/emacs", "--eval", write]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
        return found.read_text() if done.returncode == 0 else ""

    def buffer(self) -> str:
        """The text of the file's buffer."""
        return self._evaluate(f'(with-current-buffer "{self._name}" (buffer-string))')

    def is_unsaved(self) -> bool:
        """Whether the file's buffer differs from its text when it was loaded or saved last."""
        return self._evaluate(f'(buffer-modified-p (get-buffer "{self._name}"))') == "t"

    def conversation(self) -> str:
        """The text of the shell, and the change on display."""
        shown = f"(mapconcat (lambda (buffer) {VISIBLE}) (match-buffers \"^Kode Agent\\\\|agent-shell-diff\") \"\\n\")"
        return self._evaluate(shown)

    def _command(self, name: str) -> None:
        self.world.press("M-x")
        self.world.shows("M-x")
        self.world.type(name)
        self.world.press("Enter")

    def _go(self, name: str) -> None:
        self.world.press("C-x", "b")
        self.world.shows("Switch to buffer")
        self.world.type(name)
        self.world.press("Tab", "Enter")
        self.world.until(
            f"{name} has the focus", lambda: name in self._evaluate("(buffer-name (window-buffer (selected-window)))")
        )

    def ask(self, text: str) -> None:
        """Sends a prompt, without the line of the file that a new shell puts below it."""
        self._go("Kode Agent")
        self.world.press("M->", "C-c", "C-u")
        self.world.type(text)
        self.world.press("Enter")

    def ask_meanwhile(self, text: str) -> None:
        """Has a prompt wait for the end of the turn."""
        self._go("Kode Agent")
        self._command("agent-shell-prompt-queue")
        self.world.until("a prompt can be typed", lambda: self._evaluate("(active-minibuffer-window)") not in ("", "nil"))
        self.world.type(text)
        self.world.press("Enter")

    def sees_change(self, *lines: str) -> None:
        """Shows the change that waits for an answer."""
        acp_cases.sees(self.world, self, f"Edit {self._name}", "View (v)")
        self._go("Kode Agent")
        self.world.type("v")
        acp_cases.sees(self.world, self, *lines)

    def allow(self) -> None:
        """Allows the request once."""
        self.world.type("y")

    def allow_always(self) -> None:
        """Allows for longer."""
        acp_cases.sees(self.world, self, "View (v)")
        self._go("Kode Agent")
        self.world.type("!")

    def deny(self) -> None:
        """Denies the request."""
        self._interrupt()

    def cancel(self) -> None:
        """Cancels the turn."""
        self._interrupt()

        self.world.shows("Interrupt?")
        self.world.type("y")

    def cancel_asking(self) -> None:
        """Cancels the turn while it asks."""
        self._interrupt()

    def _interrupt(self) -> None:
        self._go("Kode Agent")
        self.world.press("C-c", "C-c")

    def type_line(self, text: str) -> None:
        """Types a line at the top of the file's buffer."""
        self._go(self._name)
        self.world.press("M-<")
        self.world.type(text)
        self.world.press("Enter")
        self.world.until("the line is in the buffer", lambda: self.buffer().startswith(text + "\n"))

    def save(self) -> None:
        """Writes the file's buffer."""
        self._go(self._name)
        self.world.press("C-x", "C-s")
        self.world.until("the file is saved", lambda: not self.is_unsaved())

    def undo(self) -> None:
        """Takes one step back in the file's buffer."""
        self._go(self._name)
        self.world.press("C-x", "u")

    def edits_beside_unsaved(self) -> None:
        """The change of the text in the buffer is shown, and allowed."""
        self.sees_change('greeting = "Hello"')
        assert acp_cases.MINE in self.world.heard()
        self.allow()

    def check_unsaved(self) -> None:
        """The buffer has both, and is saved."""
        self.world.until("the buffer has both", lambda: self.buffer() == acp_cases.BOTH)
        assert self.world.read(acp_cases.NAME) == acp_cases.BOTH and not self.is_unsaved()

    def resume(self, name: str, title: str) -> None:
        """Opens a file, and continues the session of this title."""
        self._start(name, paired=False)
        # The names of the sessions begin with their folders.
        self._open_shell(self.world.project.name + "\t")
        acp_cases.sees(self.world, self, title)
