//! What a command does beyond the files it touches, and whether a rule for a prefix may cover it.
//!
//! Rule: allow-lists. A program or option that is not listed here is never taken for one that only looks.

use super::options::Known;
use super::walk::Place;
use super::wrappers::{Wrapped, is_shell, program};
use super::{Assignment, Effect, Word, builtins, git};

/// The verdict on one command.
pub(super) struct Judged {
    pub effect: Effect,
    pub prefix_covered: bool,
}

/// Programs that only look, with the options for which that holds.
const LOOKERS: [(&str, Known); 44] = [
    (
        "ls",
        Known {
            short: "1aAbBcCdfFghHiIklLmnNopqQrRsStuUvxXZw:T:I:",
            long: &[
                "all",
                "almost-all",
                "color",
                "color=",
                "human-readable",
                "recursive",
                "reverse",
                "sort=",
                "time=",
                "time-style=",
                "group-directories-first",
                "directory",
                "size",
                "inode",
                "classify",
                "full-time",
            ],
        },
    ),
    (
        "cat",
        Known {
            short: "AbeEnstTuv",
            long: &["number", "show-all", "show-ends", "show-tabs", "squeeze-blank"],
        },
    ),
    ("head", Known { short: "#n:c:qvz", long: &["lines=", "bytes=", "quiet", "verbose"] }),
    ("tail", Known { short: "#n:c:qvzfFs:", long: &["lines=", "bytes=", "quiet", "verbose", "follow"] }),
    ("wc", Known { short: "clmLw", long: &["lines", "words", "chars", "bytes", "max-line-length"] }),
    (
        "grep",
        Known {
            short: "#EFGPe:ivwxyczf:LlhHnoqsA:B:C:m:abrRZUID:d:",
            long: &[
                "include=",
                "exclude=",
                "exclude-dir=",
                "color",
                "color=",
                "ignore-case",
                "recursive",
                "line-number",
                "count",
                "files-with-matches",
                "files-without-match",
                "only-matching",
                "invert-match",
                "word-regexp",
                "fixed-strings",
                "extended-regexp",
                "perl-regexp",
                "context=",
                "after-context=",
                "before-context=",
                "max-count=",
                "regexp=",
                "no-filename",
                "with-filename",
                "quiet",
                "null",
                "text",
            ],
        },
    ),
    (
        "egrep",
        Known {
            short: "#e:ivwxclhHnoqsA:B:C:m:r",
            long: &["include=", "exclude=", "color=", "exclude-dir="],
        },
    ),
    (
        "fgrep",
        Known {
            short: "#e:ivwxclhHnoqsA:B:C:m:r",
            long: &["include=", "exclude=", "color=", "exclude-dir="],
        },
    ),
    (
        "rg",
        Known {
            short: "e:ivwxclLnNoqsSFPUhHA:B:C:m:g:t:T:uM:j:0p.",
            long: &[
                "files",
                "hidden",
                "no-ignore",
                "glob=",
                "iglob=",
                "type=",
                "type-not=",
                "ignore-case",
                "smart-case",
                "case-sensitive",
                "fixed-strings",
                "files-with-matches",
                "files-without-match",
                "count",
                "count-matches",
                "line-number",
                "no-line-number",
                "context=",
                "after-context=",
                "before-context=",
                "max-count=",
                "max-depth=",
                "multiline",
                "only-matching",
                "invert-match",
                "word-regexp",
                "json",
                "stats",
                "sort=",
                "heading",
                "no-heading",
                "color=",
                "regexp=",
                "type-list",
                "pcre2",
                "with-filename",
                "no-filename",
                "vimgrep",
                "trim",
                "replace=",
            ],
        },
    ),
    ("which", Known { short: "as", long: &["all"] }),
    ("type", Known { short: "aftpP", long: &[] }),
    (
        "diff",
        Known {
            short: "#abBcdeEiI:lNnpqrstTuU:wW:xyZC:",
            long: &[
                "unified",
                "unified=",
                "brief",
                "recursive",
                "color",
                "color=",
                "side-by-side",
                "ignore-all-space",
                "ignore-case",
                "new-file",
                "exclude=",
                "stat",
                "context=",
            ],
        },
    ),
    ("cmp", Known { short: "bi:ln:s", long: &["silent", "quiet", "verbose"] }),
    ("comm", Known { short: "123iz", long: &["nocheck-order", "check-order"] }),
    ("stat", Known { short: "c:fLt", long: &["format=", "printf=", "terse", "file-system", "dereference"] }),
    (
        "du",
        Known {
            short: "0aBbcd:DhHklLmsSx",
            long: &["max-depth=", "human-readable", "summarize", "total", "all", "apparent-size", "exclude="],
        },
    ),
    ("df", Known { short: "ahHiklPTt:x:", long: &["human-readable", "total", "type="] }),
    (
        "cut",
        Known {
            short: "b:c:d:f:nsz",
            long: &[
                "delimiter=",
                "fields=",
                "complement",
                "output-delimiter=",
                "characters=",
                "only-delimited",
            ],
        },
    ),
    (
        "sort",
        Known {
            short: "bcCdfghik:MmnrRst:uVz",
            long: &[
                "key=",
                "numeric-sort",
                "reverse",
                "unique",
                "human-numeric-sort",
                "version-sort",
                "field-separator=",
                "ignore-case",
                "check",
            ],
        },
    ),
    ("uniq", Known { short: "cdDf:is:uw:z", long: &["count", "repeated", "unique", "ignore-case"] }),
    ("tr", Known { short: "cCdst", long: &["delete", "complement", "squeeze-repeats"] }),
    (
        "date",
        Known {
            short: "d:Iur:R",
            long: &["date=", "utc", "iso-8601", "iso-8601=", "rfc-3339=", "reference="],
        },
    ),
    ("basename", Known { short: "as:z", long: &["multiple", "suffix="] }),
    ("dirname", Known { short: "z", long: &[] }),
    (
        "realpath",
        Known {
            short: "eLmPqsz",
            long: &["relative-to=", "relative-base=", "canonicalize-existing", "canonicalize-missing"],
        },
    ),
    ("readlink", Known { short: "efmnqsvz", long: &["canonicalize"] }),
    ("pwd", Known { short: "LP", long: &[] }),
    ("true", Known { short: "", long: &[] }),
    ("false", Known { short: "", long: &[] }),
    (":", Known { short: "", long: &[] }),
    ("sleep", Known { short: "", long: &[] }),
    ("seq", Known { short: "f:s:w", long: &[] }),
    ("nl", Known { short: "b:n:w:s:v:", long: &[] }),
    ("tac", Known { short: "brs:", long: &[] }),
    ("rev", Known { short: "", long: &[] }),
    ("md5sum", Known { short: "b", long: &[] }),
    ("sha256sum", Known { short: "b", long: &[] }),
    ("od", Known { short: "A:cj:N:t:vx", long: &[] }),
    ("whoami", Known { short: "", long: &[] }),
    ("id", Known { short: "gGnru", long: &[] }),
    ("uname", Known { short: "amnoprsv", long: &[] }),
    ("nproc", Known { short: "", long: &["all"] }),
    ("tree", Known { short: "adfI:L:P:CD", long: &["dirsfirst", "gitignore", "noreport"] }),
    ("file", Known { short: "bhiL", long: &["mime-type", "brief"] }),
];

/// Lookers none of whose options does more, so that arguments may turn into any of them.
const HARMLESS: [&str; 14] = [
    "ls", "cat", "head", "tail", "grep", "egrep", "fgrep", "wc", "stat", "du", "cut", "basename", "dirname",
    "realpath",
];

const EDITORS: [(&str, Known); 6] = [
    ("mkdir", Known { short: "pv", long: &["parents", "verbose"] }),
    ("touch", Known { short: "acm", long: &["no-create"] }),
    ("mv", Known { short: "finuvT", long: &["force", "no-clobber", "verbose", "update"] }),
    (
        "cp",
        Known {
            short: "aadfinprRTuv",
            long: &["recursive", "archive", "force", "no-clobber", "verbose", "update"],
        },
    ),
    ("rm", Known { short: "dfirRv", long: &["force", "recursive", "verbose", "dir"] }),
    ("rmdir", Known { short: "pv", long: &["parents"] }),
];

/// Programs asked for nothing but their version.
const VERSIONED: [&str; 34] = [
    "cargo", "rustc", "rustup", "node", "npm", "npx", "yarn", "pnpm", "bun", "deno", "tsc", "python",
    "python3", "pip", "pip3", "uv", "go", "java", "javac", "ruby", "gem", "php", "perl", "gcc", "g++",
    "clang", "cmake", "make", "docker", "git", "bash", "rg", "jq", "kubectl",
];
const FIND_FLAGS: [&str; 18] = [
    "-print", "-print0", "-prune", "-empty", "-L", "-H", "-P", "-follow", "-xdev", "-mount", "-depth", "!",
    "-not", "-o", "-or", "-a", "(", ")",
];
const FIND_VALUES: [&str; 22] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-type",
    "-maxdepth",
    "-mindepth",
    "-size",
    "-mtime",
    "-mmin",
    "-ctime",
    "-atime",
    "-newer",
    "-regex",
    "-iregex",
    "-regextype",
    "-perm",
    "-user",
    "-group",
    "-printf",
    "-links",
];

/// Judges a command by its program and arguments.
pub(super) fn judge(argv: &[Word], assignments: &[Assignment], place: &Place, wrapped: &Wrapped) -> Judged {
    let prefix_covered = !wrapped.wraps && !is_risky(argv);
    let effect = match argv.split_first() {
        // A file in the working folder may bear the name of a program that only looks.
        Some((name, arguments)) if name.literal && assignments.iter().all(is_safe) => {
            if wrapped.transparent {
                Effect::ReadOnly
            } else if name.text == "cd" {
                Effect::ChangeDirectory(destination(argv, place).directory)
            } else if wrapped.wraps {
                Effect::Other
            } else {
                by_name(&name.text, arguments)
            }
        }
        _ if argv.first().is_some_and(|name| name.text == "cd") => Effect::ChangeDirectory(None),
        _ => Effect::Other,
    };
    Judged { effect, prefix_covered }
}

/// Whether a variable changes nothing but messages and levels of detail.
pub(super) fn is_safe(assignment: &Assignment) -> bool {
    const SAFE: [&str; 21] = [
        "LANG",
        "LANGUAGE",
        "NODE_ENV",
        "GOOS",
        "GOARCH",
        "CGO_ENABLED",
        "DEBUG",
        "TZ",
        "TERM",
        "COLUMNS",
        "LINES",
        "NO_COLOR",
        "FORCE_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "CI",
        "RUST_BACKTRACE",
        "RUST_LOG",
        "CARGO_TERM_COLOR",
        "PYTHONUNBUFFERED",
        "PYTHONDONTWRITEBYTECODE",
    ];
    SAFE.contains(&assignment.name.as_str()) || assignment.name.starts_with("LC_")
}

/// Where a `cd` leads.
pub(super) fn destination(argv: &[Word], place: &Place) -> Place {
    let operands: Vec<&Word> = argv.iter().skip(1).filter(|word| word.text != "--").collect();
    let [operand] = operands.as_slice() else { return Place::NOWHERE };
    let text = operand.text.as_str();
    if !operand.literal || text.is_empty() || text.starts_with('-') {
        return Place::NOWHERE;
    }
    let only_up = std::path::Path::new(text)
        .components()
        .all(|part| matches!(part, std::path::Component::ParentDir | std::path::Component::CurDir));
    let root = text.starts_with('/').then(|| crate::paths::AbsPath::new("/").ok()).flatten();
    let directory = place.directory.clone().or(root).map(|directory| directory.join(text));
    Place { directory, by_name: place.by_name || !only_up }
}

fn by_name(name: &str, arguments: &[Word]) -> Effect {
    let first = arguments.first().map(|word| word.text.as_str());
    if VERSIONED.contains(&name) && arguments.len() == 1 && matches!(first, Some("--version" | "-V")) {
        return Effect::ReadOnly;
    }
    let looks = match name {
        "git" => return if git::only_looks(arguments) { Effect::ReadOnlyGit } else { Effect::Other },
        "echo" | "test" | "[" | "printf" => true,
        "set" => builtins::is_plain_set(arguments),
        "exit" => arguments.iter().all(|word| word.text.bytes().all(|byte| byte.is_ascii_digit())),
        "break" | "continue" => arguments.is_empty(),
        "command" => matches!(first, Some("-v" | "-V")),
        "go" => arguments.len() == 1 && first == Some("version"),
        "find" => finds(arguments),
        "sed" => prints(arguments),
        _ => LOOKERS.iter().any(|(looker, known)| *looker == name && looks(name, known, arguments)),
    };
    if looks {
        return Effect::ReadOnly;
    }
    let edits = EDITORS.iter().any(|(editor, known)| {
        let split = known.split(arguments);
        *editor == name && split.known && split.operands.iter().all(|word| word.literal)
    });
    if edits { Effect::FileEdit } else { Effect::Other }
}

fn looks(name: &str, known: &Known, arguments: &[Word]) -> bool {
    let split = known.split(arguments);
    if HARMLESS.contains(&name) && arguments.iter().any(|word| word.open) {
        let rest: Vec<Word> = arguments.iter().filter(|word| !word.open).cloned().collect();
        return known.split(&rest).known;
    }
    split.known
        && match name {
            // The second file of `uniq` is written.
            "uniq" => split.operands.len() <= 1 && split.operands.iter().all(|word| word.literal),
            // Without a format, `date` sets the clock.
            "date" => split.operands.iter().all(|word| word.text.starts_with('+')),
            _ => true,
        }
}

fn finds(arguments: &[Word]) -> bool {
    let mut words = arguments.iter().skip_while(|word| !word.text.starts_with(['-', '(', '!']));
    if arguments.iter().any(|word| word.open) {
        return false;
    }
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if FIND_VALUES.contains(&text) {
            let _ = words.next();
        } else if !FIND_FLAGS.contains(&text) {
            return false;
        }
    }
    true
}

/// Whether a `sed` does nothing but print lines by their numbers.
fn prints(arguments: &[Word]) -> bool {
    let [quiet, script, files @ ..] = arguments else { return false };
    let plain = |part: &str| {
        part.strip_suffix('p').is_some_and(|range| {
            !range.is_empty()
                && range.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b',' | b'$'))
        })
    };
    quiet.text == "-n"
        && script.literal
        && script.text.split(';').all(plain)
        && files.iter().all(|file| !file.open && !file.text.starts_with('-'))
}

/// Whether a command's options can run programs or write files, so that no prefix says what it does.
fn is_risky(argv: &[Word]) -> bool {
    let Some((name, arguments)) = argv.split_first() else { return true };
    let program = program(name);
    let starts = |prefixes: &[&str]| {
        arguments.iter().any(|word| word.open || prefixes.iter().any(|prefix| word.text.starts_with(prefix)))
    };
    // Options in one cluster, such as `-ne`.
    let letter = |letters: &[char]| {
        arguments.iter().any(|word| {
            word.open
                || word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains(letters)
        })
    };
    match program {
        _ if !name.literal || is_shell(program) && letter(&['c', 's', 'o']) => true,
        _ if builtins::objection(argv).is_some() => true,
        "find" => starts(&["-exec", "-ok", "-delete", "-fprint", "-fls"]),
        "fd" | "fdfind" => starts(&["-x", "-X", "--exec"]),
        "rg" => starts(&["--pre", "--hostname-bin", "--search-zip"]) || letter(&['z']),
        "sort" => starts(&["--compress-prog", "--o", "--files0", "-T", "--temp"]) || letter(&['o']),
        "tar" | "bsdtar" => {
            starts(&[
                "--to-command",
                "--use-compress",
                "--checkpoint",
                "--info-script",
                "--new-volume",
                "--rsh",
                "--rmt",
            ]) || letter(&['I', 'F'])
        }
        "rsync" => starts(&["--rsh", "--rsync-path", "-e"]) || letter(&['e']),
        "sed" | "gsed" => !prints(arguments),
        "awk" | "gawk" | "mawk" | "nawk" | "ssh" | "xargs" | "parallel" | "env" | "sudo" | "doas" | "su" => {
            true
        }
        "perl" | "ruby" | "lua" => letter(&['e', 'E', 'n', 'p', 'i', 'r']) || arguments.is_empty(),
        "node" | "deno" | "bun" => {
            starts(&["-e", "-p", "--eval", "--print", "-r", "--require", "--import"]) || arguments.is_empty()
        }
        "php" => letter(&['r', 'B', 'R', 'E', 'd']) || arguments.is_empty(),
        _ if program.starts_with("python") => {
            letter(&['c'])
                || arguments.is_empty()
                || starts(&["-"]) && arguments.iter().all(|word| word.text == "-")
        }
        "npx" | "npm" => starts(&["-c", "--call", "--node-options", "--script-shell"]),
        "git" => git::is_risky(arguments),
        "docker" | "podman" | "nerdctl" | "kubectl" => starts(&["run", "exec"]),
        "make" | "gmake" => starts(&["--eval", "SHELL=", "-f", "-E"]),
        "zip" => letter(&['T']) || starts(&["--unzip-command"]),
        "curl" => {
            starts(&["-o", "-O", "--output", "--remote-name", "-K", "--config"]) || letter(&['o', 'O', 'K'])
        }
        "vi" | "vim" | "nvim" | "emacs" | "less" | "more" | "man" | "ed" => true,
        _ => false,
    }
}
