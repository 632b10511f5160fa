"""The common part of the clients in Neovim: the keys of the file's window, and what the windows show.

Rule: keys are typed as a user types them. The tests read the buffers of the open windows, because the
terminal cuts long lines and hides what has scrolled away; nothing is changed that way.
"""

import json
import subprocess
from pathlib import Path

import acp_cases
from clients import DOCS, Client, settings
from world import LIMIT, Page

SHOWN = """
luaeval('vim.json.encode(vim.tbl_map(function(window)
  local buffer = vim.api.nvim_win_get_buf(window)
  return { name = vim.api.nvim_buf_get_name(buffer), modified = vim.bo[buffer].modified,
    text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), "\\n") .. "\\n" }
end, vim.api.nvim_list_wins()))')
"""


class Neovim(Client):
    """A client in Neovim; the programs are Neovim and the folders of the plugins."""

    section = ""
    """The section of the page that is about it."""
    before = ""
    """Lua that the configuration begins with."""
    answers = ("", "", "")
    """The answers to a request: once, for longer, and no."""

    def open(self, name: str, paired: bool = False) -> None:
        """Opens a file, and the panel beside it; with the language server in the same Neovim if it is to be paired."""
        self._name = name
        plugins = "".join(f"vim.opt.rtp:append({json.dumps(folder)})\n" for folder in self._programs[1:])
        server = Page("Neovim", DOCS / "editors.md").block("lua") if paired else ""
        self.world.config("config/nvim/init.lua", self.before + plugins + settings(self.section, "lua") + server)
        # The socket of a Neovim that was killed stays.
        self._socket.unlink(missing_ok=True)
        self.world.start([self._programs[0], "--listen", str(self._socket), name])
        self.world.until("Neovim has the file", lambda: self._socket.exists() and self._file() is not None)
        if paired:
            self.world.until("the language server is attached", lambda: self._evaluate("len(v:lua.vim.lsp.get_clients())") == "1")
        self._open_panel()

    @property
    def _socket(self) -> Path:
        return self.world.folder / "nvim"

    def _evaluate(self, expression: str) -> str:
        command = [self._programs[0], "--server", str(self._socket), "--remote-expr", " ".join(expression.split("\n"))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
        return done.stdout.strip()

    def _windows(self) -> list[dict]:
        return json.loads(self._evaluate(SHOWN) or "[]")

    def _file(self) -> dict | None:
        found = [window for window in self._windows() if window["name"].endswith("/" + self._name)]
        return found[0] if found else None

    def buffer(self) -> str:
        """The text of the file's buffer."""
        found = self._file()
        return found["text"] if found else ""

    def is_unsaved(self) -> bool:
        """Whether the file's buffer differs from its text when it was loaded or saved last."""
        found = self._file()
        return bool(found and found["modified"])

    def conversation(self) -> str:
        """The text of all windows but the file's."""
        return "\n".join(window["text"] for window in self._windows() if not window["name"].endswith("/" + self._name))

    def command(self, line: str) -> None:
        """Runs a command, from normal mode."""
        self.world.type(":" + line)
        self.world.press("Enter")

    def normal(self) -> None:
        """Goes to normal mode."""
        # Not Escape: Neovim waits after one for the rest of a longer key, and takes two for one with Alt.
        self.world.press("C-\\", "C-n")
        self.world.until("Neovim is in normal mode", lambda: self._evaluate("mode()") == "n")

    def focus_file(self) -> None:
        """Goes to the window of the file."""
        self.normal()
        self.command(f"execute bufwinnr('{self._name}$') . 'wincmd w'")
        self.world.until("the file has the focus", lambda: self._evaluate("expand('%:t')") == self._name)

    def window(self, filetype: str) -> str:
        """The expression for the number of the window of a type."""
        return f"filter(range(1, winnr('$')), 'getbufvar(winbufnr(v:val), \"&filetype\") ==# \"{filetype}\"')[0]"

    def focus(self, filetype: str) -> None:
        """Goes to the window of a type."""
        self.normal()
        self.command(f"execute {self.window(filetype)} . 'wincmd w'")
        self.world.until(f"{filetype} has the focus", lambda: self._evaluate("&filetype") == filetype)

    def type_line(self, text: str) -> None:
        """Types a line at the top of the file's buffer."""
        self.focus_file()
        self.world.type("ggO" + text)
        self.normal()
        self.world.until("the line is in the buffer", lambda: self.buffer().startswith(text))

    def save(self) -> None:
        """Writes the file's buffer."""
        self.focus_file()
        self.command("write")
        self.world.until("the file is saved", lambda: not self.is_unsaved())

    def undo(self) -> None:
        """Takes one step back in the file's buffer."""
        self.focus_file()
        self.command("undo")

    def reload(self) -> None:
        """Loads a file that has changed on the disk: no client does so after a command."""
        self.focus_file()
        self.command("checktime")

    def allow(self) -> None:
        """Allows the request once."""
        self._answer(self.answers[0])

    def allow_always(self) -> None:
        """Allows for longer."""
        self._answer(self.answers[1])

    def deny(self) -> None:
        """Denies the request."""
        self._answer(self.answers[2])

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

    def _answer(self, answer: str) -> None:
        raise NotImplementedError

    def _open_panel(self) -> None:
        raise NotImplementedError
