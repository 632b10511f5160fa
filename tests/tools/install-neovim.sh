#!/usr/bin/env bash
# Installs a Neovim that has `vim.lsp.config`, and prints the path of the program.
#
#   tests/tools/install-neovim.sh           the newest that works
#   tests/tools/install-neovim.sh SUITE     that of a suite of Debian, whatever its version
#
# Debian's own is too old, so it is taken from a newer suite together with everything it depends on, its libc
# included, into a private folder. The programs are patched to find that libc by themselves: with LD_LIBRARY_PATH
# the language server that Neovim starts would get it too, and started through ld.so Neovim cannot start itself
# again for its terminal interface.
#
# Rule: the system's packages, lists and libraries stay as they are, and the archive's signature is checked. The
# folder cannot be moved afterwards.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"

minimum=0.11
prefix=$tools/neovim${1:+-$1}
[ $# = 0 ] || minimum=0

# is_recent PROGRAM: whether it runs and is a Neovim of at least the minimum.
is_recent() {
  local version
  version=$("$1" --version 2>/dev/null | sed -n '1s/^NVIM v\([0-9.]*\).*/\1/p')
  [ -n "$version" ] && printf '%s\n%s\n' "$minimum" "$version" | sort -V -C
}

# The mirror this machine already uses for its own release.
debian_mirror() {
  local release
  release=$(. /etc/os-release && [ "$ID" = debian ] && echo "$VERSION_CODENAME") || return 0
  apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    awk -v release="$release" '$1 == release || $1 == "stable" { print $2; exit }'
}

# unpack SUITE FOLDER: fetches Neovim of SUITE with all it depends on and unpacks it.
unpack() {
  local suite=$1 folder=$2 state=$2/.apt
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
  # An empty list of installed packages makes apt fetch the whole closure.
  : >"$state/status"
  echo "deb [signed-by=$keyring] $mirror $suite main" >"$state/sources.list"
  local apt=(apt-get -q -y
    -o "Dir::State=$state" -o "Dir::State::status=$state/status" -o "Dir::Cache=$state/cache"
    -o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null
    -o "APT::Sandbox::User=$(id -un)" -o APT::Install-Recommends=false
    -o Acquire::Languages=none -o Acquire::Retries=3 -o APT::Update::Error-Mode=any
    -o Debug::NoLocking=true)
  "${apt[@]}" update >"$state/log" 2>&1 </dev/null &&
    "${apt[@]}" --download-only install neovim >>"$state/log" 2>&1 </dev/null ||
    { tail -n 5 "$state/log" >&2; return 1; }
  local package
  for package in "$state"/cache/archives/*.deb; do
    dpkg-deb -x "$package" "$folder" || return 1
  done
  rm -rf "$state"
}

# patch FOLDER: makes its Neovim use the libraries beside it.
patch() {
  local loader libraries
  loader=$(find "$1" -name 'ld-linux*.so.*' -type f | head -n 1)
  [ -n "$loader" ] || { echo "no dynamic loader was among the packages" >&2; return 1; }
  libraries=$(find "$1" -name '*.so*' -type f -path "$1/*lib/*-linux-gnu*/lib*" -printf '%h\n' | sort -u | paste -sd:)
  patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$libraries" "$1/usr/bin/nvim"
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

elsewhere="install Neovim $minimum or later yourself and set NEOVIM to it"
command -v apt-get >/dev/null || fail "no Neovim of at least $minimum here, and no apt to get one with; $elsewhere"
need_packages patchelf debian-archive-keyring
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
mirror=${DEBIAN_MIRROR:-$(debian_mirror)}
[ -n "$mirror" ] || fail "apt here has no Debian mirror; set DEBIAN_MIRROR to one, or $elsewhere"

# Suites change their names with time; the version is what counts.
suites=${1:-${DEBIAN_SUITES:-forky testing sid}}
for suite in $suites; do
  rm -rf "$prefix"
  mkdir -p "$prefix"
  if unpack "$suite" "$prefix" >&2 && patch "$prefix" >&2 && is_recent "$prefix/usr/bin/nvim"; then
    echo "$minimum" >"$prefix/.complete"
    echo "$prefix/usr/bin/nvim"
    exit 0
  fi
  echo "$(basename "$0"): Debian $suite gave no working Neovim of at least $minimum" >&2
done
rm -rf "$prefix"
fail "no suite of $mirror gave one; $elsewhere"
