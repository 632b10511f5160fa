"""Runs the cases in the real editors; the arguments are those of the runner.

Rule: as in the runner.
"""

import sys

import cases
import runner
from world import World

sys.exit(runner.run(cases.of, World))
