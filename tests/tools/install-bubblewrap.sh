#!/usr/bin/env bash
# Installs bubblewrap and what the sandbox is probed with, and prints the path of bubblewrap.
#
# Rule: the tests of the sandbox are never left out; where it cannot be installed, they fail and say so.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"

if ! command -v bwrap >/dev/null || ! command -v perl >/dev/null || ! command -v setsid >/dev/null; then
  need_packages bubblewrap perl-base util-linux
  hash -r
fi
command -v bwrap
