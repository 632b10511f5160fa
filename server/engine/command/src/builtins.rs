//! Builtins of the shell that change what later commands mean, or run text as commands.
//!
//! Rule: no line that uses one counts as understood, whatever its arguments.

use super::CommandWord;

/// Builtins that make later commands mean something else, or run what cannot be seen.
const SHADY: [&str; 38] = [
    "eval",
    "source",
    ".",
    "exec",
    "trap",
    "export",
    "declare",
    "typeset",
    "local",
    "readonly",
    "read",
    "mapfile",
    "readarray",
    "enable",
    "hash",
    "unset",
    "set",
    "shopt",
    "complete",
    "compgen",
    "compopt",
    "bind",
    "alias",
    "unalias",
    "let",
    "getopts",
    "wait",
    "fc",
    "history",
    "pushd",
    "popd",
    "dirs",
    "coproc",
    "function",
    "select",
    "case",
    "[[",
    "suspend",
];
const UNARY: [&str; 20] = [
    "-a", "-b", "-c", "-d", "-e", "-f", "-g", "-h", "-k", "-n", "-p", "-r", "-s", "-t", "-u", "-w", "-x",
    "-z", "-L", "-G",
];
const BINARY: [&str; 16] =
    ["=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef", "<", ">", "-a", "-o"];

/// Why a command is not understood, if it is one of these builtins.
pub(super) fn objection(argv: &[CommandWord]) -> Option<String> {
    let (name, arguments) = argv.split_first()?;
    let name = name.text.as_str();
    match name {
        "set" if is_plain_set(arguments) => None,
        _ if SHADY.contains(&name) => {
            Some(format!("`{name}` changes what other commands mean, or runs text"))
        }
        "printf" => {
            let odd = arguments.first().is_some_and(|first| first.open || first.text.starts_with("-v"));
            odd.then(|| "`printf` may set a variable".to_owned())
        }
        "test" | "[" => {
            let operands = match arguments.split_last() {
                Some((last, rest)) if name == "[" && last.text == "]" => rest,
                _ => arguments,
            };
            (!is_plain_test(operands)).then(|| "a test of this kind can run commands".to_owned())
        }
        "cd" => {
            let odd = arguments.iter().any(|word| word.text.starts_with('-') && word.text.len() > 1);
            odd.then(|| "`cd` has options".to_owned())
        }
        _ => None,
    }
}

/// Whether a `set` does nothing but make the script end sooner.
pub(super) fn is_plain_set(arguments: &[CommandWord]) -> bool {
    const LETTERS: [&str; 9] = ["-e", "-u", "-eu", "-ue", "+e", "+u", "-o", "-eo", "-euo"];
    const NAMES: [&str; 3] = ["pipefail", "errexit", "nounset"];
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        let named = text.ends_with('o');
        let known = LETTERS.contains(&text)
            && (!named || words.next().is_some_and(|name| NAMES.contains(&name.text.as_str())));
        if !known {
            return false;
        }
    }
    !arguments.is_empty()
}

/// Whether what such a builtin runs does not show in its text.
pub(super) fn is_opaque(argv: &[CommandWord]) -> bool {
    let name = argv.first().map_or("", |name| name.text.as_str());
    match name {
        "source" | "." | "eval" | "exec" | "trap" => argv.iter().any(|word| !word.literal),
        _ => false,
    }
}

fn is_plain_test(operands: &[CommandWord]) -> bool {
    let operator = |word: &CommandWord, among: &[&str]| word.literal && among.contains(&word.text.as_str());
    let value = |word: &CommandWord| word.literal || !splits(word);
    match operands {
        [not, rest @ ..] if not.text == "!" && not.literal && !rest.is_empty() => is_plain_test(rest),
        [] => true,
        [one] => value(one),
        [unary, one] => operator(unary, &UNARY) && value(one),
        [left, binary, right] => value(left) && value(right) && operator(binary, &BINARY),
        many => many.iter().all(|word| word.literal && !matches!(word.text.as_str(), "-v" | "-R" | "-o")),
    }
}

/// Whether a word could become several: text in double quotes does not.
fn splits(word: &CommandWord) -> bool {
    !(word.text.len() > 1
        && word.text.starts_with('"')
        && word.text.ends_with('"')
        && !word.text.contains('@'))
}
