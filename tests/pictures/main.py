"""Makes pictures of terminals, joins the frames of the chat into an animation, and packs pictures of VS Code.

    main.py --server PROGRAM --neovim PROGRAM --frames FOLDER --out FOLDER [chat|vscode|neovim|demo]

Rule: a terminal is drawn as tmux reports it, cell by cell, as text with colors; no cell is added or left out.
"""

import argparse
import json
import re
import sys
import unicodedata
from html import escape
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "editors"))

from world import World  # noqa: E402

FONT = 14
CELL = 8.43
LINE = 19
MARGIN = 14
BACKGROUND = "#14161b"
FOREGROUND = "#e0e2ea"
# The palette of tmux's 16 colors.
BASE = [
    "#07080d", "#ffc0b9", "#b3f6c0", "#fce094", "#a6dbff", "#ffcaff", "#8cf8f7", "#eef1f8",
    "#4f5258", "#ffc0b9", "#b3f6c0", "#fce094", "#a6dbff", "#ffcaff", "#8cf8f7", "#eef1f8",
]  # fmt: skip


class Style(NamedTuple):
    """How a cell is drawn; `None` is the color of the terminal."""

    front: str | None = None
    back: str | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False


def indexed(number: int) -> str:
    """A color of the palette of 256."""
    if number < 16:
        return BASE[number]
    if number < 232:
        levels = [0, 95, 135, 175, 215, 255]
        number -= 16
        return "#{:02x}{:02x}{:02x}".format(levels[number // 36], levels[number // 6 % 6], levels[number % 6])
    return "#{0:02x}{0:02x}{0:02x}".format(8 + 10 * (number - 232))


def styled(style: Style, codes: list[int]) -> Style:
    """The style after an SGR sequence."""
    codes = codes or [0]
    while codes:
        code = codes.pop(0)
        if code == 0:
            style = Style()
        elif code in (38, 48):
            kind = codes.pop(0)
            color = indexed(codes.pop(0)) if kind == 5 else "#{:02x}{:02x}{:02x}".format(*(codes.pop(0) for _ in range(3)))
            style = style._replace(front=color) if code == 38 else style._replace(back=color)
        elif 30 <= code <= 37 or 90 <= code <= 97:
            style = style._replace(front=BASE[code - 30 if code < 90 else code - 82])
        elif 40 <= code <= 47 or 100 <= code <= 107:
            style = style._replace(back=BASE[code - 40 if code < 100 else code - 92])
        else:
            changes = {
                1: {"bold": True}, 2: {"dim": True}, 3: {"italic": True}, 4: {"underline": True}, 7: {"reverse": True},
                22: {"bold": False, "dim": False}, 23: {"italic": False}, 24: {"underline": False},
                27: {"reverse": False}, 39: {"front": None}, 49: {"back": None},
            }  # fmt: skip
            style = style._replace(**changes.get(code, {}))
    return style


def runs(line: str) -> list[tuple[int, str, Style]]:
    """The parts of a line of one style each, with the column where each begins."""
    found: list[tuple[int, str, Style]] = []
    style, column = Style(), 0
    for piece in re.split(r"(\x1b\[[0-9;:]*m)", line):
        if piece.startswith("\x1b["):
            style = styled(style, [int(code or 0) for code in re.split("[;:]", piece[2:-1]) if code or ";" not in piece])
        elif piece:
            found.append((column, piece, style))
            column += sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in piece)
    return found


def svg(screen: str, columns: int, title: str) -> str:
    """A screen with its escape sequences as an SVG picture."""
    lines = screen.rstrip("\n").split("\n")
    width, height = round(columns * CELL + 2 * MARGIN), len(lines) * LINE + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-label="{escape(title)}">',
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
        f'<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="{FONT}">',
    ]
    for row, line in enumerate(lines):
        top = MARGIN + row * LINE
        for column, text, style in runs(line):
            front, back = style.front or FOREGROUND, style.back or BACKGROUND
            if style.reverse:
                front, back = back, front
            left, span = round(MARGIN + column * CELL, 1), round(len(text) * CELL, 1)
            if back != BACKGROUND:
                parts.append(f'<rect x="{left}" y="{top}" width="{span}" height="{LINE}" fill="{back}"/>')
            looks = f' fill="{front}"'
            looks += ' font-weight="bold"' if style.bold else ""
            looks += ' font-style="italic"' if style.italic else ""
            looks += ' text-decoration="underline"' if style.underline else ""
            looks += ' opacity="0.65"' if style.dim else ""
            # Browsers join blanks, so that each word group has a place of its own.
            for group in re.finditer(r"\S+(?: \S+)*", text):
                left = round(MARGIN + (column + group.start()) * CELL, 1)
                span = round(len(group[0]) * CELL, 1)
                parts.append(f'<text x="{left}" y="{top + 14}" textLength="{span}"{looks}>{escape(group[0])}</text>')
    return "\n".join([*parts, "</g>", "</svg>", ""])


class Scene(World):
    """A terminal whose screen is drawn."""

    def drawn(self, columns: int, title: str) -> str:
        """The screen as a picture."""
        return svg(self._tmux("capture-pane", "-p", "-e"), columns, title)

    def bin(self) -> Path:
        """A folder with `kode-ls`."""
        folder = self.folder / "bin"
        folder.mkdir()
        (folder / "kode-ls").symlink_to(self.server)
        return folder


def demo(scene: Scene, arguments: argparse.Namespace) -> str:
    """The demo in a terminal, where it asks for the edit."""
    size = (100, 30)
    scene.open(["bash", "--norc", "--noprofile"], scene.bin(), {"PS1": "$ ", "TERM": "tmux-256color"}, size)
    scene.shows("$")
    scene.type("kode-ls demo")
    scene.press("Enter")
    scene.shows("1", "Allow", "Deny")
    return scene.drawn(size[0], "kode-ls demo in a terminal: the agent asks before it edits a file")


def neovim(scene: Scene, arguments: argparse.Namespace) -> str:
    """The plugin in Neovim: the conversation, with a proposed edit."""
    size = (112, 28)
    init = HERE.parent.parent / "editors/neovim/demo.lua"
    env = {"TERM": "tmux-256color", "COLORTERM": "truecolor", "KODE_LS_BIN": str(arguments.server)}
    scene.open([str(arguments.neovim), "-u", str(init)], scene.bin(), env, size)
    scene.shows("Fix the greeting")
    scene.press("C-s")
    scene.shows("Allow", "Deny")
    return scene.drawn(size[0], "The Neovim plugin: the conversation beside the code, with an edit that waits for an answer")


def chat(arguments: argparse.Namespace) -> bytes:
    """The frames of VS Code as one animation."""
    from io import BytesIO

    from PIL import Image

    durations = json.loads((arguments.frames / "frames.json").read_text())
    frames = [Image.open(arguments.frames / f"frame-{at:02}.png").convert("RGB") for at in range(len(durations))]
    made = BytesIO()
    frames[0].save(
        made, "WEBP", save_all=True, append_images=frames[1:], duration=durations, loop=0, quality=80, method=6
    )
    return made.getvalue()


def stills(arguments: argparse.Namespace) -> None:
    """The pictures of VS Code that the documentation shows."""
    from PIL import Image

    out = arguments.out / "vscode"
    out.mkdir(exist_ok=True)
    for name in STILLS:
        Image.open(arguments.frames / f"{name}.png").convert("RGB").save(out / f"{name}.webp", quality=82, method=6)


STILLS = [
    "first-key", "edit-permission", "edit-review", "command-permission", "recent", "answer", "output", "models", "sessions",
]  # fmt: skip
TERMINALS = {"neovim": neovim, "demo": demo}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", type=Path, required=True)
    parser.add_argument("--neovim", type=Path, required=True)
    parser.add_argument("--frames", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("picture", nargs="?", choices=["chat", "vscode", *TERMINALS])
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    wanted = [arguments.picture] if arguments.picture else ["chat", "vscode", *TERMINALS]
    for name in wanted:
        if name == "chat":
            (arguments.out / "chat.webp").write_bytes(chat(arguments))
            continue
        if name == "vscode":
            stills(arguments)
            continue
        scene = Scene(arguments.server)
        try:
            (arguments.out / f"{name}.svg").write_text(TERMINALS[name](scene, arguments))
        finally:
            scene.close()
    print(f"{len(wanted)} passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
