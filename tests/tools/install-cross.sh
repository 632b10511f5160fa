#!/usr/bin/env bash
# Installs compilers for systems that this Linux machine is not, and prints a file to source before cargo is called.
#
#   tests/tools/install-cross.sh [WHAT...]
#
# WHAT, any number of:
#   check:TRIPLE   the standard library of TRIPLE as metadata, enough for `cargo check` and `cargo clippy`, with a stub
#                  as the C compiler
#   TRIPLE         the whole standard library with a C compiler and a linker, for `cargo build`: x86_64-pc-windows-gnu,
#                  x86_64-unknown-linux-musl and aarch64-unknown-linux-musl
#   wine           runs programs for x86_64-pc-windows-gnu
#   qemu           runs programs for aarch64-unknown-linux-musl
# Without WHAT: check:x86_64-pc-windows-gnu check:aarch64-apple-darwin
#
# Debian's rustc-web is a recent compiler, and rust-web-src has the sources of its standard library. Cargo builds that
# library for TRIPLE, and the result is put where the compiler looks for it. The source of C compilers is mingw-w64 for
# Windows, and zig (a package of PyPI) for Linux.
#
# Rule: everything lies in one folder of the cache. Neither the system nor the toolchains of rustup are changed, and
# root is needed only to renew the package lists of apt.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"

[ $# -gt 0 ] || set -- check:x86_64-pc-windows-gnu check:aarch64-apple-darwin
for what; do
  case ${what#check:} in
    x86_64-pc-windows-gnu | x86_64-unknown-linux-musl | aarch64-unknown-linux-musl | wine | qemu) ;;
    *-*-*) [ "$what" != "${what#check:}" ] || fail "cannot link programs for $what; there is check:$what" ;;
    *) fail "there is nothing called $what; see the head of $0" ;;
  esac
done
[ "$(uname -sm)" = 'Linux x86_64' ] || fail 'needs Linux on x86_64'
command -v apt-get >/dev/null || fail 'takes the compilers from Debian, and there is no apt-get here'

prefix=$tools/cross
zig_version=0.15.2
mkdir -p "$prefix/bin"
# The builds here must not depend on those of the caller.
export LC_ALL=C CARGO_BUILD_JOBS=${CARGO_BUILD_JOBS:-1}
unset RUSTFLAGS RUSTC RUSTC_WRAPPER CARGO_BUILD_TARGET CARGO_TARGET_DIR LD_LIBRARY_PATH RUSTUP_TOOLCHAIN
slow() { nice -n 15 "$@"; }

# Two installations at once would write the same folders.
exec 9>"$prefix/.lock"
flock 9

# packages ARGUMENT...: apt-get with what differs from its defaults for every call.
packages() {
  slow apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 "$@" </dev/null >&2
}

# renew_lists: renews apt's package lists, once. Old ones name packages that the mirrors no longer have, and an old compiler.
renewed=
renew_lists() {
  [ -z "$renewed" ] && [ "$(id -u)" = 0 ] || return 0
  packages update || fail 'apt-get update failed (see above)'
  renewed=yes
}

# unpack NAME PACKAGE...: fetches these packages, with what they depend on and the system lacks, into the folder NAME.
unpack() {
  local name=$1 cache=$prefix/.packages package
  shift
  renew_lists
  [ -n "$(apt-cache --quiet=0 madison "$1" 2>/dev/null)" ] ||
    fail "apt knows no package $1; run apt-get update as root, and this again"
  rm -rf "$cache" "${prefix:?}/$name"
  mkdir -p "$cache/archives/partial" "$prefix/$name"
  packages -y --no-install-recommends --reinstall --download-only -o "Dir::Cache=$cache" \
    -o "Dir::Cache::archives=$cache/archives" -o "APT::Sandbox::User=$(id -un)" -o Debug::NoLocking=1 install "$@" ||
    fail "could not fetch $* with apt-get (see above)"
  for package in "$cache"/archives/*.deb; do
    slow dpkg-deb -x "$package" "$prefix/$name"
  done
  # Some packages put libraries below /lib, which is the same folder as /usr/lib on a system.
  if [ -d "$prefix/$name/lib" ]; then
    mkdir -p "$prefix/$name/usr/lib"
    cp -a "$prefix/$name/lib/." "$prefix/$name/usr/lib/"
    rm -rf "$prefix/$name/lib"
  fi
  rm -rf "$cache" "$prefix/$name/usr/share"/{doc,man,locale,lintian}
}

# find_own_libraries ROOT FILE...: has programs and libraries below ROOT use the libraries of ROOT, wherever it lies.
find_own_libraries() {
  local root=$1 file
  shift
  for file; do
    [ -f "$file" ] && [ ! -L "$file" ] && head -c 4 "$file" | grep -qaF ELF || continue
    "$patchelf" --force-rpath --set-rpath \
      "\$ORIGIN/$(realpath --relative-to="$(dirname "$file")" "$root/usr/lib/x86_64-linux-gnu")" "$file"
  done
}

patchelf=$(command -v patchelf || true)
if [ -z "$patchelf" ]; then
  installed "$prefix/patchelf" 1 || { unpack patchelf patchelf; echo 1 >"$prefix/patchelf/.complete"; }
  patchelf=$prefix/patchelf/usr/bin/patchelf
fi

# -- the compiler ----------------------------------------------------------------------------------------------------

rust=$prefix/rust
rustc=$rust/usr/bin/rustc
needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$here/../../Cargo.toml")
# is_new_enough VERSION: whether the project takes a compiler of this version.
is_new_enough() { [ "$(printf '%s\n' "$needed" "$1" | sort -V | head -n 1)" = "$needed" ]; }
compiler_version() { "$rustc" --version 2>/dev/null | awk '{ print $2 }'; }
if ! installed "$rust" 1 || ! is_new_enough "$(compiler_version)"; then
  renew_lists
  library=$(apt-cache depends libstd-rust-web-dev 2>/dev/null | awk '/Depends: libstd-rust-web/ { print $2; exit }')
  [ -n "$library" ] || fail 'apt knows no package libstd-rust-web-dev: Debian 12 or later with its security suite has it'
  unpack rust rustc-web cargo-web rust-web-clippy libstd-rust-web-dev "$library" rust-web-src
  find_own_libraries "$rust" "$rust"/usr/bin/* "$rust"/usr/lib/x86_64-linux-gnu/*.so*
  # Of the sources, only the library is compiled.
  find "$(readlink -f "$rust/usr/lib/rustlib/src/rust")" -mindepth 1 -maxdepth 1 ! -name library -exec rm -rf {} +
  "$rustc" --version >/dev/null || fail "the compiler in $rust does not run (see above)"
  is_new_enough "$(compiler_version)" ||
    fail "Debian's rustc-web is $(compiler_version), and kode-ls needs $needed; run apt-get update as root, and this again"
  echo 1 >"$rust/.complete"
fi
version=$("$rustc" --version)
rustlib=$("$rustc" --print sysroot)/lib/rustlib
[ -f "$rustlib/src/rust/library/std/Cargo.toml" ] || fail "no sources of the standard library below $rustlib/src"
export PATH="$rust/usr/bin:$PATH"

# -- C compilers and linkers -----------------------------------------------------------------------------------------

# A check needs the files that a C compiler makes, and never reads them.
stubs() {
  cat >"$prefix/bin/stub-cc" <<'STUB'
#!/bin/sh
while [ $# -gt 0 ]; do case $1 in -o) shift; : >"$1" ;; esac; shift; done
STUB
  cat >"$prefix/bin/stub-ar" <<'STUB'
#!/bin/sh
for file; do case $file in *.a | *.lib) printf '!<arch>\n' >"$file" ;; esac; done
STUB
  cat >"$prefix/bin/stub-dlltool" <<'STUB'
#!/bin/sh
while [ $# -gt 0 ]; do case $1 in -l) shift; printf '!<arch>\n' >"$1" ;; esac; shift; done
STUB
  chmod +x "$prefix"/bin/stub-*
}

mingw=$prefix/mingw
mingw() {
  local tool
  if ! installed "$mingw" 1; then
    unpack mingw gcc-mingw-w64-x86-64-posix
    find_own_libraries "$mingw" "$mingw"/usr/bin/* "$mingw"/usr/lib/gcc/x86_64-w64-mingw32/*/*
    for tool in gcc cpp; do
      ln -sfn "x86_64-w64-mingw32-$tool-posix" "$mingw/usr/bin/x86_64-w64-mingw32-$tool"
    done
    echo 1 >"$mingw/.complete"
  fi
  export PATH="$mingw/usr/bin:$PATH"
}

zig=$prefix/zig
zig() {
  local python=${PYTHON:-python3}
  installed "$zig" "$zig_version" && return
  command -v "$python" >/dev/null || { need_packages python3; hash -r; }
  "$python" -c 'import pip' 2>/dev/null || need_packages python3-pip
  rm -rf "$zig"
  slow "$python" -m pip install -q --disable-pip-version-check --root-user-action=ignore --no-deps --no-compile \
    --target "$zig" "ziglang==$zig_version" </dev/null >&2 || fail "could not install ziglang $zig_version with pip (see above)"
  echo "$zig_version" >"$zig/.complete"
}

# zig_compiler TRIPLE: writes the program that is compiler and linker for TRIPLE and takes what rustc passes to one.
zig_compiler() {
  cat >"$prefix/bin/cc-$1" <<STUB
#!/usr/bin/env bash
here=\$(cd "\$(dirname "\${BASH_SOURCE[0]}")" && pwd -P)
export ZIG_GLOBAL_CACHE_DIR=\$here/../zig-cache ZIG_LOCAL_CACHE_DIR=\$here/../zig-cache
arguments=()
for argument; do
  case \$argument in
    # zig has names of its own for targets.
    --target=* | -m64) ;;
    -lgcc_s | -lgcc_eh | -lgcc) arguments+=(-lunwind) ;;
    # zig brings its own start files and its own C library.
    *self-contained*crt*.o | *self-contained*libc.a | *self-contained*libunwind.a) ;;
    -nostartfiles | -Wl,--no-undefined-version | -Wl,--fix-cortex-a53-843419) ;;
    *) arguments+=("\$argument") ;;
  esac
done
exec "\$here/../zig/ziglang/zig" cc -target ${1%%-*}-linux-musl -fno-sanitize=undefined "\${arguments[@]}"
STUB
  printf '#!/bin/sh\nexec "$(dirname "$0")/../zig/ziglang/zig" ar "$@"\n' >"$prefix/bin/zig-ar"
  printf '#!/bin/sh\nexec "$(dirname "$0")/../zig/ziglang/zig" ld.lld "$@"\n' >"$prefix/bin/zig-ld"
  chmod +x "$prefix/bin/cc-$1" "$prefix/bin/zig-ar" "$prefix/bin/zig-ld"
}

# -- the standard library of a target --------------------------------------------------------------------------------

# standard_library TRIPLE KIND: builds it whole (KIND is full) or as metadata (KIND is check); full is enough for both.
# Messages of panics name the files of the library and of its dependencies, and programs must not name folders of this machine.
standard_library() {
  local triple=$1 kind=$2 work=$prefix/.std flags=-Zforce-unstable-if-unmarked library object
  local folder=$rustlib/$triple
  local renamed="--remap-path-prefix=$rust/usr=/rust --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
  installed "$folder" "full with bitcode $version" &&
    { [ "$kind" = check ] || [ "$(cat "$folder/.renamed" 2>/dev/null)" = "$renamed" ]; } && return
  [ "$kind" = full ] || ! installed "$folder" "check $version" || return 0
  echo "$(basename "$0"): building the standard library of $triple ($kind)" >&2
  rm -rf "$work" "${folder:?}"
  mkdir -p "$work/src" "$folder/lib"
  printf '[package]\nname = "nothing"\nversion = "0.0.0"\nedition = "2021"\n[profile.release]\ndebug = 0\n[workspace]\n' \
    >"$work/Cargo.toml"
  echo '#![no_std]' >"$work/src/lib.rs"
  # The distributed program is optimized as one, with the library; cargo leaves out what that needs unless it is asked.
  [ "$kind" = full ] && flags="$flags -Cembed-bitcode=yes $renamed" || flags="$flags -Zno-codegen -Cdlltool=$prefix/bin/stub-dlltool"
  (cd "$work" && RUSTC_BOOTSTRAP=1 RUSTFLAGS=$flags CARGO_TARGET_DIR=$work/target slow "$rust/usr/bin/cargo" build -q --release \
    --target "$triple" -Zbuild-std=std,panic_abort,panic_unwind,proc_macro,test </dev/null >&2) ||
    fail "could not build the standard library of $triple (see above)"
  for library in "$work/target/$triple"/release/deps/lib*.rlib; do
    case ${library##*/} in libnothing-*) ;; *) cp "$library" "$folder/lib/" ;; esac
  done
  case $triple in
    *-windows-gnu)
      for object in rsbegin rsend; do
        RUSTC_BOOTSTRAP=1 slow "$rustc" --target "$triple" --emit=obj -o "$folder/lib/$object.o" \
          "$rustlib/src/rust/library/rtstartup/$object.rs" || fail "could not compile $object.rs (see above)"
      done
      ;;
  esac
  rm -rf "$work"
  # Cargo does not see that the library below its crates is another one.
  rm -rf "$prefix/target/$triple"
  echo "$renamed" >"$folder/.renamed"
  [ "$kind" != full ] || kind='full with bitcode'
  echo "$kind $version" >"$folder/.complete"
}

# -- running the programs ----------------------------------------------------------------------------------------------

wine=$prefix/wine
wine() {
  mingw
  installed "$wine" 1 && return
  unpack wine wine wine64
  # Debian's own script looks for the program below /usr.
  printf '#!/bin/sh\nexec "$(dirname "$0")/wineserver64" -p0 "$@"\n' >"$wine/usr/lib/wine/wineserver"
  # Rust takes random numbers from a library that wine 8 does not have.
  cat >"$wine/random.c" <<'SOURCE'
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) {
  while (size) {
    ULONG part = size > 0x10000000 ? 0x10000000 : (ULONG)size;
    if (!SystemFunction036(data, part)) return FALSE;
    data += part;
    size -= part;
  }
  return TRUE;
}
SOURCE
  "$mingw/usr/bin/x86_64-w64-mingw32-gcc" -shared -O1 -s -o "$wine/bcryptprimitives.dll" "$wine/random.c" -ladvapi32 ||
    fail 'could not compile bcryptprimitives.dll (see above)'
  local zlib
  zlib=$(find "$wine/usr/x86_64-w64-mingw32" -name zlib1.dll | head -n 1)
  [ -n "$zlib" ] || fail 'zlib1.dll was not among the packages of wine'
  # Debian links it to a package of another folder; the libraries of wine itself load it before there are any drives.
  cp -L --remove-destination "$zlib" "$wine/usr/lib/x86_64-linux-gnu/wine/x86_64-windows/zlib1.dll"
  cp -L "$zlib" "$wine/zlib1.dll"
  cat >"$prefix/bin/wine" <<'STUB'
#!/usr/bin/env bash
# wine PROGRAM.exe ARGUMENT...: runs it with the drives of WINEPREFIX, which is made when it is not there yet.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
wine=$here/../wine
export WINEPREFIX=${WINEPREFIX:-$here/../wine-prefix} WINEDEBUG=${WINEDEBUG:--all} WINEDLLOVERRIDES='mscoree,mshtml='
export LD_LIBRARY_PATH=$wine/usr/lib/x86_64-linux-gnu
if [ ! -f "$WINEPREFIX/.complete" ]; then
  mkdir -p "$WINEPREFIX"
  timeout 600 "$wine/usr/lib/wine/wine64" wineboot -i </dev/null >/dev/null 2>&1 ||
    echo 'wine: making the drives did not end well' >&2
  cp "$wine/zlib1.dll" "$wine/bcryptprimitives.dll" "$WINEPREFIX/drive_c/windows/system32/" || exit 1
  touch "$WINEPREFIX/.complete"
fi
exec "$wine/usr/lib/wine/wine64" "$@"
STUB
  chmod +x "$prefix/bin/wine" "$wine/usr/lib/wine/wineserver"
  echo 1 >"$wine/.complete"
}

qemu=$prefix/qemu
qemu() {
  installed "$qemu" 1 && return
  unpack qemu qemu-user-static
  find "$qemu/usr/bin" -type f ! -name qemu-aarch64-static -delete
  ln -sfn ../qemu/usr/bin/qemu-aarch64-static "$prefix/bin/qemu-aarch64"
  echo 1 >"$qemu/.complete"
}

# -- the arguments -----------------------------------------------------------------------------------------------------

stubs
for what; do
  case $what in
    wine) wine ;;
    qemu) qemu ;;
    check:*) standard_library "${what#check:}" check ;;
    *-windows-gnu)
      mingw
      standard_library "$what" full
      ;;
    *)
      zig
      zig_compiler "$what"
      standard_library "$what" full
      ;;
  esac
done

# cargo's names for settings of a target have `_` for `-`.
environment() {
  local complete triple lower upper
  echo "export PATH=\"$prefix/bin:$rust/usr/bin:\$PATH\""
  for complete in "$rustlib"/*/.complete; do
    [ -f "$complete" ] || continue
    triple=$(basename "$(dirname "$complete")")
    lower=${triple//-/_} upper=$(tr a-z- A-Z_ <<<"$triple")
    case "$(cat "$complete") $triple" in
      check*) echo "export CC_$lower=\"$prefix/bin/stub-cc\" AR_$lower=\"$prefix/bin/stub-ar\"" ;;
      *windows-gnu)
        echo "export PATH=\"$mingw/usr/bin:\$PATH\""
        echo "export CC_$lower=\"$mingw/usr/bin/x86_64-w64-mingw32-gcc\" AR_$lower=\"$mingw/usr/bin/x86_64-w64-mingw32-ar\""
        echo "export CARGO_TARGET_${upper}_LINKER=\"$mingw/usr/bin/x86_64-w64-mingw32-gcc\""
        ;;
      *musl)
        echo "export CC_$lower=\"$prefix/bin/cc-$triple\" AR_$lower=\"$prefix/bin/zig-ar\""
        echo "export CARGO_TARGET_${upper}_LINKER=\"$prefix/bin/cc-$triple\""
        echo "export CARGO_TARGET_${upper}_RUSTFLAGS=\"-Clink-self-contained=no -Ctarget-feature=+crt-static\""
        ;;
    esac
  done
}
environment >"$prefix/environment.new"
mv "$prefix/environment.new" "$prefix/environment"
echo "$prefix/environment"
