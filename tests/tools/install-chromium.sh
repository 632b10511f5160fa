#!/usr/bin/env bash
# Installs Chromium and a font for the tests of the VS Code extension, and prints the path of the program.
#
# Rule: one that is there already is used; where none can be installed it fails and says so.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"

chromium=${CHROMIUM:-chromium}
if ! command -v "$chromium" >/dev/null; then
  need_packages chromium fonts-dejavu-core fontconfig
  hash -r
fi
command -v "$chromium"
