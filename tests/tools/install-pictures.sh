#!/usr/bin/env bash
# Installs Pillow, which joins the frames of the README's animation, and prints the path of its Python.
#
# Rule: versions come from tests/pictures/requirements.txt alone; a changed file is a new installation.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"

requirements=$here/../pictures/requirements.txt
prefix=$tools/pictures

base=$("$here/install-terminal.sh")
stamp="$("$base" --version) $(sha256sum <"$requirements")"
if ! installed "$prefix" "$stamp"; then
  "$base" -c 'import ensurepip' 2>/dev/null || need_packages python3-venv
  rm -rf "$prefix"
  "$base" -m venv "$prefix" || fail "could not make a virtual environment in $prefix"
  "$prefix/bin/pip" install -q --disable-pip-version-check --no-deps -r "$requirements" </dev/null >&2 ||
    fail "could not install $requirements with pip; is the package index reachable?"
  echo "$stamp" >"$prefix/.complete"
fi
echo "$prefix/bin/python"
