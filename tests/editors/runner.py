"""Runs cases in real programs, each in a world of its own.

    --server PROGRAM --out FOLDER --failed COUNT --editor NAME=PROGRAM[,MORE] ... [PATTERN]

`NAME` is a module with a class `Editor`; `--failed` counts what has failed before.

Rule: every case runs even when an earlier one failed; the last line counts them all.
"""

import argparse
import importlib
import re
import subprocess
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

from world import Failed, World


def run(of: Callable[[type], Iterable[tuple[str, Callable]]], kind_of_world: type[World]) -> int:
    """Runs the cases that `of` gives for each kind of editor; 0 when all of them passed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--failed", type=int, default=0)
    parser.add_argument("--editor", action="append", default=[])
    parser.add_argument("pattern", nargs="?", default="")
    arguments = parser.parse_args()
    passed, failed = 0, arguments.failed
    for editor in arguments.editor:
        name, programs = editor.split("=", 1)
        kind = importlib.import_module(name).Editor
        for title, case in of(kind):
            title = f"{name}: {title}"
            if not re.search(arguments.pattern, title):
                continue
            world = kind_of_world(arguments.server)
            try:
                case(world, kind(world, programs.split(",")))
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
