#!/usr/bin/env bash
# Installs the Python test client and the official model SDK, and prints the path of their interpreter.
#
# Rule: versions come from tests/python/requirements.txt alone; a changed file is a new installation.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"

requirements=$here/../python/requirements.txt
prefix=$tools/python

base=${PYTHON:-python3}
command -v "$base" >/dev/null || { need_packages python3; hash -r; }
"$base" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "needs Python 3.11 or later; $("$base" --version) was found (set PYTHON to another one)"
stamp="$("$base" --version) $(sha256sum <"$requirements")"

if ! installed "$prefix" "$stamp" || ! "$prefix/bin/python" -c '' 2>/dev/null; then
  "$base" -c 'import ensurepip' 2>/dev/null || need_packages python3-venv
  rm -rf "$prefix"
  "$base" -m venv "$prefix" || fail "could not make a virtual environment in $prefix"
  "$prefix/bin/pip" install -q --disable-pip-version-check --no-deps -r "$requirements" </dev/null >&2 ||
    fail "could not install $requirements with pip; is the package index reachable?"
  "$prefix/bin/pip" check -q >&2 || fail "$requirements is not complete (see above); its first lines say how to renew it"
  echo "$stamp" >"$prefix/.complete"
fi
echo "$prefix/bin/python"
