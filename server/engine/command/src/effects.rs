//! The effects of a command beyond its files, and whether a rule for a prefix may cover it.
//!
//! Rule: allow-lists. A program or option that is not listed here is never treated as one that only looks.

use super::options::{OptionTable, SplitArguments};
use super::programs::{self, CallEffect};
use super::wrappers::WrapperUse;
use super::{CommandWord, Effect, VariableAssignment, builtins, git, risks};
use crate::place::{WorkingFolder, destination};
use crate::sed::prints;

/// The verdict on one command.
pub(super) struct CommandVerdict {
    pub effect: Effect,
    pub prefix_covered: bool,
}

/// Lookers none of whose options does more, so that arguments may turn into any of them.
const HARMLESS: [&str; 11] =
    ["ls", "cat", "head", "tail", "wc", "stat", "du", "cut", "basename", "dirname", "realpath"];

/// Programs asked for nothing but their version.
const VERSIONED: [&str; 34] = [
    "cargo", "rustc", "rustup", "node", "npm", "npx", "yarn", "pnpm", "bun", "deno", "tsc", "python",
    "python3", "pip", "pip3", "uv", "go", "java", "javac", "ruby", "gem", "php", "perl", "gcc", "g++",
    "clang", "cmake", "make", "docker", "git", "bash", "rg", "jq", "kubectl",
];
/// The ones of them with `-v`.
const SHORT_VERSIONED: [&str; 12] =
    ["node", "npm", "npx", "pnpm", "bun", "tsc", "ruby", "php", "perl", "gcc", "clang", "make"];
const FIND_FLAGS: [&str; 16] = [
    "-print", "-print0", "-prune", "-empty", "-H", "-P", "-xdev", "-mount", "-depth", "!", "-not", "-o",
    "-or", "-a", "(", ")",
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
pub(super) fn judge(
    argv: &[CommandWord],
    assignments: &[VariableAssignment],
    place: &WorkingFolder,
    wrapped: &WrapperUse,
) -> CommandVerdict {
    let prefix_covered = !wrapped.wraps && !risks::is_risky(argv);
    let effect = match argv.split_first() {
        // A file in the working folder may bear the name of a program that only looks.
        Some((name, arguments)) if name.literal && assignments.iter().all(is_safe) => {
            if wrapped.transparent && !name.text.contains('/') {
                Effect::ReadOnly
            } else if matches!(name.text.as_str(), "cd" | "pushd" | "popd") {
                Effect::ChangeDirectory(destination(argv, place).directory)
            } else if wrapped.wraps {
                Effect::Other
            } else {
                by_name(&name.text, arguments)
            }
        }
        _ if argv.first().is_some_and(|name| matches!(name.text.as_str(), "cd" | "pushd" | "popd")) => {
            Effect::ChangeDirectory(None)
        }
        _ => Effect::Other,
    };
    CommandVerdict { effect, prefix_covered }
}

/// Whether a variable changes nothing but messages and levels of detail.
pub(super) fn is_safe(assignment: &VariableAssignment) -> bool {
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

fn by_name(name: &str, arguments: &[CommandWord]) -> Effect {
    let first = arguments.first().map(|word| word.text.as_str());
    let version = match first {
        Some("--version" | "-V") => VERSIONED.contains(&name),
        Some("-v") => SHORT_VERSIONED.contains(&name),
        _ => false,
    };
    if version && arguments.len() == 1 {
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
        _ => programs::find(name).is_some_and(|program| {
            program.reports == CallEffect::Looks && looks(name, &program.known, arguments)
        }),
    };
    if looks {
        return Effect::ReadOnly;
    }
    let edits = programs::find(name).is_some_and(|program| {
        let split = program.known.split(arguments);
        program.reports == CallEffect::Edits && split.known && split.operands.iter().all(|word| word.literal)
    });
    if edits { Effect::FileEdit } else { Effect::Other }
}

fn looks(name: &str, known: &OptionTable, arguments: &[CommandWord]) -> bool {
    let open = HARMLESS.contains(&name);
    let plain: Vec<CommandWord> = arguments.iter().filter(|word| !(open && word.open)).cloned().collect();
    let split = known.split(&plain);
    split.known
        && match name {
            // The second file of `uniq` is written.
            "uniq" | "xxd" => split.operands.len() <= 1 && split.operands.iter().all(|word| word.literal),
            // Recursion and following links together lead anywhere.
            "ls" => !split.has(&["-L"]) || !split.has(&["-R", "--recursive"]),
            // More options may be in a file.
            "strings" => !split.operands.iter().any(|word| word.text.starts_with('@')),
            "jq" => is_plain_filter(&split),
            "hostname" => split.operands.is_empty(),
            // `ps e` shows the variables of other programs.
            "ps" => split.operands.iter().all(|word| {
                word.literal && word.text.bytes().all(|byte| b"aAuxwfljsr0123456789,".contains(&byte))
            }),
            // Without a format, `date` sets the clock.
            "date" => split.operands.iter().all(|word| word.text.starts_with('+')),
            _ => true,
        }
}

/// Whether a filter of `jq` neither shows variables nor reads files of its own.
fn is_plain_filter(split: &SplitArguments<'_>) -> bool {
    const SHADY: [&str; 5] = ["env", "import", "include", "debug", "modulemeta"];
    !split.has(&["-f", "--from-file"])
        && split.operands.first().is_some_and(|filter| {
            let text = filter.text.to_ascii_lowercase();
            filter.literal && !SHADY.iter().any(|word| text.contains(word))
        })
}

fn finds(arguments: &[CommandWord]) -> bool {
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
