#!/usr/bin/env bash
# Installs agents that others wrote and that speak the Agent Client Protocol, with a Node of their own, and prints the folder
# they are in: their programs are in bin.
#
# Rule: versions and checksums come from tests/guests alone, and no package runs a script of its own. A changed list is a new
# installation. About 390 MB are fetched, and 1.1 GB are kept.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"

source=$here/../guests
prefix=$tools/guests
stamp=$(cat "$source/package.json" "$source/package-lock.json" "$0" | sha256sum)

if installed "$prefix" "$stamp"; then
  echo "$prefix"
  exit 0
fi

case $(uname -s)-$(uname -m) in
  Linux-x86_64) platform=linux-x64 ;;
  Linux-aarch64) platform=linux-arm64 ;;
  *) fail "the agents are not pinned for $(uname -sm)" ;;
esac
command -v npm >/dev/null || { need_packages nodejs npm; hash -r; }
command -v timeout >/dev/null || need_packages coreutils
rm -rf "$prefix"
mkdir -p "$prefix/bin"
cp "$source/package.json" "$source/package-lock.json" "$prefix"
(cd "$prefix" && timeout 900 npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error </dev/null >&2) ||
  fail "could not install what $source/package-lock.json names within 15 minutes; is the package registry reachable?"
modules=$prefix/node_modules
for program in "node-$platform/bin/node" "opencode-$platform/bin/opencode"; do
  [ -x "$modules/$program" ] || fail "$program is missing in $modules: its package was left out, or has another layout"
  ln -s "../node_modules/$program" "$prefix/bin/"
done
# Each is started by the Node beside it, whichever one is in PATH.
for name in claude-agent-acp codex-acp gemini; do
  [ -e "$modules/.bin/$name" ] || fail "$name is missing in $modules/.bin"
  cat >"$prefix/bin/$name" <<LAUNCHER
#!/bin/sh
exec "$prefix/bin/node" "$modules/.bin/$name" "\$@"
LAUNCHER
  chmod +x "$prefix/bin/$name"
done
echo "$stamp" >"$prefix/.complete"
echo "$prefix"
