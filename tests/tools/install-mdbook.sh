#!/usr/bin/env bash
# Installs mdBook, which makes the site of the documentation, and prints the path of its program.
#
# Rule: the version is named here, and it is built with the lock file it was published with. It is built without the parts that
# serve and watch, and unoptimized: one book takes it a second.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"

version=0.5.4
prefix=$tools/mdbook

if ! installed "$prefix" "$version"; then
  command -v cargo >/dev/null || fail 'needs cargo; install Rust as https://rustup.rs says'
  rm -f "$prefix/.complete"
  cargo install --quiet --locked --debug --no-default-features --features search --root "$prefix" "mdbook@$version" \
    </dev/null >&2 || fail "could not build mdbook $version; is crates.io reachable?"
  echo "$version" >"$prefix/.complete"
fi
echo "$prefix/bin/mdbook"
