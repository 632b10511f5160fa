#!/usr/bin/env bash
# Installs a Neovim that has `vim.lsp.config`, and prints the path of the program.
#
#   tests/tools/install-neovim.sh           the newest that works
#   tests/tools/install-neovim.sh SUITE     that of a suite of Debian, whatever its version
#
# Rule: Debian's own is too old, so it is taken from a newer suite, into a private folder (see debian.sh).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"
. "$here/debian.sh"

minimum=0.11
prefix=$tools/neovim${1:+-$1}
[ $# = 0 ] || minimum=0

# is_recent PROGRAM: whether it runs and is a Neovim of at least the minimum.
is_recent() {
  local version
  version=$("$1" --version 2>/dev/null | sed -n '1s/^NVIM v\([0-9.]*\).*/\1/p')
  [ -n "$version" ] && printf '%s\n%s\n' "$minimum" "$version" | sort -V -C
}

if installed "$prefix" "$minimum" && is_recent "$prefix/usr/bin/nvim"; then
  echo "$prefix/usr/bin/nvim"
  exit 0
fi
own=
[ $# = 1 ] || own=$(command -v "${NEOVIM:-nvim}" || true)
if [ -n "$own" ] && is_recent "$own"; then
  echo "$own"
  exit 0
fi
[ $# = 0 ] || DEBIAN_SUITES=$1
take neovim usr/bin/nvim "$minimum" is_recent "install Neovim $minimum or later yourself and set NEOVIM to it"
echo "$prefix/usr/bin/nvim"
