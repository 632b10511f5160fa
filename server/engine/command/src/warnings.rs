//! The effects of a command that matter to a user: deletions, replaced history, other rights.
//!
//! Rule: judged by the program and its options, in the words of what happens. A word in a message or a file name warns of nothing, and
//! a missing warning permits nothing.

use std::collections::BTreeSet;

use super::wrappers::program;
use super::{Analysis, SimpleCommand};

/// The most warnings of one line.
const MOST: usize = 5;

/// The effects of a line's commands, in the order of their harm; each sentence once.
#[must_use]
pub fn warnings(analysis: &Analysis) -> Vec<String> {
    let found: BTreeSet<(u8, String)> = analysis.commands.iter().filter_map(warning).collect();
    found.into_iter().take(MOST).map(|(_, text)| text).collect()
}

/// The options and operands of one command.
struct Arguments<'a> {
    words: Vec<&'a str>,
}

impl Arguments<'_> {
    /// Whether a short option is given, alone or in a cluster.
    fn short(&self, letter: char) -> bool {
        self.options().any(|word| !word.starts_with("--") && word.contains(letter))
    }

    /// Whether a long option is given, with or without a value.
    fn long(&self, name: &str) -> bool {
        self.options()
            .filter_map(|word| word.strip_prefix("--"))
            .any(|word| word == name || word.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')))
    }

    /// The words before `--` that begin with a dash.
    fn options(&self) -> impl Iterator<Item = &str> {
        self.words.iter().copied().take_while(|word| *word != "--").filter(|word| word.starts_with('-'))
    }

    /// The words that are no options.
    fn operands(&self) -> impl Iterator<Item = &str> {
        self.words.iter().copied().filter(|word| !word.starts_with('-'))
    }

    fn operand(&self, index: usize) -> &str {
        self.operands().nth(index).unwrap_or_default()
    }

    fn force(&self) -> bool {
        self.short('f') || self.long("force")
    }
}

/// The effect of a command, with its place in the order of harm.
fn warning(command: &SimpleCommand) -> Option<(u8, String)> {
    let (name, rest) = command.argv.split_first()?;
    let arguments = Arguments { words: rest.iter().map(|word| word.text.as_str()).collect() };
    let (order, what) = match program(name) {
        "rm" | "rmdir" | "unlink" | "shred" => deletion(&arguments)?,
        "find" if arguments.options().any(|word| word == "-delete") => (1, "deletes the files it finds"),
        "git" => of_git(&arguments)?,
        "sudo" | "doas" | "su" | "pkexec" => (0, "runs with the rights of another user"),
        "chmod" | "chown" | "chgrp" if arguments.short('R') || arguments.long("recursive") => {
            (3, "changes the rights or the owner of a whole folder")
        }
        "kill" | "pkill" | "killall" => (4, "ends processes"),
        "truncate" => (2, "cuts files off"),
        "dd" => (1, "writes to a file or a device without asking"),
        "npm" | "pnpm" | "yarn" | "cargo" | "poetry" if arguments.operand(0) == "publish" => {
            (1, "publishes a package")
        }
        "docker" | "podman" if arguments.operand(0) == "push" => (1, "publishes an image"),
        "twine" if arguments.operand(0) == "upload" => (1, "publishes a package"),
        "npm" | "pnpm" | "yarn" | "pip" | "pip3" | "cargo" | "gem" | "go" | "brew" | "apt" | "apt-get"
            if matches!(arguments.operand(0), "install" | "i" | "ci" | "add") =>
        {
            (6, "installs packages, whose scripts run")
        }
        _ if arguments.long("force") => (5, "overrides a safeguard by `--force`"),
        _ if arguments.long("no-verify") => (5, "skips checks by `--no-verify`"),
        _ => return None,
    };
    Some((order, format!("`{}` {what}.", shown(&command.text))))
}

fn deletion(arguments: &Arguments<'_>) -> Option<(u8, &'static str)> {
    let recursive = arguments.short('r') || arguments.short('R') || arguments.long("recursive");
    Some(match (recursive, arguments.force()) {
        (true, true) => (1, "deletes folders with all they contain, write-protected files too"),
        (true, false) => (1, "deletes folders with all they contain"),
        (false, _) => (2, "deletes files"),
    })
}

fn of_git(arguments: &Arguments<'_>) -> Option<(u8, &'static str)> {
    let operation = arguments.operand(0);
    let is = |second: &str| arguments.operand(1) == second;
    Some(match operation {
        "push"
            if arguments.force()
                || arguments.options().any(|word| word.starts_with("--force-with-lease")) =>
        {
            (1, "replaces history on the remote")
        }
        "push" if arguments.long("delete") || arguments.short('d') || arguments.long("mirror") => {
            (1, "deletes branches on the remote")
        }
        "push" if arguments.operands().skip(2).any(|name| name.starts_with('+')) => {
            (1, "replaces history on the remote")
        }
        "push" => (5, "publishes commits"),
        "reset" if arguments.long("hard") => (1, "discards changes that are not committed"),
        "clean" if arguments.force() => (1, "deletes files that git does not track"),
        "checkout" | "switch" if arguments.force() || arguments.long("discard-changes") => {
            (1, "discards changes that are not committed")
        }
        "checkout" if arguments.words.contains(&"--") || is(".") => {
            (1, "discards changes that are not committed")
        }
        "restore" if !arguments.long("staged") || arguments.long("worktree") => {
            (1, "discards changes that are not committed")
        }
        "stash" if is("drop") || is("clear") => (1, "deletes stashed changes"),
        "branch" if arguments.short('D') => (2, "deletes a branch that may not be merged"),
        "rebase" | "filter-branch" | "filter-repo" => (3, "rewrites history"),
        "commit" if arguments.long("amend") => (4, "replaces the last commit"),
        "commit" | "merge" if arguments.long("no-verify") => (5, "skips checks by `--no-verify`"),
        _ => return None,
    })
}

/// The command on one line, its beginning where it is long.
fn shown(text: &str) -> String {
    const LONGEST: usize = 80;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('`', "'");
    if line.chars().count() <= LONGEST {
        return line;
    }
    line.chars().take(LONGEST).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use kode_base::paths::AbsPath;

    use super::*;
    use crate::analyse;

    fn of(line: &str) -> Vec<String> {
        warnings(&analyse(line, &AbsPath::new("/w").expect("absolute")))
    }

    #[test]
    fn what_a_command_does_is_named_wherever_it_is_in_the_line() {
        let rows = [
            ("rm -rf build dist", "deletes folders with all they contain, write-protected files too"),
            ("cd a && rm -r b", "deletes folders with all they contain"),
            ("true; rm a.txt", "deletes files"),
            ("git push --force", "replaces history on the remote"),
            ("git push -f origin main", "replaces history on the remote"),
            ("git push origin +main", "replaces history on the remote"),
            ("git push --force-with-lease", "replaces history on the remote"),
            ("git reset --hard HEAD~1", "discards changes that are not committed"),
            ("git checkout -- src", "discards changes that are not committed"),
            ("git clean -fdx", "deletes files that git does not track"),
            ("sudo make install", "runs with the rights of another user"),
            ("cargo publish", "publishes a package"),
            ("find . -name '*.o' -delete", "deletes the files it finds"),
            ("some-tool --force x", "overrides a safeguard by `--force`"),
            ("git commit --no-verify -m x", "skips checks by `--no-verify`"),
            ("npm install left-pad", "installs packages, whose scripts run"),
        ];
        for (line, what) in rows {
            let found = of(line);
            assert!(found.iter().any(|text| text.contains(what)), "{line}: {found:?}");
        }
    }

    #[test]
    fn words_that_are_only_words_warn_of_nothing() {
        for line in [
            "echo rm -rf /",
            "git commit -m 'remove --force'",
            "git restore --staged a.txt",
            "grep -rf patterns src",
            "cargo test -- --force",
            "ls -R",
            "git log --oneline",
            "npm test",
        ] {
            assert_eq!(of(line), [] as [String; 0], "{line}");
        }
    }

    #[test]
    fn the_worst_comes_first_and_each_sentence_once() {
        let found = of("git push; rm -rf a; rm -rf a; sudo ls");
        assert!(found[0].starts_with("`sudo"), "{found:?}");
        assert_eq!(found.iter().filter(|text| text.starts_with("`rm")).count(), 1, "{found:?}");
        assert!(found.last().is_some_and(|text| text.contains("publishes commits")), "{found:?}");
    }
}
