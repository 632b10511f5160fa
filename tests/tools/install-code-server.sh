#!/usr/bin/env bash
# Installs code-server, which is VS Code's workbench and extension host in a browser, with a Node of its own, and prints
# the path of its launcher.
#
# Rule: everything comes from the package registry in pinned versions, nothing is compiled and no package runs a script of
# its own: what the workbench needs carries prebuilt programs. The folder cannot be moved afterwards.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/common.sh"

version=${CODE_SERVER_VERSION:-4.139.1}
node_version=24.21.0
prefix=$tools/code-server-$version
stamp="$version $node_version"

if installed "$prefix" "$stamp"; then
  echo "$prefix/bin/code-server"
  exit 0
fi

case $(uname -s)-$(uname -m) in
  Linux-x86_64) platform=linux-x64 ;;
  Linux-aarch64) platform=linux-arm64 ;;
  *) fail "there is no code-server for $(uname -sm) to install" ;;
esac
command -v npm >/dev/null || { need_packages nodejs npm; hash -r; }
npm=$(readlink -f "$(command -v npm)")
rm -rf "$prefix"
mkdir -p "$prefix/bin" "$prefix/node" "$prefix/app"
quiet=(--ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error)

# install FOLDER ARGUMENT...: installs into FOLDER with the Node that code-server wants.
install() {
  local folder=$1
  shift
  [ -f "$folder/package.json" ] || echo '{"private":true}' >"$folder/package.json"
  (cd "$folder" && PATH="$node_home/bin:$PATH" "$node_home/bin/node" "$npm" install "${quiet[@]}" "$@" </dev/null >&2) ||
    fail "could not install code-server $version (in $folder); is the package registry reachable?"
}

echo '{"private":true}' >"$prefix/node/package.json"
(cd "$prefix/node" && npm install "${quiet[@]}" "node-$platform@$node_version" </dev/null >&2) ||
  fail "could not install Node $node_version; is the package registry reachable?"
node_home=$prefix/node/node_modules/node-$platform
ln -sfn "../node/node_modules/node-$platform/bin/node" "$prefix/bin/node"

install "$prefix/app" --omit=dev "code-server@$version"
# The workbench and its own extensions have dependencies of their own.
workbench=$prefix/app/node_modules/code-server/lib/vscode
install "$workbench" --omit=dev
install "$workbench/extensions" --omit=dev

# Files that a workbench under test never loads: programs of other platforms, assistants, source maps.
for folder in "$workbench/node_modules/@vscode/ripgrep-universal/bin" "$workbench/node_modules/node-pty/prebuilds"; do
  [ ! -d "$folder" ] || find "$folder" -mindepth 1 -maxdepth 1 ! -name "$platform" -exec rm -rf {} +
done
rm -rf "$workbench"/node_modules/@github/copilot-sdk-* "$workbench/extensions/copilot" "$node_home/include" "$node_home/share"
find "$prefix/app" -name '*.map' -type f -delete

cat >"$prefix/bin/code-server" <<LAUNCHER
#!/bin/sh
exec "$node_home/bin/node" "$prefix/app/node_modules/code-server/out/node/entry.js" "\$@"
LAUNCHER
chmod +x "$prefix/bin/code-server"
box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT
echo 'auth: none' >"$box/config.yaml"
"$prefix/bin/code-server" --config "$box/config.yaml" --version >&2 || fail "code-server $version does not start"
echo "$stamp" >"$prefix/.complete"
echo "$prefix/bin/code-server"
