#!/usr/bin/env bash
# Installs Kakoune and kakoune-lsp, its client of language servers, and prints the paths of both programs, one a line.
#
# Rule: Kakoune is taken from a newer suite of Debian into a private folder (see debian.sh), because kakoune-lsp wants a
# newer one than the stable suites have; KAKOUNE names another one. Debian's does not tell its version, so that the suite
# has to do. kakoune-lsp is built from crates.io, in a version that is named here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"
. "$here/debian.sh"

prefix=$tools/kakoune
client=22.0.0
built=$tools/kak-lsp

# runs PROGRAM: whether it runs and is a Kakoune.
runs() {
  "$1" -version 2>/dev/null </dev/null | grep -q '^Kakoune'
}

kakoune=${KAKOUNE:-$prefix/usr/bin/kak}
if [ -n "${KAKOUNE:-}" ]; then
  runs "$kakoune" || fail "$kakoune, which KAKOUNE names, does not run"
elif ! { installed "$prefix" recent && runs "$kakoune"; }; then
  take kakoune usr/bin/kak recent runs "install a newer Kakoune yourself and set KAKOUNE to it"
fi
if ! installed "$built" "$client"; then
  command -v cargo >/dev/null || fail 'needs cargo; install Rust as https://rustup.rs says'
  rm -rf "$built"
  # Whether it is fast does not matter here: a debug build is there sooner.
  cargo install --quiet --locked --debug --root "$built" --version "$client" kak-lsp </dev/null >&2 ||
    fail "could not build kak-lsp $client with cargo (see above)"
  echo "$client" >"$built/.complete"
fi
echo "$kakoune"
echo "$built/bin/kak-lsp"
