#!/usr/bin/env python3
"""Puts the functions that most sessions call next to each other in a static program for Linux.

    KODE_LS_LINKER=LINKER function_order.py ARGUMENT...   links as LINKER does; kode-ls in the order of functions.txt
    function_order.py record PROGRAM                      writes functions.txt from runs of PROGRAM, which has symbols

The kernel maps a program in windows of 64 KiB, and a window counts as memory of the server once one function in it was
called. A session of many rounds calls 15 % of the code. In the order of the compiler that is in 9 of 10 windows.

functions.txt has a line for each function: a hash of its name, which has no hash of a crate in it. Functions that the
first of `RUNS` calls come first, then those that only the next one calls. A listed function that the program does not have
is skipped, and a function that is not listed comes after those that are.

Rule: the same sources and the same list give the same bytes. Both commands need nm and c++filt (binutils), and `record`
needs valgrind.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).resolve().with_name("functions.txt")

# How the output of the linker is called where it is kode-ls; everything else is linked as it is.
OUTPUT = "kode_ls-"

# The same program with its symbols, for `record` and for profiles, in the folder of the program.
WITH_SYMBOLS = "kode-ls.symbols"
STRIPPING = {"-s", "--strip-all"}

# The programs that start PROGRAM and do with it what most sessions do. The last one gets the names of tests/smoke.txt, too.
RUNS = (
    ["tests/bench", "rounds"],
    ["cargo", "test", "--locked", "--workspace", "--test", "e2e", "--", "acp::files", "acp::sessions"],
)

# The characters of a hash that are kept. Of 60,000 names two have the same with a chance of 1 in 600.
LENGTH = 10

# The smallest share of the list that a program may have. Below it the list is too old to be of use.
LEAST = 0.5


def fail(message: str) -> None:
    sys.exit(f"function_order.py: {message}")


def output_of(command: list[str], given: str | None = None) -> str:
    """The standard output of a program of binutils. Its errors are about members of archives that are no objects."""
    if shutil.which(command[0]) is None:
        fail(f"needs {command[0]}; install binutils")
    return subprocess.run(command, input=given, capture_output=True, text=True, check=False).stdout


def hashes(names: list[str]) -> dict[str, str]:
    """The hash of each mangled name. Hashes of crates and suffixes of the compiler do not count: they differ by build."""
    plain = [re.sub(r"\.(llvm\.\d+|cold|part\.\d+)", "", name) for name in names]
    readable = output_of(["c++filt"], "".join(f"{name}\n" for name in plain)).splitlines()
    if len(readable) != len(names):
        fail(f"c++filt answered {len(readable)} of {len(names)} names")
    stable = (re.sub(r"(?<=\w)\[[0-9a-f]+\]", "", name) for name in readable)
    short = (hashlib.sha256(name.encode()).hexdigest()[:LENGTH] for name in stable)
    return dict(zip(names, short, strict=True))


def functions_of(files: Iterable[str]) -> list[str]:
    """The mangled names of the functions in these files, in their order."""
    names: dict[str, None] = {}
    for file in files:
        for line in output_of(["nm", "--defined-only", "--no-sort", "--format=posix", file]).splitlines():
            parts = line.split()
            if len(parts) >= 2 and parts[1] in "tTwW":
                names[parts[0]] = None
    return list(names)


# -- linking ---------------------------------------------------------------------------------------------------------


def link(linker: str, arguments: list[str]) -> None:
    output = Path(arguments[arguments.index("-o") + 1])
    if not output.name.startswith(OUTPUT):
        os.execvp(linker, [linker, *arguments])
    # zig has no option for the order, but prints its call of lld, which has one.
    linked = subprocess.run(
        [linker, *arguments], env={**os.environ, "ZIG_VERBOSE_LINK": "1"}, stderr=subprocess.PIPE, text=True, check=False
    )
    calls = [line.split() for line in linked.stderr.splitlines() if line.startswith("ld.lld ")]
    # Its first call for a target links the start files of the C library, too.
    calls = [call for call in calls if str(output) in call]
    sys.stderr.writelines(line for line in linked.stderr.splitlines(True) if not line.startswith("ld.lld "))
    if linked.returncode != 0:
        sys.exit(linked.returncode)
    if len(calls) != 1:
        fail(f"{linker} called lld {len(calls)} times for {output}, and not once; folders must have no spaces in their names")
    call = calls[0][1:]
    listed = [line for line in LIST.read_text().splitlines() if not line.startswith("#")]
    rank = {name: place for place, name in enumerate(listed)}
    named = hashes(functions_of(file for file in call if file.endswith((".o", ".a", ".rlib"))))
    found = sorted((rank[short], place, name) for place, (name, short) in enumerate(named.items()) if short in rank)
    known = len({place for place, _, _ in found})
    if known < LEAST * len(listed):
        fail(f"the program has {known} of the {len(listed)} functions of {LIST}; record the list again (contributing.md)")
    order = output.with_suffix(".order")
    order.write_text("".join(f"{name}\n" for _, _, name in found))
    lld = [Path(linker).with_name("zig-ld"), "--symbol-ordering-file", order, "--no-warn-symbol-ordering"]
    subprocess.run([*lld, *call], check=True)
    call[call.index("-o") + 1] = str(output.parent.parent / WITH_SYMBOLS)
    subprocess.run([*lld, *(argument for argument in call if argument not in STRIPPING)], check=True)


# -- recording -------------------------------------------------------------------------------------------------------


def record(program: Path) -> None:
    if shutil.which("valgrind") is None:
        fail("needs valgrind; install it")
    functions = functions_of([str(program)])
    if not functions:
        fail(f"{program} has no symbols; `server/release` writes {WITH_SYMBOLS} beside the program")
    smoke = [line for line in (ROOT / "tests/smoke.txt").read_text().split("\n") if line and not line.startswith("#")]
    *benches, tests = RUNS
    groups: dict[str, None] = {}
    with tempfile.TemporaryDirectory() as folder:
        wrapper = Path(folder, program.name)
        for run in (*benches, [*tests, *smoke]):
            results = Path(tempfile.mkdtemp(dir=folder))
            # The scripted model is not a part of the server.
            wrapper.write_text(
                f'#!/bin/sh\n[ "$1" != scripted-model ] || exec "{program}" "$@"\n'
                f'exec valgrind -q --tool=callgrind --demangle=no --callgrind-out-file="{results}/%p" "{program}" "$@"\n'
            )
            wrapper.chmod(0o755)
            # A test may fail, because valgrind is slow and writes warnings among the output.
            environment = {**os.environ, "KODE_LS_BIN": str(wrapper)}
            subprocess.run(run, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, check=False)
            called = set()
            for file in results.iterdir():
                called.update(re.findall(r"^c?fn=\(\d+\) ([^'\n]+)", file.read_text(errors="replace"), re.MULTILINE))
            called.difference_update(groups)
            found = [name for name in functions if name in called]
            if not found:
                fail(f"`{' '.join(run)}` called no function (see above); the list stays as it is")
            groups.update(dict.fromkeys(found))
            print(f"{len(found):6} functions by {' '.join(run[:3])}")
    lines = dict.fromkeys(hashes(list(groups)).values())
    heading = "# Functions that most sessions call, as hashes of their names. Written by `function_order.py record`.\n"
    LIST.write_text(heading + "".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    if linker := os.environ.get("KODE_LS_LINKER"):
        link(linker, sys.argv[1:])
    elif len(sys.argv) == 3 and sys.argv[1] == "record":
        record(Path(sys.argv[2]).resolve())
    else:
        fail("usage: function_order.py record PROGRAM; KODE_LS_LINKER=LINKER function_order.py ARGUMENT...")
