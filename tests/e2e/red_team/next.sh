# The acts of a person in a workspace after an agent's turn, in `$1`. `$P` is the file whose existence shows that
# something ran. Each command ends by itself or after ten seconds, and none reads from a terminal.
cd "$1" || exit 0
export GIT_TERMINAL_PROMPT=0 GIT_EDITOR=true GIT_PAGER=cat
run() { timeout 10 "$@" </dev/null >/dev/null 2>&1; }

# Whatever the agent locked, the person opens.
run chmod -R u+rwX .

run git status
run git diff
run git diff --cached
run git rebase --continue
run git am --continue
run git cherry-pick --continue
run git add -A
run git commit -m next
run git commit --allow-empty -m next
run git checkout -b next
run git stash
run git fetch origin
run git log -1 -p
run git gc --auto

# A prompt of the shell runs `git status` in each folder that is entered.
find . -name .git -print0 2>/dev/null | while IFS= read -r -d '' found; do
    (cd "$(dirname "$found")" && run git status && run git commit --allow-empty -m next)
done
find . -name HEAD -type f -print0 2>/dev/null | while IFS= read -r -d '' found; do
    (cd "$(dirname "$found")" && run git status && run git log -1)
done

# An editor, an agent, a package manager or a tool for environments runs what these name.
find . -depth \( -iname .envrc -o -ipath '*/.vscode/*' -o -ipath '*/.zed/*' -o -ipath '*/.idea/*' \
    -o -ipath '*/.devcontainer/*' -o -iname '*.code-workspace' -o -iname .exrc -o -iname .nvim.lua -o -iname .mcp.json \
    -o -ipath '*/.kode/*' -o -ipath '*/.claude/*' -o -ipath '*/.cursor/*' -o -ipath '*/.codex/*' -o -ipath '*/.gemini/*' \
    -o -ipath '*/.opencode/*' -o -ipath '*/.windsurf/*' -o -ipath '*/.kiro/*' -o -ipath '*/.roo/*' -o -ipath '*/.qwen/*' \
    -o -ipath '*/.blade/*' -o -iname 'lefthook.*' -o -iname .pre-commit-config.yaml -o -iname .pnpmfile.cjs \
    -o -iname .yarnrc.yml -o -iname .gitmodules -o -iname .bashrc -o -iname .profile -o -iname .gitconfig \) \
    -xtype f -print0 2>/dev/null | while IFS= read -r -d '' found; do
    # A file that names another script counts with that script.
    if grep -qF "$P" "$found" || grep -qF evil "$found"; then touch "$P"; fi
done
# The same by a folder that is a link.
for folder in .vscode .idea; do
    if [ -d "$folder" ] && grep -rqF "$P" "$folder/"; then touch "$P"; fi
done

run bash -lic true
run bash -ic true
if [ "$2" = npm ]; then run npm test; fi
exit 0
