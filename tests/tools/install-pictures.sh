#!/usr/bin/env bash
# Installs Pillow, which joins the frames of the README's animation, and prints the path of its Python.
#
# Rule: versions come from tests/pictures/requirements.txt alone; a changed file is a new installation.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"

python_environment "$tools/pictures" "$here/../pictures/requirements.txt"
echo "$tools/pictures/bin/python"
