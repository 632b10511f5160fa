"""Runs the cases in the real clients; the arguments are those of the runner in tests/editors.

Rule: as in the runner.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "editors"))

import acp_cases
import runner
from clients import ClientWorld

sys.exit(runner.run(acp_cases.of, ClientWorld))
