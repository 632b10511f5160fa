//! The scripts of `sed` that only print.
//!
//! Rule: an allow-list; every other script may write files or run programs.

use crate::CommandWord;

/// Whether a `sed` does nothing but print lines by their numbers.
pub(crate) fn prints(arguments: &[CommandWord]) -> bool {
    let (quiet, script, files) = match arguments {
        [quiet, option, script, files @ ..] if option.text == "-e" => (quiet, script, files),
        [quiet, script, files @ ..] => (quiet, script, files),
        _ => return false,
    };
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
