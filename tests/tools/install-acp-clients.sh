#!/usr/bin/env bash
# Installs the clients of the Agent Client Protocol that registries have, and prints the paths of Toad, of a Node for acpx,
# and of acpx itself, one on a line.
#
# Rule: versions come from tests/acp-clients alone, with their checksums; no package of npm runs a script of its own. Toad
# wants a newer Python than Debian's own, which is taken from a newer suite into a private folder (see debian.sh).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"
. "$here/debian.sh"

source=$here/../acp-clients
minimum=3.14

# is_recent PROGRAM: whether it runs and is a Python of at least the minimum.
is_recent() {
  "$1" -c 'import sys; sys.exit(sys.version_info < tuple(map(int, sys.argv[1].split("."))))' "$minimum" 2>/dev/null
}

prefix=$tools/python-$minimum
base=$prefix/usr/bin/python$minimum
if ! { installed "$prefix" "$minimum" && is_recent "$base"; }; then
  take "python$minimum" "usr/bin/python$minimum" "$minimum" is_recent "run the tests on a machine with Debian"
fi

# Both of other installers: pip, which Debian's Python has not, and a Node that is new enough for acpx.
python=$("$here/install-python.sh")
node=$(dirname "$("$here/install-code-server.sh")")/node

clients=$tools/acp-clients
stamp=$(cat "$source/requirements.txt" "$source/package.json" "$source/package-lock.json" | sha256sum)
if ! installed "$clients" "$stamp" || ! "$clients/python/bin/python" -c '' 2>/dev/null; then
  rm -rf "$clients"
  mkdir -p "$clients"
  "$base" -m venv --without-pip "$clients/python" || fail "could not make a virtual environment in $clients/python"
  "$python" -m pip --python "$clients/python/bin/python" install -q --disable-pip-version-check --no-compile --no-deps \
    --require-hashes -r "$source/requirements.txt" </dev/null >&2 ||
    fail "could not install $source/requirements.txt with pip; is the package index reachable?"
  command -v npm >/dev/null || { need_packages npm; hash -r; }
  cp "$source/package.json" "$source/package-lock.json" "$clients"
  # Not `npm ci`: it refuses the list of acpx, which names optional programs of other systems that the registry does not have.
  (cd "$clients" && npm install --no-save --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error </dev/null >&2) ||
    fail "could not install what $source/package-lock.json names; is the package registry reachable?"
  echo "$stamp" >"$clients/.complete"
fi
echo "$clients/python/bin/toad"
echo "$node"
echo "$clients/node_modules/acpx/dist/cli.js"
