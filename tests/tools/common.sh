# Shared by the installers of the test tools; sourced, not run.
#
# Rule: tools live in one cache outside the checkout, each behind a stamp that names its content, and an
# installer that cannot finish says what to do instead of leaving something half there.

# The programs that installers build have a folder of their own: cargo locks it, and the build of this project would wait.
unset CARGO_TARGET_DIR

tools=${KODE_LS_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/kode-ls-tools}
mkdir -p "$tools"
tools=$(cd "$tools" && pwd -P)

fail() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

# installed FOLDER WANTED: whether FOLDER was completed with exactly WANTED.
installed() {
  [ -f "$1/.complete" ] && [ "$(cat "$1/.complete")" = "$2" ]
}

# need_packages PACKAGE...: installs packages of the system itself, which takes root.
need_packages() {
  local missing=() package
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || fail "needs ${missing[*]}, or what they are called here; install them and run it again"
  [ "$(id -u)" = 0 ] || fail "needs root once, for: apt-get install ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  # A mirror may refuse a connection, and a machine that has just started may still be installing packages.
  local apt=(apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120)
  # The lists may be missing or too old for the mirror; only then are they fetched.
  "${apt[@]}" -y --no-install-recommends install "${missing[@]}" >/dev/null 2>&1 </dev/null ||
    { "${apt[@]}" update && "${apt[@]}" -y --no-install-recommends install "${missing[@]}" >/dev/null; } </dev/null ||
    fail "could not install ${missing[*]} with apt-get (see above)"
}

# python_environment PREFIX REQUIREMENTS: a virtual environment with exactly these packages; a changed file is a new installation.
python_environment() {
  local prefix=$1 requirements=$2 base=${PYTHON:-python3} stamp
  command -v "$base" >/dev/null || { need_packages python3; hash -r; }
  "$base" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "needs Python 3.11 or later; $("$base" --version) was found (set PYTHON to another one)"
  stamp="$("$base" --version) $(sha256sum <"$requirements")"
  if ! installed "$prefix" "$stamp" || ! "$prefix/bin/python" -c '' 2>/dev/null; then
    "$base" -c 'import ensurepip' 2>/dev/null || need_packages python3-venv
    rm -rf "$prefix"
    "$base" -m venv "$prefix" || fail "could not make a virtual environment in $prefix"
    "$prefix/bin/pip" install -q --disable-pip-version-check --no-deps -r "$requirements" </dev/null >&2 ||
      fail "could not install $requirements with pip; is the package index reachable?"
    "$prefix/bin/pip" check -q >&2 || fail "$requirements is not complete (see above); its first lines say how to renew it"
    echo "$stamp" >"$prefix/.complete"
  fi
}
