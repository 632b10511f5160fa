//! Which git commands print contents of files that no operand names.
//!
//! Rule: a command that may print what commits hold counts as one that does, unless its options or operands exclude it.

use super::Invocation;

/// Commands that print contents of files, whatever their options.
const PRINTING: [&str; 6] = ["archive", "bundle", "fast-export", "format-patch", "grep", "range-diff"];
/// Commands that print contents of files unless options ask for less.
const DIFFING: [&str; 6] = ["diff", "diff-files", "diff-index", "diff-tree", "show", "whatchanged"];
/// Commands that print contents of files when options ask for them.
const LISTING: [&str; 2] = ["log", "reflog"];
/// Options that ask for less than contents.
const LESS: [&str; 11] = [
    "--stat",
    "--shortstat",
    "--numstat",
    "--name-only",
    "--name-status",
    "--no-patch",
    "--summary",
    "--raw",
    "--dirstat",
    "--compact-summary",
    "-s",
];

/// The contents of commits that a git command prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrintedContents {
    /// None.
    Nothing,
    /// Those of the files and folders among its touches.
    Named,
    /// Those of any file.
    Any,
}

pub(super) fn prints(git: &Invocation<'_>) -> PrintedContents {
    let Some(verb) = git.verb.map(|verb| verb.text.as_str()) else { return PrintedContents::Nothing };
    let words: Vec<&str> = git.arguments.iter().map(|word| word.text.as_str()).collect();
    let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let (head, paths) = words.split_at(end);
    let asks_for_less = head.iter().any(|word| LESS.contains(&word.split('=').next().unwrap_or(word)));
    let asks_for_patch = head.iter().any(|word| is_patch(word));
    let does_print = match verb {
        "stash" => head.first() == Some(&"show") && (asks_for_patch || !asks_for_less),
        "cat-file" => head.iter().any(|word| word.starts_with("--batch")),
        _ if PRINTING.contains(&verb) => true,
        _ if DIFFING.contains(&verb) => asks_for_patch || !asks_for_less,
        _ => LISTING.contains(&verb) && asks_for_patch,
    };
    let operands = || head.iter().filter(|word| !word.starts_with('-'));
    let shows_objects = verb == "show" && operands().count() > 0 && operands().all(|word| word.contains(':'));
    match does_print {
        false => PrintedContents::Nothing,
        true if paths.len() > 1 || shows_objects => PrintedContents::Named,
        true => PrintedContents::Any,
    }
}

/// Whether an option asks for contents, also abbreviated or among other letters.
fn is_patch(word: &str) -> bool {
    match word.strip_prefix("--") {
        Some(long) => {
            ["pat", "uni", "cc", "word-diff", "function-context"].iter().any(|one| long.starts_with(one))
        }
        None => word.strip_prefix('-').is_some_and(|short| short.contains(['p', 'u', 'U', 'L', 'c', 'W'])),
    }
}
