#!/usr/bin/env bash
# Installs tmux, whose terminals the tests type into, and Python for the tests themselves; prints the path of Python.
#
# Rule: those that are there already are used.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"

python=${PYTHON:-python3}
command -v tmux >/dev/null || need_packages tmux
command -v ps >/dev/null || need_packages procps
command -v "$python" >/dev/null || need_packages python3
hash -r
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "needs Python 3.11 or later; $("$python" --version) was found (set PYTHON to another one)"
command -v "$python"
