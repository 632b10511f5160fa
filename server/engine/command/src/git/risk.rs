//! Which options and subcommands make git run programs or write files elsewhere, so that no prefix says what it does.
//!
//! Rule: an option counts however git lets it be written: shortened, with its value attached, or in a cluster.

use super::Invocation;
use crate::CommandWord;

/// Long options that are risky with every subcommand, without their dashes.
const OPTIONS: [&str; 21] = [
    "exec",
    "upload-pack",
    "receive-pack",
    "output",
    "output-directory",
    "ext-diff",
    "textconv",
    "config-env",
    "git-dir",
    "work-tree",
    "open-files-in-pager",
    "extcmd",
    "tool",
    "template",
    "no-index",
    "separate-git-dir",
    "contents",
    "pathspec-from-file",
    "ignore-revs-file",
    "upload-archive",
    "index-output",
];

/// Subcommands that run programs by their nature, or change which programs run later.
const SUBCOMMANDS: [&str; 21] = [
    "config",
    "submodule",
    "bisect",
    "filter-branch",
    "difftool",
    "mergetool",
    "daemon",
    "hook",
    "for-each-repo",
    "send-email",
    "instaweb",
    "web--browse",
    "maintenance",
    "credential",
    "credential-store",
    "credential-cache",
    "shell",
    "http-backend",
    "cvsserver",
    "svn",
    "p4",
];

/// Subcommands whose operands may name a transport, which is a program.
const REACHING: [&str; 9] =
    ["clone", "fetch", "pull", "push", "ls-remote", "archive", "remote", "fetch-pack", "send-pack"];

/// Whether a git command could do more than its first words tell.
pub(crate) fn is_risky(arguments: &[CommandWord]) -> bool {
    let git = Invocation::of(arguments);
    let verb = git.verb.map_or("", |verb| verb.text.as_str());
    let (letters, long) = own_options(verb);
    !git.plain
        || !git.folders.is_empty()
        || arguments.iter().any(|word| word.open || word.text.contains("ext::"))
        || SUBCOMMANDS.contains(&verb)
        || REACHING.contains(&verb) && git.arguments.iter().any(|word| word.text.contains("::"))
        || git.arguments.iter().any(|word| {
            is_option(&word.text, &OPTIONS) || is_option(&word.text, long) || has_letter(&word.text, letters)
        })
}

/// The letters and long options that are risky with one subcommand alone.
fn own_options(verb: &str) -> (&'static [char], &'static [&'static str]) {
    match verb {
        "rebase" => (&['x', 'i'], &["interactive", "edit-todo"]),
        "grep" => (&['O'], &[]),
        "clone" => (&['c', 'u'], &["config"]),
        "archive" => (&['o'], &["remote"]),
        "format-patch" => (&['o'], &[]),
        "am" | "apply" => (&[], &["unsafe-paths"]),
        _ => (&[], &[]),
    }
}

/// Whether a word is one of these long options, or an abbreviation that git could take for one.
fn is_option(text: &str, options: &[&str]) -> bool {
    let Some(long) = text.strip_prefix("--") else { return false };
    let stem = long.split('=').next().unwrap_or(long);
    !stem.is_empty() && options.iter().any(|option| option.starts_with(stem))
}

/// Whether one of these letters could be an option in a word. What follows a letter may be its value; that is not told
/// apart.
fn has_letter(text: &str, letters: &[char]) -> bool {
    text.strip_prefix('-').is_some_and(|cluster| !cluster.starts_with('-') && cluster.contains(letters))
}
