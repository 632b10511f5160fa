"""Runs the cases of the command line in a terminal.

    main.py --server PROGRAM --out FOLDER [PATTERN]

Rule: every case runs even when an earlier one failed; the last line counts them all.
"""

import argparse
import re
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "editors"))

from world import Failed, World, call, say  # noqa: E402

CASES: dict[str, Callable[["Terminal"], None]] = {}

GREETING = 'mine = 0\nfirst = 1\ngreeting = "Helo"\nlast = 3\n'
READ = call("Read", file_path="{{cwd}}/greeting.py")
EDIT = call("Edit", file_path="{{cwd}}/greeting.py", old_string="Helo", new_string="Hello")


def case(title: str) -> Callable[[Callable[["Terminal"], None]], None]:
    """Names a case."""

    def add(function: Callable[["Terminal"], None]) -> None:
        CASES[title] = function

    return add


class Terminal(World):
    """A shell in a terminal, with `kode-ls` on its path."""

    def shell(self, size: tuple[int, int] = (80, 24), env: dict[str, str] | None = None) -> None:
        """Opens it."""
        self.write("greeting.py", GREETING)
        bin_folder = self.folder / "bin"
        bin_folder.mkdir()
        (bin_folder / "kode-ls").symlink_to(self.server)
        self.open(["bash", "--norc", "--noprofile"], bin_folder, {"PS1": "$ ", **(env or {})}, size)
        self.shows("$")

    def enter(self, line: str) -> None:
        """Types a line."""
        self.type(line)
        self.press("Enter")

    def ready(self) -> None:
        """Waits until the conversation asks for a prompt."""
        self.until("a prompt can be typed", lambda: self.screen().rstrip().endswith("\n>"))

    def ends(self, code: int) -> None:
        """Waits until the command has ended with this code."""
        self.enter("echo code $?.")
        self.shows(f"code {code}.")


@case("run: the answer streams, and ends with what it took and how to go on")
def _(world: Terminal) -> None:
    world.serve(say("The first half. The second half.", chunk=4, gate="half", gate_after_events=6))
    world.shell()
    world.enter("kode-ls run 'say it'")
    world.wait_held("half")
    world.shows("The first ha")
    assert "second half" not in world.screen(), world.screen()
    world.release("half")
    screen = world.shows("The second half.", "1 model call", "kode-ls run -c")
    assert screen.count("The first half.") == 1, screen
    world.ends(0)


@case("run: the running call is on the screen while it runs")
def _(world: Terminal) -> None:
    world.serve(call("Bash", command="sleep 2 && echo slept", description="Sleep"), say("Slept."))
    world.shell()
    world.enter("kode-ls run --mode bypassPermissions 'sleep'")
    world.shows("◦", "sleep 2")
    world.until("the seconds count", lambda: "(1 s)" in world.screen())
    screen = world.shows("Slept.", "•")
    assert "◦" not in screen, screen
    world.ends(0)


@case("run: piped output gets the answer alone")
def _(world: Terminal) -> None:
    world.serve(READ, EDIT, say("Edited."))
    world.shell()
    world.enter("kode-ls run --mode acceptEdits 'edit' 2>/dev/null | cat -A")
    world.shows("Edited.$")


@case("run: Ctrl-C ends the turn, and the exit code says so")
def _(world: Terminal) -> None:
    world.serve(say("Never to be finished.", gate="never", gate_after_events=6))
    world.shell()
    world.enter("kode-ls run 'say it'")
    world.wait_held("never")
    world.press("C-c")
    world.ends(130)


@case("run: it says that standard input is waited for")
def _(world: Terminal) -> None:
    world.serve(say("Seen."))
    world.shell()
    world.enter("sleep 4 | kode-ls run 'look'")
    world.shows("Waiting for standard input to end")
    world.shows("Seen.")


for columns, rows in ((80, 24), (100, 30), (120, 40)):

    def prompt(world: Terminal, size: tuple[int, int] = (columns, rows)) -> None:
        world.serve(READ, EDIT, say("Done."))
        world.shell(size)
        world.write("greeting.py", GREETING + "".join(f"line_{number} = {number}\n" for number in range(100)))
        world.enter("clear; kode-ls run 'mend the greeting'")
        screen = world.shows("Number, y or n")
        for part in ("Edit greeting.py", "1  Deny", "2  Allow once", "3  Allow for this session", "4  Allow all edits"):
            assert part in screen, f"{part} is not on:\n{screen}"
        world.enter("2")
        world.shows("Done.")
        assert 'greeting = "Hello"' in world.read("greeting.py")
        world.ends(0)

    CASES[f"prompt: all of it is on a screen of {columns}x{rows}, and 2 allows once"] = prompt


@case("prompt: 1 and return deny, a reason is heard")
def _(world: Terminal) -> None:
    world.serve(READ, EDIT, EDIT, EDIT, say("Left alone."))
    world.shell((80, 70))
    world.enter("kode-ls run 'mend the greeting'")
    world.shows("Number, y or n")
    world.enter("1")
    world.until("the second prompt", lambda: world.screen().count("Number, y or n") == 2)
    world.press("Enter")
    world.until("the third prompt", lambda: world.screen().count("Number, y or n") == 3)
    world.enter("use a constant instead")
    world.shows("Left alone.", "3 calls were denied")
    assert any("use a constant instead" in text for text in world.results())
    assert world.read("greeting.py") == GREETING


@case("prompt: keys typed before it is shown answer nothing")
def _(world: Terminal) -> None:
    world.serve(call("Bash", command="sleep 2", description="Sleep"), READ, EDIT, say("Done."))
    world.shell()
    world.enter("kode-ls run --allowed-tools 'Bash(sleep:*)' 'mend the greeting'")
    world.shows("◦")
    world.enter("2")
    world.shows("Number, y or n")
    assert world.read("greeting.py") == GREETING
    world.enter("n")
    world.shows("Done.")
    assert world.read("greeting.py") == GREETING


@case("prompt: all edits of a session are allowed by one answer")
def _(world: Terminal) -> None:
    back = call("Edit", file_path="{{cwd}}/greeting.py", old_string="Hello", new_string="Hi")
    world.serve(READ, EDIT, back, say("Done."))
    world.shell()
    world.enter("kode-ls run 'mend the greeting'")
    world.shows("4  Allow all edits for this session")
    world.enter("4")
    world.shows("Done.")
    assert "Hi" in world.read("greeting.py")


@case("prompt: a long diff is cut, and d shows all of it")
def _(world: Terminal) -> None:
    text = "".join(f"new line {number}\n" for number in range(60))
    world.serve(call("Write", file_path="{{cwd}}/long.txt", content=text), say("Done."))
    world.shell()
    world.enter("clear; kode-ls run 'write much'")
    screen = world.shows("Number, y or n", "more lines (d shows all)")
    assert "Create long.txt" in screen and "1  Deny" in screen, screen
    world.enter("d")
    world.shows("new line 59")
    world.enter("1")
    world.shows("Done.")
    assert not world.has("long.txt")


@case("chat: a bare start begins a conversation with completion, prompts and commands")
def _(world: Terminal) -> None:
    world.serve(READ, EDIT, say("Mended."), prompts=[("again", [say("Said again.")])])
    world.shell((100, 40))
    world.enter("kode-ls")
    world.shows("Ctrl-D exits", ">")
    world.type("mend @gree")
    world.press("Tab")
    world.shows("mend @greeting.py")
    world.press("Enter")
    world.shows("Number, y or n")
    world.enter("y")
    world.shows("Mended.", "3 model calls")
    assert 'greeting = "Hello"' in world.read("greeting.py")
    world.ready()
    world.enter("say it again")
    world.shows("Said again.")
    world.ready()
    world.type("/comp")
    world.press("Tab")
    world.shows("> /compact")
    world.press("C-u")
    world.enter("/help")
    world.shows("/worktree")
    world.ready()
    world.press("C-d")
    world.shows("kode-ls chat -c")
    world.ends(0)


@case("chat: Ctrl-C stops a turn and not the conversation, also at a prompt")
def _(world: Terminal) -> None:
    world.serve(say("Never finished.", gate="never", gate_after_events=6), prompts=[("mend", [READ, EDIT, say("Done.")])])
    world.shell((100, 40))
    world.enter("kode-ls chat 'say it'")
    world.wait_held("never")
    world.press("C-c")
    world.ready()
    world.enter("mend it")
    world.shows("Number, y or n")
    world.press("C-c")
    world.ready()
    world.enter("mend it, please")
    world.until("a second prompt", lambda: world.screen().count("Number, y or n") == 2)
    world.enter("2")
    world.shows("Done.")
    world.ready()
    world.press("C-d")
    world.shows("kode-ls chat -c")
    world.ends(0)


@case("chat: a side question is answered beside the conversation, and Ctrl-C ends the wait for it")
def _(world: Terminal) -> None:
    held = say("Never finished.", gate="never", gate_after_events=6)
    world.serve(say("Fine."), prompts=[("why", [say("Because of the **cache**.")]), ("for ever", [held])])
    world.shell((100, 40))
    world.enter("kode-ls chat 'say it'")
    world.shows("Fine.")
    world.ready()
    world.enter("/btw why?")
    world.shows("Because of the **cache**.")
    world.ready()
    world.enter("/btw for ever?")
    world.wait_held("never")
    world.press("C-c")
    world.ready()
    world.enter("/export")
    screen = world.shows("# say it")
    assert "cache" not in screen.split("/export")[-1], screen
    world.ready()
    world.press("C-d")
    world.shows("kode-ls chat -c")
    world.ends(0)


@case("chat: another conversation is gone on with")
def _(world: Terminal) -> None:
    world.serve(say("Fine."), prompts=[("second", [say("In the second.")])])
    world.shell((100, 40))
    world.enter("kode-ls run 'the first talk'")
    world.shows("Fine.", "continue with")
    world.enter("clear; kode-ls chat 'the second talk'")
    world.shows("In the second.")
    world.ready()
    world.enter("/sessions")
    world.shows("the first talk")
    world.ready()
    world.enter("/resume first")
    world.shows("Going on with")
    world.ready()
    world.enter("/export")
    world.shows("# the first talk")
    world.ready()
    world.press("C-d")
    world.shows("kode-ls chat -c")
    world.ends(0)


@case("bare: without a model two lines say what this is and what is missing")
def _(world: Terminal) -> None:
    world.shell(env={"ANTHROPIC_BASE_URL": "", "ANTHROPIC_API_KEY": ""})
    world.enter("kode-ls")
    world.shows("language server", "kode-ls help", "ANTHROPIC_API_KEY")
    world.ends(2)


@case("demo: after a no it says so")
def _(world: Terminal) -> None:
    world.shell((100, 50))
    world.enter("kode-ls demo")
    world.shows("Number, y or n")
    world.enter("1")
    # The command is asked for where there is no sandbox.
    world.until("the second prompt, or the end", lambda: re.search(r"Number.*Number|the edit is on disk", world.screen(), re.S))
    if "the edit is on disk" not in world.screen():
        world.enter("1")
    screen = world.shows("you refused a call", "no the edit is on disk")
    assert "FAIL" not in screen and "Done: `greet`" not in screen, screen
    world.ends(0)


@case("trust: what is approved is shown and asked for")
def _(world: Terminal) -> None:
    world.shell((100, 30))
    (world.project / ".kode").mkdir()
    world.write(".kode/settings.json", '{"permissions":{"allow":["Bash(make:*)"]}}')
    world.enter("kode-ls trust approve")
    world.shows("Bash(make:*)", "Approve this? [y/N]")
    world.enter("n")
    world.shows("nothing was approved")
    world.enter("clear; kode-ls trust approve")
    world.hides("nothing was approved")
    world.shows("Approve this?")
    world.enter("y")
    world.shows("approved: 1")


def main() -> int:
    """Runs the cases; 0 when all of them passed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("pattern", nargs="?", default="")
    arguments = parser.parse_args()
    passed = failed = 0
    for title, run in CASES.items():
        if not re.search(arguments.pattern, title):
            continue
        world = Terminal(arguments.server)
        try:
            run(world)
            passed += 1
            print(f"ok    {title}", flush=True)
        except (Failed, AssertionError, OSError, subprocess.SubprocessError) as problem:
            failed += 1
            kept = arguments.out / re.sub(r"\W+", "-", title)
            world.keep(kept)
            print(f"FAIL  {title}\n{problem or traceback.format_exc()}", flush=True)
            print((kept / "screen.txt").read_text().rstrip(), flush=True)
        finally:
            world.close()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
