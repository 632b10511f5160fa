#!/usr/bin/env bash
# Installs Helix, and prints the path of the program.
#
# Rule: Debian has it only in newer suites, so it is taken from one of them, into a private folder (see debian.sh).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"
. "$here/debian.sh"

minimum=25.01
prefix=$tools/helix

# is_recent PROGRAM: whether it runs and is a Helix of at least the minimum.
is_recent() {
  local version
  version=$("$1" --version 2>/dev/null | sed -n '1s/^helix \([0-9.]*\).*/\1/p')
  [ -n "$version" ] && printf '%s\n%s\n' "$minimum" "$version" | sort -V -C
}

if installed "$prefix" "$minimum" && is_recent "$prefix/usr/lib/hx/hx"; then
  echo "$prefix/usr/lib/hx/hx"
  exit 0
fi
own=$(command -v "${HELIX:-hx}" || true)
if [ -n "$own" ] && is_recent "$own"; then
  echo "$own"
  exit 0
fi
take hx usr/lib/hx/hx "$minimum" is_recent "install Helix $minimum or later yourself and set HELIX to it"
echo "$prefix/usr/lib/hx/hx"
