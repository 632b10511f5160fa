#!/usr/bin/env bash
# Installs the Python test client and the official model SDK, and prints the path of their interpreter.
#
# Rule: versions come from tests/python/requirements.txt alone; a changed file is a new installation.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"

python_environment "$tools/python" "$here/../python/requirements.txt"
echo "$tools/python/bin/python"
