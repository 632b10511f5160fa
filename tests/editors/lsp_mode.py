"""Emacs with lsp-mode and the package `kode.el`, in a terminal."""

import kode_el
from world import Page


class Editor(kode_el.Editor):
    """Emacs whose client of language servers is lsp-mode: prompts are messages, answered as with Eglot."""

    completes_commands = False
    """`completion-at-point` puts in the label of a command, which has the slash that is typed already."""

    def __init__(self, world, programs):
        super().__init__(world, programs[:1])
        self._page, self._folders = Page("Emacs with lsp-mode"), programs[1:]

    def open(self, name: str) -> None:
        """Opens a file and waits until the server has it."""
        paths = "".join(f'(add-to-list \'load-path "{folder}")\n' for folder in self._folders)
        # A package manager has these loaded; the other packages are loaded when lsp-mode requires them.
        paths += '(load "lsp-mode-autoloads" nil t)\n'
        box = self._page.block("elisp").replace("/path/to/kode-ls/editors/emacs", str(kode_el.PACKAGE))
        self._world.config(".emacs.d/init.el", paths + box)
        self._world.start([self._programs[0], "-nw", name])
        # The first file of a project: its root is the one that is found.
        self._world.shows("Select action")
        self._world.type("i")
        self._world.sent("editor", "textDocument/didOpen")

    def sees_progress(self, title: str, step: str) -> None:
        """Waits until the progress is on the screen: lsp-mode shows the steps, in the mode line."""
        self._world.shows(step)

    def sees_prompt(self, title: str) -> None:
        """Waits until a prompt is on the screen that is answered by a code action."""
        self._world.shows("Answer with a code action")

    def _code_action(self, title: str) -> None:
        before = len(self._world.traffic("editor", "workspace/executeCommand"))
        self._command("lsp-execute-code-action")
        is_only = self._world.until(
            "an action is run, or several are offered",
            lambda: "Select code action" in self._world.screen() and "no"
            or len(self._world.traffic("editor", "workspace/executeCommand")) > before and "yes",
        )
        # lsp-mode runs the only action at once.
        if is_only == "yes":
            return
        for word in title.split():
            self._world.type(word)
            # A blank alone completes.
            self._world.press("C-q", "Space")
        self._world.press("BSpace", "Enter")
