//! Which git commands only look, and which options make git run programs or write files.
//!
//! Rule: allow-lists of subcommands and of their options.

use super::Word;
use super::options::Known;

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
    "get",
    "get-all",
    "heads",
    "recurse",
    "is-ancestor",
    "check",
    "compact-summary",
    "dirstat",
    "minimal",
    "find-renames",
    "show-signature",
];

const LOOKING: [(&str, &str); 23] = [
    ("status", "suzbv"),
    ("diff", "pubwzRU:M:C:"),
    ("log", "#pn:uSiG:L:cgzM:C:U:E"),
    ("show", "pus:qU:w"),
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
    ("version", ""),
];

/// Whether a git command only looks.
pub(super) fn only_looks(arguments: &[Word]) -> bool {
    let rest = match arguments {
        [pager, rest @ ..] if pager.text == "--no-pager" => rest,
        all => all,
    };
    let Some((verb, rest)) = rest.split_first() else { return false };
    if !verb.literal {
        return false;
    }
    let verb = verb.text.as_str();
    let plain = |short| {
        let split = Known { short, long: COMMON }.split(rest);
        split.known.then_some(split)
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
        "config" => {
            matches!(rest.first(), Some(flag) if matches!(flag.text.as_str(), "--get" | "--get-all" | "--list" | "-l"))
                && plain("l").is_some()
        }
        "reflog" => {
            rest.first().is_none_or(|word| word.text == "show" || word.text.starts_with('-'))
                && plain("#n:").is_some()
        }
        _ => LOOKING.iter().any(|(looking, short)| *looking == verb && plain(short).is_some()),
    }
}

/// Whether options make git run programs or write files elsewhere, so that no prefix says what it does.
pub(super) fn is_risky(arguments: &[Word]) -> bool {
    const RISKY: [&str; 13] = [
        "--exec",
        "--upload-pack",
        "--receive-pack",
        "--output",
        "--ext-diff",
        "--textconv",
        "--config-env",
        "--git-dir",
        "--work-tree",
        "--open-files-in-pager",
        "--extcmd",
        "--tool",
        "--template",
    ];
    let verb = arguments.iter().position(|word| !word.text.starts_with('-')).unwrap_or(arguments.len());
    let name = arguments.get(verb).map_or("", |word| word.text.as_str());
    let before = arguments[..verb.min(arguments.len())].iter().any(|word| word.text != "--no-pager");
    // An abbreviation of a long option counts as the option: git takes it so.
    let risky = |text: &str| {
        let stem = text.split('=').next().unwrap_or(text);
        stem.len() > 3 && stem.starts_with("--") && RISKY.iter().any(|risky| risky.starts_with(stem))
    };
    before
        || arguments.iter().any(|word| word.open || risky(&word.text))
        || matches!(
            name,
            "config"
                | "submodule"
                | "bisect"
                | "filter-branch"
                | "difftool"
                | "mergetool"
                | "daemon"
                | "hook"
        )
        || name == "rebase"
            && arguments.iter().any(|word| word.text.starts_with("-x") || word.text.starts_with("-i"))
        || name == "grep" && arguments.iter().any(|word| word.text.starts_with("-O"))
        || name == "clone"
            && arguments.iter().any(|word| {
                word.text.starts_with("-c") || word.text.starts_with("-u") || word.text.starts_with("ext::")
            })
        || name == "archive" && arguments.iter().any(|word| word.text.starts_with("-o"))
        || arguments.iter().any(|word| word.text.starts_with("ext::"))
}
