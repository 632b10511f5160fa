#!/usr/bin/env bash
# Installs the cargo commands that check the dependencies and prints the folder their programs are in: cargo-deny for
# licenses, bans, sources and advisories, cargo-machete for unused dependencies.
#
# Rule: versions are named here, and each is built with the lock file it was published with.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"

wanted='cargo-machete@0.9.2 cargo-deny@0.20.2'
prefix=$tools/cargo

if ! installed "$prefix" "$wanted"; then
  command -v cargo >/dev/null || fail 'needs cargo; install Rust as https://rustup.rs says'
  rm -f "$prefix/.complete"
  for tool in $wanted; do
    cargo install --quiet --locked --root "$prefix" "$tool" </dev/null >&2 ||
      fail "could not build $tool; is crates.io reachable?"
  done
  echo "$wanted" >"$prefix/.complete"
fi
echo "$prefix/bin"
