#!/usr/bin/env bash
# Installs llama.cpp's server, and prints the path of a program that starts it.
#
# Rule: Debian's stable suites have none, so it is taken from a newer suite, into a private folder (see debian.sh).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"
. "$here/debian.sh"

minimum=9000
prefix=$tools/llama
starter=$prefix/llama-server

# prepare PROGRAM: has its libraries find each other, as the program itself does already; they have search paths of their
# own. Writes the program that names the CPU's backend, which is looked for at a fixed place otherwise.
prepare() {
  local library libraries backends backend
  libraries=$(find "$prefix" -name '*.so*' -type f -path "*lib/*-linux-gnu*/lib*" -printf '%h\n' | sort -u | paste -sd:)
  while IFS= read -r library; do
    patchelf --force-rpath --set-rpath "$libraries" "$library" || return 1
  done < <(find "$prefix" -type f \( -name 'libllama*.so*' -o -name 'libggml*.so*' -o -name 'libmtmd*.so*' \))
  backends=$(dirname "$(find "$prefix" -name 'libggml-cpu-*.so' | head -n 1)")
  for backend in x64 armv8.0_1 ''; do
    [ ! -f "$backends/libggml-cpu-$backend.so" ] || break
  done
  ! grep -qw avx2 /proc/cpuinfo || [ ! -f "$backends/libggml-cpu-haswell.so" ] || backend=haswell
  printf '#!/bin/sh\nGGML_BACKEND_PATH=%s exec %s "$@"\n' "$backends/libggml-cpu-$backend.so" "$1" >"$starter"
  chmod +x "$starter"
}

# is_recent PROGRAM: whether it runs and is a build of at least the minimum.
is_recent() {
  local build
  [ -x "$starter" ] || prepare "$1" || return 1
  build=$("$starter" --version 2>&1 | sed -n 's/.*build \([0-9]*\).*/\1/p;s/^version: \([0-9]*\) .*/\1/p' | head -n 1)
  [ "${build:-0}" -ge "$minimum" ]
}

if installed "$prefix" "$minimum" && is_recent "$prefix/usr/bin/llama-server"; then
  echo "$starter"
  exit 0
fi
take llama.cpp-tools usr/bin/llama-server "$minimum" is_recent "install llama.cpp yourself and set KODE_LS_LLAMA to its llama-server"
echo "$starter"
