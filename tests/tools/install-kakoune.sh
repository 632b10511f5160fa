#!/usr/bin/env bash
# Installs Kakoune and kakoune-lsp, its client of language servers, and prints the paths of both programs, one a line.
#
# Rule: Kakoune is taken from a newer suite of Debian (see debian.sh); the client is built from the registry of crates, in
# a pinned version with its own lock file, without optimization, which takes a few minutes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"
. "$here/debian.sh"

minimum=2024
client=22.0.0
prefix=$tools/kakoune

# is_recent PROGRAM: whether it runs and is a Kakoune of at least the minimum.
is_recent() {
  local version
  version=$("$1" -version 2>/dev/null | sed -n 's/^Kakoune v\{0,1\}\([0-9.]*\).*/\1/p')
  [ -n "$version" ] && printf '%s\n%s\n' "$minimum" "$version" | sort -V -C
}

kakoune=$prefix/usr/bin/kak
if ! { installed "$prefix" "$minimum" && is_recent "$kakoune"; }; then
  own=$(command -v "${KAKOUNE:-kak}" || true)
  if [ -n "$own" ] && is_recent "$own"; then
    kakoune=$own
  else
    take kakoune usr/bin/kak "$minimum" is_recent "install Kakoune $minimum or later yourself and set KAKOUNE to it"
  fi
fi

prefix=$tools/kakoune-lsp
if ! installed "$prefix" "$client" || ! "$prefix/bin/kak-lsp" --version >/dev/null 2>&1; then
  command -v cargo >/dev/null || fail 'there is no cargo to build kak-lsp with; install Rust as https://rustup.rs says'
  rm -rf "$prefix"
  mkdir -p "$prefix"
  # Outside of the checkout, whose toolchain file is for kode-ls.
  (cd "$prefix" && cargo install kak-lsp --version "$client" --locked --debug --quiet \
    --root "$prefix" --target-dir "$prefix/target" </dev/null >&2) ||
    fail "could not build kak-lsp $client; is the registry of crates reachable?"
  rm -rf "$prefix/target"
  echo "$client" >"$prefix/.complete"
fi
printf '%s\n' "$kakoune" "$prefix/bin/kak-lsp"
