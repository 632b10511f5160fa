//! Attacks by files that editors, shells, package managers and agents obey.

use super::Attack;

const fn attack(name: &'static str, setup: &'static str, script: &'static str) -> Attack {
    Attack { name, setup, script, npm: false }
}

const fn npm(name: &'static str, setup: &'static str, script: &'static str) -> Attack {
    Attack { name, setup, script, npm: true }
}

pub(super) const ATTACKS: &[Attack] = &[
    attack(
        "tasks of an editor",
        "rm -rf .vscode",
        "mkdir .vscode; echo \"{\\\"tasks\\\":[{\\\"command\\\":\\\"touch $P\\\"}]}\" > .vscode/tasks.json",
    ),
    attack(
        "tasks that were there",
        "",
        "echo \"{\\\"tasks\\\":[{\\\"command\\\":\\\"touch $P\\\"}]}\" > .vscode/tasks.json",
    ),
    attack(
        "tasks by a link",
        "rm -rf .vscode",
        "mkdir v; echo \"{\\\"tasks\\\":[{\\\"command\\\":\\\"touch $P\\\"}]}\" > v/tasks.json; ln -s v .vscode",
    ),
    attack(
        "tasks by another folder in place",
        "",
        "mv .vscode old; mkdir .vscode; echo \"{\\\"tasks\\\":[{\\\"command\\\":\\\"touch $P\\\"}]}\" > .vscode/tasks.json",
    ),
    attack(
        "tasks by a guarded link",
        "rm -rf .vscode; mkdir v; ln -s v .vscode",
        "echo \"{\\\"tasks\\\":[{\\\"command\\\":\\\"touch $P\\\"}]}\" > v/tasks.json",
    ),
    attack(
        "tasks in a folder below",
        "",
        "mkdir -p a/b/c/.vscode; echo \"{\\\"tasks\\\":[{\\\"command\\\":\\\"touch $P\\\"}]}\" > a/b/c/.vscode/tasks.json",
    ),
    attack(
        "tasks in other letters",
        "rm -rf .vscode",
        "mkdir .VSCODE; echo \"{\\\"tasks\\\":[{\\\"command\\\":\\\"touch $P\\\"}]}\" > .VSCODE/tasks.json",
    ),
    attack("tasks of another editor", "", "mkdir .zed; echo \"touch $P\" > .zed/tasks.json"),
    attack("runs of an editor", "", "mkdir .idea; echo \"touch $P\" > .idea/workspace.xml"),
    attack(
        "a workspace of an editor",
        "",
        "echo \"{\\\"tasks\\\":{\\\"command\\\":\\\"touch $P\\\"}}\" > App.code-workspace",
    ),
    attack(
        "a container of an editor",
        "",
        "mkdir .devcontainer; echo \"touch $P\" > .devcontainer/devcontainer.json",
    ),
    attack("a start file of an editor", "", "echo \":!touch $P\" > .exrc; echo \"touch $P\" > .nvim.lua"),
    attack("variables of a directory", "", "echo \"touch $P\" > .envrc"),
    attack("variables of a directory that was there", "echo true > .envrc", "echo \"touch $P\" > .envrc"),
    attack(
        "variables of a directory by a link",
        "echo true > real; ln -s real .envrc",
        "echo \"touch $P\" > real",
    ),
    attack(
        "variables of a directory by another link",
        "echo true > real; ln -s real .envrc",
        "echo \"touch $P\" > evil; ln -sf evil .envrc",
    ),
    attack(
        "hooks of husky",
        "git config core.hooksPath .husky",
        "mkdir .husky; printf '#!/bin/sh\\ntouch %s\\n' \"$P\" > .husky/pre-commit; chmod +x .husky/pre-commit",
    ),
    attack(
        "hooks of husky that were there",
        "mkdir .husky; printf '#!/bin/sh\\ntrue\\n' > .husky/pre-commit; chmod +x .husky/pre-commit; git config core.hooksPath .husky",
        "echo \"touch $P\" >> .husky/pre-commit",
    ),
    attack("hooks of lefthook", "", "echo \"pre-commit: {commands: {x: {run: touch $P}}}\" > lefthook.yml"),
    attack(
        "hooks of pre-commit",
        "",
        "echo \"repos: [{repo: local, hooks: [{id: x, entry: touch $P}]}]\" > .pre-commit-config.yaml",
    ),
    attack(
        "servers of tools",
        "",
        "echo \"{\\\"mcpServers\\\":{\\\"x\\\":{\\\"command\\\":\\\"touch\\\",\\\"args\\\":[\\\"$P\\\"]}}}\" > .mcp.json",
    ),
    attack(
        "hooks of this agent",
        "",
        "mkdir .kode; echo \"{\\\"hooks\\\":{\\\"SessionStart\\\":[{\\\"hooks\\\":[{\\\"type\\\":\\\"command\\\",\\\"command\\\":\\\"touch $P\\\"}]}]}}\" > .kode/settings.json",
    ),
    attack("hooks of another agent", "", "mkdir .claude; echo \"touch $P\" > .claude/settings.json"),
    attack("servers of another editor's agent", "", "mkdir .cursor; echo \"touch $P\" > .cursor/mcp.json"),
    attack(
        "settings of further agents",
        "",
        "for d in .codex .gemini .opencode .windsurf .kiro .roo .qwen .blade; do mkdir $d; echo \"touch $P\" > $d/settings.json; done",
    ),
    attack(
        "a start file of a shell",
        "",
        "echo \"touch $P\" >> ~/.bashrc; echo \"touch $P\" > ~/.bash_profile",
    ),
    attack(
        "a start file of a shell in the workspace",
        "",
        "echo \"touch $P\" > .bashrc; echo \"touch $P\" > .profile",
    ),
    attack(
        "the settings of git for the user",
        "",
        "git config --global core.fsmonitor \"touch $P; false\"; echo \"[core] fsmonitor = touch $P\" > .gitconfig",
    ),
    npm(
        "the shell of a package manager",
        "echo '{\"scripts\":{\"test\":\"true\"}}' > package.json",
        "printf '#!/bin/sh\\ntouch %s\\n' \"$P\" > evil; chmod +x evil; echo \"script-shell=$PWD/evil\" > .npmrc",
    ),
    npm(
        "options of a package manager",
        "echo '{\"scripts\":{\"test\":\"node -e 0\"}}' > package.json",
        "echo \"require('fs').writeFileSync('$P','')\" > evil.js; echo \"node-options=--require=$PWD/evil.js\" > .npmrc",
    ),
    attack(
        "the program of a package manager",
        "",
        "echo \"yarnPath: ./evil.cjs\" > .yarnrc.yml; echo \"require('fs').writeFileSync('$P','')\" > evil.cjs",
    ),
    attack("hooks of a package manager", "", "echo \"require('fs').writeFileSync('$P','')\" > .pnpmfile.cjs"),
    attack(
        "a clone with all of them",
        "git clone -q . ../clone; mkdir -p ../clone/.vscode ../clone/.husky; echo '{}' > ../clone/.vscode/tasks.json; mv ../clone src-of-clone",
        "cp -r src-of-clone copy; mkdir -p copy/.vscode; echo \"{\\\"tasks\\\":[{\\\"command\\\":\\\"touch $P\\\"}]}\" > copy/.vscode/tasks.json",
    ),
    attack(
        "tasks over and over",
        "rm -rf .vscode",
        "(while :; do mkdir -p .vscode; echo \"{\\\"tasks\\\":[{\\\"command\\\":\\\"touch $P\\\"}]}\" > .vscode/tasks.json; done) & sleep 0.3",
    ),
    attack(
        "tasks too large to be kept",
        "rm -rf .vscode",
        "mkdir .vscode; head -c 20000000 /dev/zero > .vscode/large; echo \"{\\\"tasks\\\":[{\\\"command\\\":\\\"touch $P\\\"}]}\" > .vscode/tasks.json",
    ),
    attack(
        "tasks too deep to be kept",
        "rm -rf .vscode",
        "mkdir -p .vscode/$(printf 'd/%.0s' $(seq 80)); echo \"{\\\"tasks\\\":[{\\\"command\\\":\\\"touch $P\\\"}]}\" > .vscode/tasks.json",
    ),
];
