#!/usr/bin/env bash
# Installs Podman, makes an image with a shell, and prints two assignments for the environment: KODE_LS_ENGINE, an engine that
# runs containers here with that image, and KODE_LS_ENGINE_OPTIONS.
#
# Rule: nothing is fetched from a registry of images: the image has the programs of this machine. What runs a container is found by
# trying, because machines without all control groups or rights need another runtime or lower limits.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"

image=localhost/kode-ls-tests:1
if ! command -v podman >/dev/null || ! command -v runc >/dev/null || ! command -v busybox >/dev/null; then
  need_packages podman runc busybox-static
  hash -r
fi

if ! podman image exists "$image"; then
  root=$(mktemp -d)
  trap 'rm -rf "$root"' EXIT
  mkdir -p "$root"/bin "$root"/etc "$root"/tmp "$root"/run
  cp "$(command -v busybox)" "$root/bin/busybox"
  for program in $("$root/bin/busybox" --list); do
    [ "$program" = busybox ] || ln -sf busybox "$root/bin/$program"
  done
  rm -f "$root/bin/bash"
  cp -L "$(command -v bash)" "$root/bin/bash"
  for library in $(ldd "$(command -v bash)" | grep -o '/[^ ]*'); do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
  done
  tar -C "$root" -c . | podman import - "$image" >&2 || fail "could not import an image with podman"
fi

for engine in podman 'podman --runtime runc'; do
  for options in '' '--ulimit nproc=1000:1000'; do
    # shellcheck disable=SC2086
    if $engine run --rm --pull never --network none --ulimit nofile=1024:1024 $options "$image" bash -c true >&2; then
      echo "export KODE_LS_ENGINE='$engine $image' KODE_LS_ENGINE_OPTIONS='$options'"
      exit
    fi
  done
done
fail "podman runs no container here (see above)"
