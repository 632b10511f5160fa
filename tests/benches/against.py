"""Compares two programs by the tables of their benchmarks, which ran by turns.

    against.py FOLDER    reads FOLDER/ROUND.old and FOLDER/ROUND.new for each round

Of each time it prints the median of the rounds for both, and the ratio new : old as the median of the rounds' ratios with an
interval that holds the median of all such ratios in 95 of 100 cases where there are six rounds or more (by the sign test).

Rule: a ratio is called a difference only when its interval lies on one side of 1. Nothing fails by it.
"""

import math
import pathlib
import re
import statistics
import sys

SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}
ROW = re.compile(r"^(.+?)\s+([\d.]+) (s|ms|µs)\s+[\d.]+ (?:s|ms|µs)\s+[\d.]+ (?:s|ms|µs)(?:\s|$)")
HEADING = re.compile(r"^(.+?)\s+(?:median\s+min\s+max\s+)?budget$")


def times(text):
    """The medians of a log in seconds, by benchmark, heading and name."""
    part = about = ""
    found = {}
    for line in text.splitlines():
        if line.startswith("==== "):
            part = line.removeprefix("==== ")
        elif heading := HEADING.match(line):
            about = heading[1].strip()
        elif row := ROW.match(line):
            found[part, about, row[1].strip()] = float(row[2]) * SECONDS[row[3]]
    return found


def interval(ratios):
    """The ranks of the sign test for 95 %, or the whole range where there are too few."""
    count = len(ratios)
    skipped = 0
    tail = 0.0
    while True:
        tail += math.comb(count, skipped) / 2**count
        if tail > 0.025:
            break
        skipped += 1
    skipped = max(skipped - 1, 0)
    return ratios[skipped], ratios[count - 1 - skipped]


def shown(seconds):
    return f"{seconds * 1e6:.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def main(folder):
    rounds = sorted(folder.glob("*.old"), key=lambda path: int(path.stem))
    pairs = [(times(old.read_text()), times(old.with_suffix(".new").read_text())) for old in rounds]
    if not pairs or not pairs[0][0]:
        sys.exit(f"against.py: {folder} has no times")
    last = None
    for key in pairs[0][0]:
        measured = [(old[key], new[key]) for old, new in pairs if old.get(key) and new.get(key)]
        if not measured:
            print(f"{' / '.join(key)}: only the old program has it")
            continue
        if key[:2] != last:
            last = key[:2]
            print(f"\n{last[0]}: {last[1]}\n{'':<52}{'old':>12}{'new':>12}{'new : old':>12}")
        ratios = sorted(new / old for old, new in measured)
        low, high = interval(ratios)
        verdict = "quicker" if high < 1 else "slower" if low > 1 else ""
        old, new = (statistics.median(column) for column in zip(*measured))
        print(f"{key[2]:<52}{shown(old):>12}{shown(new):>12}{statistics.median(ratios):>12.2f}  {low:.2f} to {high:.2f}  {verdict}".rstrip())
    print(f"\n{len(pairs)} rounds; an interval on one side of 1 is a difference")


main(pathlib.Path(sys.argv[1]))
