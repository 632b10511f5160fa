# Shared by the installers that take a program from another suite of Debian; sourced after common.sh, not run.
#
# A program is taken together with everything it depends on, its libc included, into a private folder, and patched to
# find that libc by itself: with LD_LIBRARY_PATH the language server that an editor starts would get it too, and
# started through ld.so an editor cannot start itself again.
#
# Rule: the system's packages, lists and libraries stay as they are, and the archive's signature is checked. Such a
# folder cannot be moved afterwards.

# The mirror this machine already uses for its own release.
debian_mirror() {
  local release
  release=$(. /etc/os-release && [ "$ID" = debian ] && echo "$VERSION_CODENAME") || return 0
  apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    awk -v release="$release" '$1 == release || $1 == "stable" { print $2; exit }'
}

# unpack SUITE FOLDER PACKAGE: fetches PACKAGE of SUITE with all it depends on and unpacks it.
unpack() {
  local suite=$1 folder=$2 wanted=$3 state=$2/.apt
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
  # An empty list of installed packages makes apt fetch the whole closure.
  : >"$state/status"
  echo "deb [signed-by=$keyring] $mirror $suite main" >"$state/sources.list"
  local apt=(apt-get -q -y
    -o "Dir::State=$state" -o "Dir::State::status=$state/status" -o "Dir::Cache=$state/cache"
    -o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null
    -o "APT::Sandbox::User=$(id -un)" -o APT::Install-Recommends=false
    -o Acquire::Languages=none -o Acquire::Retries=3 -o APT::Update::Error-Mode=any
    -o Debug::NoLocking=true)
  "${apt[@]}" update >"$state/log" 2>&1 </dev/null &&
    "${apt[@]}" --download-only install "$wanted" >>"$state/log" 2>&1 </dev/null ||
    { tail -n 5 "$state/log" >&2; return 1; }
  local package
  for package in "$state"/cache/archives/*.deb; do
    dpkg-deb -x "$package" "$folder" || return 1
  done
  rm -rf "$state"
}

# patch FOLDER PROGRAM: makes PROGRAM in it use the libraries beside it.
patch() {
  local loader libraries
  loader=$(find "$1" -name 'ld-linux*.so.*' -type f | head -n 1)
  [ -n "$loader" ] || { echo "no dynamic loader was among the packages" >&2; return 1; }
  libraries=$(find "$1" -name '*.so*' -type f -path "$1/*lib/*-linux-gnu*/lib*" -printf '%h\n' | sort -u | paste -sd:)
  patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$libraries" "$2"
}

# take PACKAGE PROGRAM MINIMUM IS_RECENT ELSEWHERE: leaves the package of the first suite whose PROGRAM (a path below the
# folder $prefix) the command IS_RECENT finds good enough; MINIMUM names that, ELSEWHERE what else the user can do.
take() {
  local package=$1 program=$2 minimum=$3 is_recent=$4 elsewhere=$5 suite
  command -v apt-get >/dev/null || fail "no apt here to get it with; $elsewhere"
  need_packages patchelf debian-archive-keyring
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  mirror=${DEBIAN_MIRROR:-$(debian_mirror)}
  [ -n "$mirror" ] || fail "apt here has no Debian mirror; set DEBIAN_MIRROR to one, or $elsewhere"
  # Suites change their names with time; the version is what counts.
  for suite in ${DEBIAN_SUITES:-forky testing sid}; do
    rm -rf "$prefix"
    mkdir -p "$prefix"
    if unpack "$suite" "$prefix" "$package" >&2 && patch "$prefix" "$prefix/$program" >&2 &&
      "$is_recent" "$prefix/$program"; then
      echo "$minimum" >"$prefix/.complete"
      return 0
    fi
    echo "$(basename "$0"): Debian $suite gave no working $package of at least $minimum" >&2
  done
  rm -rf "$prefix"
  fail "no suite of $mirror gave $package of at least $minimum; $elsewhere"
}
