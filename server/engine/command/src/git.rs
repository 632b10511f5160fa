//! Which git commands only look, and which options make git run programs or write files.
//!
//! Rule: allow-lists of subcommands and of their options.

mod history;
mod operands;
mod risk;
#[cfg(test)]
mod tests;

use super::options::OptionTable;
use super::wrappers::program;
use super::{CommandWord, FileTouch};
use crate::place::{WorkingFolder, destination};
use kode_base::paths::AbsPath;

pub use history::PrintedContents;
pub(super) use risk::is_risky;

/// Characters by which git itself finds files by a pattern.
const GLOBS: [char; 4] = ['*', '?', '[', '\\'];

/// Settings that hold nothing to keep.
const HARMLESS_SETTINGS: [&str; 12] = [
    "user.name",
    "user.email",
    "core.bare",
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "init.defaultbranch",
    "pull.rebase",
    "pull.ff",
    "push.default",
    "commit.gpgsign",
];

/// Options that most commands that look take in common.
const COMMON: &[&str] = &[
    "stat",
    "stat=",
    "shortstat",
    "numstat",
    "name-only",
    "name-status",
    "oneline",
    "graph",
    "all",
    "decorate",
    "decorate=",
    "pretty",
    "pretty=",
    "format=",
    "since=",
    "until=",
    "after=",
    "before=",
    "author=",
    "grep=",
    "max-count=",
    "no-merges",
    "merges",
    "first-parent",
    "follow",
    "patch",
    "no-patch",
    "cached",
    "staged",
    "unified=",
    "color",
    "color=",
    "no-color",
    "word-diff",
    "word-diff=",
    "ignore-all-space",
    "ignore-space-change",
    "diff-filter=",
    "date=",
    "abbrev-commit",
    "abbrev=",
    "reverse",
    "summary",
    "porcelain",
    "porcelain=",
    "short",
    "branch",
    "untracked-files",
    "untracked-files=",
    "ignored",
    "long",
    "show-current",
    "list",
    "remotes",
    "contains",
    "contains=",
    "merged",
    "no-merged",
    "show-toplevel",
    "abbrev-ref",
    "verify",
    "git-dir",
    "is-inside-work-tree",
    "symbolic-full-name",
    "others",
    "modified",
    "deleted",
    "exclude-standard",
    "stage",
    "line-number",
    "ignore-case",
    "count",
    "files-with-matches",
    "tags",
    "always",
    "dirty",
    "exact-match",
    "raw",
    "topo-order",
    "left-right",
    "no-ext-diff",
    "no-textconv",
    "sort=",
    "show-prefix",
    "show-cdup",
    "absolute-git-dir",
    "git-common-dir",
    "is-inside-git-dir",
    "is-bare-repository",
    "short=",
    "octopus",
    "fork-point",
    "match=",
    "candidates=",
    "numbered",
    "email",
    "full-tree",
    "full-name",
    "verbose",
    "non-matching",
    "quiet",
    "exit-code",
    "unmerged",
    "directory",
    "heads",
    "is-ancestor",
    "check",
    "compact-summary",
    "dirstat",
    "minimal",
    "find-renames",
    "show-signature",
];

const LOOKING: [(&str, &str); 24] = [
    ("status", "suzbv"),
    ("diff", "pubwzRU:M:C:"),
    ("log", "#pn:uS:iG:L:cgzM:C:U:E"),
    ("show", "pusqU:w"),
    ("blame", "L:wMCeltsnpf"),
    ("rev-parse", "q"),
    ("rev-list", "#n:"),
    ("ls-files", "cdmoistzvuk"),
    ("ls-tree", "rdtlz"),
    ("shortlog", "nsec"),
    ("describe", ""),
    ("cat-file", "tpse"),
    ("merge-base", "a"),
    ("name-rev", ""),
    ("whatchanged", "#pn:"),
    ("count-objects", "vH"),
    ("show-ref", "dqs"),
    ("reflog", "#n:"),
    ("diff-tree", "prtcmz"),
    ("for-each-ref", ""),
    ("show-branch", "a"),
    ("grep", "#nilcwvEFPe:hHA:B:C:"),
    ("check-ignore", "vqn"),
    ("version", ""),
];

/// A call of git, taken apart.
struct Invocation<'a> {
    /// The folders it goes to first, one after the other (`-C`).
    folders: Vec<&'a CommandWord>,
    /// Whether the options before the subcommand are among those that change nothing else.
    plain: bool,
    verb: Option<&'a CommandWord>,
    /// The text after the subcommand.
    arguments: &'a [CommandWord],
}

impl<'a> Invocation<'a> {
    fn of(mut words: &'a [CommandWord]) -> Self {
        let mut git = Self { folders: Vec::new(), plain: true, verb: None, arguments: &[] };
        while let [word, rest @ ..] = words {
            words = rest;
            match word.text.as_str() {
                "--no-pager" | "-P" | "--no-optional-locks" => {}
                "-C" => {
                    git.plain &= !rest.is_empty();
                    git.folders.extend(rest.first());
                    words = rest.get(1..).unwrap_or_default();
                }
                "-c" | "--git-dir" | "--work-tree" | "--namespace" | "--config-env" | "--attr-source" => {
                    git.plain = false;
                    words = rest.get(1..).unwrap_or_default();
                }
                option if option.starts_with('-') => git.plain = false,
                _ => {
                    git.verb = Some(word);
                    git.arguments = rest;
                    break;
                }
            }
        }
        git
    }

    fn is(&self, verb: &str) -> bool {
        self.verb.is_some_and(|word| word.text == verb)
    }

    /// Where it works.
    fn place(&self, place: &WorkingFolder) -> WorkingFolder {
        self.folders.iter().fold(place.clone(), |place, folder| {
            destination(&[CommandWord::literal("cd"), (*folder).clone()], &place)
        })
    }

    /// The options with which it only looks.
    fn known(&self) -> Option<OptionTable> {
        let short = LOOKING.iter().find(|(verb, _)| self.is(verb)).map(|(_, short)| *short);
        let short = if self.is("stash") { Some("p") } else { short };
        short.map(|short| OptionTable { short, long: COMMON })
    }
}

/// The files a git command reads by its operands, and the folders it goes to.
pub(super) fn touches(arguments: &[CommandWord], place: &WorkingFolder) -> Vec<FileTouch> {
    operands::touches(&Invocation::of(arguments), place)
}

/// What git prints of the contents of commits.
pub(super) fn prints(arguments: &[CommandWord]) -> PrintedContents {
    history::prints(&Invocation::of(arguments))
}

/// Where a command works: for git, where its `-C` leads.
pub(super) fn directory(argv: &[CommandWord], place: &WorkingFolder) -> Option<AbsPath> {
    match argv.split_first() {
        Some((name, arguments)) if program(name) == "git" => Invocation::of(arguments).place(place).directory,
        _ => place.directory.clone(),
    }
}

/// Whether a git command only looks.
pub(super) fn only_looks(arguments: &[CommandWord]) -> bool {
    let git = Invocation::of(arguments);
    let Some(verb) = git.verb else { return false };
    if !verb.literal || !git.plain {
        return false;
    }
    let (verb, rest) = (verb.text.as_str(), git.arguments);
    let plain = |short| {
        let known = OptionTable { short, long: COMMON };
        operands::is_understood(known, rest).then(|| known.split(rest))
    };
    match verb {
        "branch" => plain("avrl").is_some_and(|split| {
            split.operands.is_empty() || split.has(&["--list", "-l", "--contains", "--merged", "--no-merged"])
        }),
        "tag" => plain("ln:").is_some_and(|split| split.operands.is_empty() || split.has(&["-l", "--list"])),
        "remote" => match rest {
            [] => true,
            [flag] => matches!(flag.text.as_str(), "-v" | "--verbose" | "show"),
            [get, name] => get.text == "get-url" && name.literal && !name.text.starts_with('-'),
            _ => false,
        },
        "stash" => {
            rest.first().is_some_and(|word| matches!(word.text.as_str(), "list" | "show"))
                && plain("p").is_some()
        }
        "worktree" => matches!(rest, [list] if list.text == "list"),
        // Other settings may hold tokens.
        "config" => {
            let key = match rest {
                [key] => Some(key),
                [get, key] if get.text == "--get" => Some(key),
                _ => None,
            };
            key.is_some_and(|key| HARMLESS_SETTINGS.contains(&&*key.text.to_ascii_lowercase()))
        }
        "help" => match rest {
            [] => true,
            [about] => {
                about.literal && about.text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
            }
            _ => false,
        },
        "reflog" => plain("#n:").is_some_and(|split| {
            let operand =
                |word: &&CommandWord| !matches!(&*word.text, "expire" | "delete" | "drop" | "write");
            split.operands.iter().all(operand)
        }),
        _ => git.known().is_some_and(|known| operands::is_understood(known, rest)),
    }
}
