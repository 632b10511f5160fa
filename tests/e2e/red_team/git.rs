//! Attacks on git: whatever a command leaves in or around a repository, the person's next `git` runs nothing of it.

use super::Attack;

const fn attack(name: &'static str, setup: &'static str, script: &'static str) -> Attack {
    Attack { name, setup, script, npm: false }
}

/// A settings file of git that has `$P` touched by the next `git status`.
macro_rules! evil_settings {
    ($file:literal) => {
        concat!("git config -f ", $file, " core.fsmonitor \"touch $P; false\"")
    };
}

/// As [`evil_settings`], for a folder that is a repository by its content.
macro_rules! evil_bare_settings {
    ($file:literal) => {
        concat!(
            evil_settings!($file),
            "; git config -f ",
            $file,
            " core.repositoryformatversion 0; git config -f ",
            $file,
            " core.bare false; git config -f ",
            $file,
            " core.worktree \"$PWD\""
        )
    };
}

/// A hook that touches `$P`.
macro_rules! evil_hook {
    ($file:literal) => {
        concat!(
            "mkdir -p \"$(dirname ",
            $file,
            ")\"; printf '#!/bin/sh\\ntouch %s\\n' \"$P\" > ",
            $file,
            "; chmod +x ",
            $file
        )
    };
}

pub(super) const ATTACKS: &[Attack] = &[
    attack(
        "a common folder of its own",
        "",
        concat!(
            "mkdir x; cp -r .git/objects .git/refs .git/config x/; ",
            evil_settings!("x/config"),
            "; echo ../x > .git/commondir"
        ),
    ),
    attack("the settings", "", evil_settings!(".git/config")),
    attack(
        "the settings by a redirection",
        "",
        "printf '[core]\\nfsmonitor=\"touch %s; false\"\\n' \"$P\" >> .git/config",
    ),
    attack(
        "the settings by renaming over them",
        "",
        concat!("cp .git/config c; ", evil_settings!("c"), "; mv -f c .git/config"),
    ),
    attack(
        "the settings by removing them",
        "",
        concat!("cp .git/config c; ", evil_settings!("c"), "; rm -f .git/config; cp c .git/config"),
    ),
    attack(
        "the settings by a hard link",
        "",
        "ln .git/config c; printf '[core]\\nfsmonitor=\"touch %s; false\"\\n' \"$P\" >> c",
    ),
    attack(
        "the settings by a hard link that was there",
        "ln .git/config other",
        "printf '[core]\\nfsmonitor=\"touch %s; false\"\\n' \"$P\" >> other",
    ),
    attack(
        "the settings of a worktree that were not there",
        "git config extensions.worktreeConfig true",
        evil_settings!(".git/config.worktree"),
    ),
    attack("a hook", "", evil_hook!(".git/hooks/pre-commit")),
    attack(
        "a hook that was there",
        "printf '#!/bin/sh\\ntrue\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
        "echo \"touch $P\" >> .git/hooks/pre-commit",
    ),
    attack("a hook where there were none", "rm -rf .git/hooks", evil_hook!(".git/hooks/pre-commit")),
    attack(
        "a link in place of hooks",
        "rm -rf .git/hooks",
        concat!(evil_hook!("h/pre-commit"), "; ln -s ../h .git/hooks"),
    ),
    attack(
        "a sample made a hook",
        "",
        "mv .git/hooks/pre-commit.sample .git/hooks/pre-commit; printf '#!/bin/sh\\ntouch %s\\n' \"$P\" > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    ),
    attack("a hook of references", "", evil_hook!(".git/hooks/reference-transaction")),
    attack("a hook of the index", "", evil_hook!(".git/hooks/post-index-change")),
    attack("a hook of checkouts", "", evil_hook!(".git/hooks/post-checkout")),
    attack(
        "hooks by a template",
        "",
        concat!(evil_hook!("t/hooks/pre-commit"), "; git init -q --template=\"$PWD/t\""),
    ),
    attack(
        "another repository in its place",
        "",
        concat!("mv .git g; cp -r g .git; ", evil_settings!(".git/config"), "; rm -rf g"),
    ),
    attack("a link in its place", "", concat!("mv .git g; ", evil_settings!("g/config"), "; ln -s g .git")),
    attack(
        "a file in its place",
        "",
        concat!("mv .git g; ", evil_settings!("g/config"), "; echo 'gitdir: g' > .git"),
    ),
    attack("a repository four levels deep", "git init -q a/b/c", evil_settings!("a/b/c/.git/config")),
    attack(
        "a repository nine levels deep",
        "git init -q a/b/c/d/e/f/g/h/i",
        evil_hook!("a/b/c/d/e/f/g/h/i/.git/hooks/pre-commit"),
    ),
    attack(
        "a repository among dependencies",
        "git init -q node_modules/x",
        evil_settings!("node_modules/x/.git/config"),
    ),
    attack(
        "a repository among build results",
        "git init -q target/x",
        evil_settings!("target/x/.git/config"),
    ),
    attack(
        "a repository in an environment",
        "git init -q .venv/src/x",
        evil_settings!(".venv/src/x/.git/config"),
    ),
    attack(
        "the settings behind many files",
        "",
        concat!(
            "seq 21000 | sed 's/^/f/' | xargs touch; ",
            evil_settings!(".git/config"),
            "; seq 21000 | sed 's/^/f/' | xargs rm -f"
        ),
    ),
    attack(
        "a repository behind many files",
        "git init -q zz; mkdir many; (cd many; seq 21000 | xargs touch)",
        evil_settings!("zz/.git/config"),
    ),
    attack(
        "a rebase that never was",
        "",
        "mkdir .git/rebase-merge; cd .git/rebase-merge; echo \"exec touch $P\" > git-rebase-todo; : > done; : > interactive; echo refs/heads/main > head-name; git rev-parse HEAD | tee onto > orig-head; echo 1 > msgnum; echo 1 > end; : > author-script",
    ),
    attack(
        "a rebase that waits",
        "echo y > file.txt; git commit -qam two; GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i HEAD~1",
        "echo \"exec touch $P\" >> .git/rebase-merge/git-rebase-todo",
    ),
    attack(
        "a series of patches that never was",
        "",
        "mkdir .git/rebase-apply; cd .git/rebase-apply; : > applying; echo 1 > next; echo 1 > last; printf \"touch $P\" > 0001",
    ),
    attack(
        "a series of picks that never was",
        "",
        "mkdir .git/sequencer; echo \"exec touch $P\" > .git/sequencer/todo; git rev-parse HEAD > .git/sequencer/head",
    ),
    attack(
        "hooks in a folder that settings name",
        "git config core.hooksPath .githooks; mkdir .githooks; touch .githooks/keep",
        evil_hook!(".githooks/pre-commit"),
    ),
    attack(
        "hooks in a folder that is not there yet",
        "git config core.hooksPath .githooks",
        evil_hook!(".githooks/pre-commit"),
    ),
    attack("hooks in the workspace itself", "git config core.hooksPath src/..", evil_hook!("pre-commit")),
    attack(
        "hooks by a link that settings name",
        "mkdir real; ln -s real hk; git config core.hooksPath hk",
        evil_hook!("real/pre-commit"),
    ),
    attack(
        "settings that settings include",
        "echo '[core]' > shared; git config include.path ../shared",
        evil_settings!("shared"),
    ),
    attack("settings that would be included", "git config include.path ../shared", evil_settings!("shared")),
    attack(
        "settings that are included in some folders",
        "git config includeIf.gitdir:/.path ../shared",
        evil_settings!("shared"),
    ),
    attack(
        "settings that included settings include",
        "printf '[include]\\npath = deeper\\n' > shared; git config include.path ../shared",
        evil_settings!("deeper"),
    ),
    attack(
        "the program of a filter",
        "mkdir tools; printf '#!/bin/sh\\ncat\\n' > tools/clean.sh; chmod +x tools/clean.sh; git config filter.x.clean tools/clean.sh; echo '*.txt filter=x' > .gitattributes",
        "printf '#!/bin/sh\\ntouch %s; cat\\n' \"$P\" > tools/clean.sh",
    ),
    attack(
        "the program of a filter that is not there yet",
        "git config filter.x.clean tools/clean.sh; echo '*.txt filter=x' > .gitattributes",
        "mkdir -p tools; printf '#!/bin/sh\\ntouch %s; cat\\n' \"$P\" > tools/clean.sh; chmod +x tools/clean.sh",
    ),
    attack(
        "the script of a filter's interpreter",
        "mkdir tools; echo 'cat' > tools/clean; git config filter.x.clean 'sh tools/clean'; echo '*.txt filter=x' > .gitattributes",
        "echo \"touch $P; cat\" > tools/clean",
    ),
    attack(
        "the program that shows a file as text",
        "mkdir tools; printf '#!/bin/sh\\ncat \"$1\"\\n' > tools/show.sh; chmod +x tools/show.sh; git config diff.x.textconv tools/show.sh; echo '*.txt diff=x' > .gitattributes",
        "printf '#!/bin/sh\\ntouch %s; cat \"$1\"\\n' \"$P\" > tools/show.sh; echo more >> file.txt",
    ),
    attack(
        "the program of the file system monitor",
        "mkdir tools; printf '#!/bin/sh\\nfalse\\n' > tools/monitor.sh; chmod +x tools/monitor.sh; git config core.fsmonitor tools/monitor.sh",
        "printf '#!/bin/sh\\ntouch %s; false\\n' \"$P\" > tools/monitor.sh",
    ),
    attack(
        "a repository in the index",
        "",
        concat!(
            "git init -q sub; git -C sub commit -q --allow-empty -m x; git add sub; ",
            evil_settings!("sub/.git/config")
        ),
    ),
    attack("a new repository", "", concat!("git init -q new; ", evil_settings!("new/.git/config"))),
    attack(
        "a new repository with hooks",
        "",
        concat!("git init -q new; ", evil_hook!("new/.git/hooks/pre-commit")),
    ),
    attack(
        "a folder that is a repository by its content",
        "",
        concat!(
            "mkdir -p d/objects d/refs; cp .git/index d; echo 'ref: refs/heads/main' > d/HEAD; ",
            evil_bare_settings!("d/config")
        ),
    ),
    attack(
        "a folder of files that becomes a repository",
        "mkdir docs; echo text > docs/config",
        concat!(
            "mkdir -p docs/objects docs/refs; cp .git/index docs; echo 'ref: refs/heads/main' > docs/HEAD; rm docs/config; ",
            evil_bare_settings!("docs/config")
        ),
    ),
    attack(
        "a repository by a common folder",
        "",
        concat!(
            "mkdir -p d y/objects y/refs; cp .git/index d; echo 'ref: refs/heads/main' > d/HEAD; echo ../y > d/commondir; ",
            evil_bare_settings!("y/config"),
            "; git config -f y/config extensions.worktreeConfig true; git config -f d/config.worktree core.bare false; ",
            "git config -f d/config.worktree core.worktree \"$PWD\""
        ),
    ),
    attack(
        "a worktree with another common folder",
        "git worktree add -q ../wt; mv ../wt wt; git worktree repair wt",
        concat!(
            "cp -r .git x; ",
            evil_settings!("x/config"),
            "; echo \"$PWD/x\" > .git/worktrees/wt/commondir"
        ),
    ),
    attack(
        "the settings of a worktree that was there",
        "git config extensions.worktreeConfig true; git worktree add -q ../wt; mv ../wt wt; git worktree repair wt",
        evil_settings!(".git/worktrees/wt/config.worktree"),
    ),
    attack(
        "a submodule of its own",
        "",
        concat!(
            "mkdir -p .git/modules/x/objects .git/modules/x/refs sub; echo 'ref: refs/heads/main' > .git/modules/x/HEAD; ",
            evil_settings!(".git/modules/x/config"),
            "; echo 'gitdir: ../.git/modules/x' > sub/.git"
        ),
    ),
    attack(
        "a submodule that was there",
        "git init -q --bare .git/modules/lib",
        evil_bare_settings!(".git/modules/lib/config"),
    ),
    attack(
        "a file that names a repository of its own",
        "",
        concat!(
            "git init -q --bare x; ",
            evil_bare_settings!("x/config"),
            "; mkdir sub; echo 'gitdir: ../x' > sub/.git"
        ),
    ),
    attack(
        "a file that names a repository elsewhere",
        "git init -q \"$OUT/other\"; git -C \"$OUT/other\" config core.hooksPath hk",
        concat!("mkdir sub; echo \"gitdir: $OUT/other/.git\" > sub/.git; ", evil_hook!("sub/hk/pre-commit")),
    ),
    attack(
        "a log that leads to a start file",
        "",
        "ln -sf ~/.bashrc .git/logs/HEAD; git checkout -q -b 'x;touch${IFS}$P' 2>/dev/null; true",
    ),
    attack(
        "a message that leads to a start file",
        "",
        "rm -f .git/COMMIT_EDITMSG; ln -s ~/.bashrc .git/COMMIT_EDITMSG",
    ),
    attack(
        "a branch that leads to a start file",
        "",
        "rm -f .git/refs/heads/main; ln -s ~/.bashrc .git/refs/heads/main",
    ),
    attack(
        "an old list of remotes",
        "git config protocol.ext.allow always",
        "mkdir .git/remotes; echo \"URL: ext::sh -c touch% $P\" > .git/remotes/origin",
    ),
    attack(
        "an old list of branches",
        "git config protocol.ext.allow always",
        "mkdir -p .git/branches; echo \"ext::sh -c touch% $P\" > .git/branches/origin",
    ),
    attack(
        "a common folder over and over",
        "",
        concat!(
            "mkdir x; cp -r .git/objects .git/refs .git/config x/; ",
            evil_settings!("x/config"),
            "; (while :; do echo ../x > .git/commondir; sleep 0.02; done) & sleep 0.3"
        ),
    ),
    attack(
        "a process that stays to plant it later",
        "",
        concat!(
            "mkdir x; cp -r .git/objects .git/refs .git/config x/; ",
            evil_settings!("x/config"),
            "; setsid nohup sh -c 'while :; do echo ../x > .git/commondir; sleep 0.02; done' >/dev/null 2>&1 & sleep 0.1"
        ),
    ),
    attack(
        "a folder that nobody may read",
        "",
        concat!("git init -q h/r; ", evil_settings!("h/r/.git/config"), "; chmod 000 h"),
    ),
    attack(
        "letters in another case",
        "",
        concat!(
            "git init -q new; ",
            evil_settings!("new/.git/config"),
            "; mv new/.git new/.GIT; mv new/.GIT new/.git"
        ),
    ),
    attack(
        "names that are not Unicode",
        "",
        "d=$(printf 'd\\377'); git init -q \"$d\"; git config -f \"$d/.git/config\" core.fsmonitor \"touch $P; false\"",
    ),
    attack(
        "a name with a line end",
        "",
        "d=$(printf 'a\\nb'); git init -q \"$d\"; git config -f \"$d/.git/config\" core.fsmonitor \"touch $P; false\"",
    ),
    attack(
        "a repository that moved",
        "git init -q old",
        concat!("mv old new 2>/dev/null; cp -r old new 2>/dev/null; ", evil_settings!("new/.git/config")),
    ),
    attack(
        "submodules by a file",
        "",
        "printf '[submodule \"x\"]\\npath=x\\nurl=.\\nupdate=!touch %s\\n' \"$P\" > .gitmodules",
    ),
];
