#!/usr/bin/env bash
# Installs an Emacs that has Eglot, and prints the path of the program.
#
# Emacs has Eglot by itself since version 29. Debian offers such a one as a backport to this very release; if absent,
# this release's own Emacs gets Eglot as a package of its own.
#
# Rule: one that is there already is used; apt's own sources and lists stay as they are.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"
. "$here/debian.sh"

emacs=${EMACS:-emacs}

# has_eglot PROGRAM: whether it runs and has Eglot.
has_eglot() {
  "$1" --batch --eval '(unless (require (quote eglot) nil t) (kill-emacs 1))' >/dev/null 2>&1 </dev/null
}

# install_backport: installs the backport with lists of its own.
install_backport() {
  local release
  release=$(. /etc/os-release && [ "$ID" = debian ] && echo "$VERSION_CODENAME") || return 1
  mirror=${DEBIAN_MIRROR:-$(debian_mirror)}
  [ -n "$mirror" ] || return 1
  state=$(mktemp -d "$tools/emacs.XXXXXX")
  trap 'rm -rf "$state"' EXIT
  mkdir -p "$state/lists/partial"
  printf "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror %s main\n" \
    "$release" "$release-backports" >"$state/sources.list"
  local apt=(apt-get -qq -y
    -o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$state/lists"
    -o APT::Sandbox::User=root -o Acquire::Languages=none -o APT::Update::Error-Mode=any)
  "${apt[@]}" update </dev/null >&2 &&
    "${apt[@]}" --no-install-recommends -t "$release-backports" install emacs-nox </dev/null >/dev/null
}

if ! { command -v "$emacs" >/dev/null && has_eglot "$emacs"; }; then
  command -v apt-get >/dev/null || fail 'no Emacs with Eglot here, and no apt to get one with; set EMACS to one'
  [ "$(id -u)" = 0 ] || fail 'needs root once, for: apt-get install emacs-nox elpa-eglot'
  export DEBIAN_FRONTEND=noninteractive
  need_packages debian-archive-keyring
  install_backport || need_packages emacs-nox elpa-eglot
  emacs=emacs
  hash -r
  has_eglot "$emacs" || fail "the Emacs that was installed has no Eglot; set EMACS to one that has"
fi
command -v "$emacs"
