#!/usr/bin/env bash
# Installs emmylua_check, which checks the types of Lua as its annotations say, and prints the path of the program.
#
# lua-language-server is in none of the package registries; this reads the same annotations and is one program.
#
# Rule: the version is fixed, and it is built once, into the cache.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"

version=0.25.1
prefix=$tools/emmylua

if ! installed "$prefix" "$version" || ! "$prefix/bin/emmylua_check" --version >/dev/null 2>&1; then
  command -v cargo >/dev/null || fail "needs cargo; install Rust as https://rustup.rs says"
  rm -rf "$prefix"
  # It runs for a few seconds, so the time to build it counts.
  CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_DEV_OPT_LEVEL=1 \
    cargo install --quiet --locked --debug --root "$prefix" --version "$version" emmylua_check </dev/null >&2 ||
    fail "could not build emmylua_check $version; is the package registry reachable?"
  echo "$version" >"$prefix/.complete"
fi
echo "$prefix/bin/emmylua_check"
