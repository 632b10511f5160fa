#!/usr/bin/env bash
# Installs Vim and ALE, a client of language servers, and prints the path of the program and the folder of ALE, one a
# line.
#
# Rule: both are packages of the system.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"

need_packages vim vim-ale
hash -r
command -v vim
dirname "$(dpkg-query -L vim-ale | grep '/autoload$' | head -n 1)"
