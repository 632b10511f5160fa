#!/usr/bin/env bash
# Installs aimock, a model server that others wrote, with the SDKs of Google and of the Agent Client Protocol, and prints
# the path of aimock's program, which node runs.
#
# Rule: packages come from tests/node/package-lock.json alone, with its checksums; no package runs a script
# of its own. A changed lock file is a new installation.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"

source=$here/../node
prefix=$tools/node
program=$prefix/node_modules/@copilotkit/aimock/dist/cli.js

node=${NODE:-node}
command -v "$node" >/dev/null || { need_packages nodejs npm; hash -r; }
"$node" -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 15) ? 0 : 1)' ||
  fail "needs Node 20.15 or later; $("$node" --version) was found (set NODE to another one)"
stamp=$(cat "$source/package.json" "$source/package-lock.json" | sha256sum)

if ! installed "$prefix" "$stamp" || ! [ -f "$program" ]; then
  command -v npm >/dev/null || { need_packages npm; hash -r; }
  rm -rf "$prefix"
  mkdir -p "$prefix"
  cp "$source/package.json" "$source/package-lock.json" "$prefix"
  (cd "$prefix" && npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error </dev/null >&2) ||
    fail "could not install what $source/package-lock.json names; is the package registry reachable?"
  echo "$stamp" >"$prefix/.complete"
fi
echo "$program"
