#!/usr/bin/env bash
# Installs Kakoune and kakoune-lsp, its client of language servers, and prints the paths of both programs, one a line.
#
# Rule: Kakoune is taken from a newer suite of Debian (see debian.sh); the client is built from the registry of crates, in
# a pinned version with its own lock file, without optimization, which takes a few minutes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"
. "$here/debian.sh"

wanted=2024
client=22.0.0
prefix=$tools/kakoune

# runs PROGRAM: whether it is a Kakoune that starts. Debian's does not tell its version.
runs() {
  "$1" -version 2>/dev/null | grep -q '^Kakoune'
}

kakoune=${KAKOUNE:-$prefix/usr/bin/kak}
if [ -n "${KAKOUNE:-}" ]; then
  runs "$kakoune" || fail "KAKOUNE is $KAKOUNE, which does not start"
elif ! { installed "$prefix" "$wanted" && runs "$kakoune"; }; then
  take kakoune usr/bin/kak "$wanted" runs "install Kakoune $wanted or later yourself and set KAKOUNE to it"
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
