#!/usr/bin/env bash
# Installs what drives and packages the VS Code extension in tests, and prints the folder it is in: playwright-core, which
# drives the system's Chromium, and vsce.
#
# Rule: packages come from tests/vscode/package-lock.json alone, with its checksums; no package runs a script of
# its own. A changed lock file is a new installation.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"

source=$here/../vscode
prefix=$tools/vscode-tools

node=${NODE:-node}
command -v "$node" >/dev/null || { need_packages nodejs npm; hash -r; }
"$node" -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' ||
  fail "needs Node 20 or later; $("$node" --version) was found (set NODE to another one)"
stamp=$(cat "$source/package.json" "$source/package-lock.json" | sha256sum)

if ! installed "$prefix" "$stamp"; then
  command -v npm >/dev/null || { need_packages npm; hash -r; }
  rm -rf "$prefix"
  mkdir -p "$prefix"
  cp "$source/package.json" "$source/package-lock.json" "$prefix"
  (cd "$prefix" && npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error </dev/null >&2) ||
    fail "could not install what $source/package-lock.json names; is the package registry reachable?"
  echo "$stamp" >"$prefix/.complete"
fi
echo "$prefix"
