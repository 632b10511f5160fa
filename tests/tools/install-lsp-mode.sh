#!/usr/bin/env bash
# Installs an Emacs and lsp-mode, a client of language servers, and prints the path of the program and the folders of
# lsp-mode and of the packages it requires, one a line.
#
# Rule: lsp-mode is that of Debian, unpacked into a folder of its own; the Emacs is the one that install-emacs.sh gives, and no
# package is added to it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"

packages=(elpa-lsp-mode elpa-dash elpa-f elpa-s elpa-ht elpa-spinner elpa-markdown-mode elpa-lv)

emacs=$("$here/install-emacs.sh")
prefix=$tools/lsp-mode
if ! installed "$prefix" "${packages[*]}"; then
  command -v apt-get >/dev/null || fail 'no apt here to get lsp-mode with'
  rm -rf "$prefix"
  mkdir -p "$prefix/.packages"
  # Running as root, apt would download as a user who may not write here.
  get() { (cd "$prefix/.packages" && apt-get -qq -o Acquire::Retries=3 -o "APT::Sandbox::User=$(id -un)" download "${packages[@]}" </dev/null >&2); }
  get || { [ "$(id -u)" = 0 ] && apt-get -qq update </dev/null >&2 && get; } || fail 'could not download lsp-mode (see above)'
  for package in "$prefix"/.packages/*.deb; do
    dpkg-deb -x "$package" "$prefix"
  done
  rm -rf "$prefix/.packages"
  echo "${packages[*]}" >"$prefix/.complete"
fi
echo "$emacs"
find "$prefix/usr/share/emacs/site-lisp/elpa-src" -mindepth 1 -maxdepth 1 -type d | sort
