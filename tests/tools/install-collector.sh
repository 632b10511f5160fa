#!/usr/bin/env bash
# Installs Rotel, an OpenTelemetry collector that others wrote, and prints the path of its program.
#
# Rule: its version comes from tests/tools/collector.txt alone; a program that does not run is not a program.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"

prefix=$tools/collector
python_environment "$prefix" "$here/collector.txt"
agent=$(echo "$prefix"/lib/python*/site-packages/rotel/rotel-agent)
chmod +x "$agent" || fail "the package has no program at $agent"
if ! "$agent" --version >/dev/null 2>&1; then
  # It has processors in Python, and wants the library of the interpreter that it was installed with.
  need_packages "lib$("$prefix/bin/python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')"
  "$agent" --version >/dev/null || fail "$agent does not run (see above)"
fi
echo "$agent"
