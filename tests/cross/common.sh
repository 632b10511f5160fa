# Counting and the first checks of the scripts that run programs for other systems; sourced by them.
#
# Rule: a step that fails shows its output and is counted; the last line of a script counts them.

work=$(mktemp -d) || exit 1
passed=0
failed=0
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)

# check NAME COMMAND...: counts a step that passes or fails as a whole, and shows its output when it failed.
check() {
  local name=$1
  shift
  if "$@" >"$work/log" 2>&1; then
    passed=$((passed + 1))
    echo "ok    $name"
  else
    failed=$((failed + 1))
    tail -n 60 "$work/log" | tr -d '\r'
    echo "FAIL  $name"
  fi
}

# says_version COMMAND...: whether the program prints the version of this workspace.
says_version() { [ "$("$@" --version | tr -d '\r')" = "kode-ls $version" ]; }

# names_in FILE: the first word of each line that is no comment.
names_in() { sed -n 's/^\([a-z][^ ]*\).*/\1/p' "$1"; }

# run_tests COMMAND...: runs end-to-end tests and counts them. None at all is a failure.
run_tests() {
  local summary
  "$@" 2>&1 | tr -d '\r' | tee "$work/tests"
  summary=$(sed -n 's/^test result: .* \([0-9]* passed; [0-9]* failed\).*/\1/p' "$work/tests")
  case $summary in '' | '0 passed; 0 failed') summary='0 passed; 1 failed' ;; esac
  passed=$((passed + $(echo "$summary" | awk '{ print $1 }')))
  failed=$((failed + $(echo "$summary" | awk '{ print $3 }')))
}

finish() {
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ]
  exit
}
