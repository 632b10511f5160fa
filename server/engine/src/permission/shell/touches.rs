//! Which files a command reads and changes, as far as its text tells.
//!
//! Rule: a path is known only when no link on the way could make its text lie; for a program listed here, no
//! operand is left out.

use std::path::{Component, Path};

use super::options::Known;
use super::walk::Place;
use super::wrappers::program;
use super::{Access, FileTouch, TouchedPath, Word};

/// Files that stand for the command's own input and output.
pub(super) fn is_harmless(path: &str) -> bool {
    matches!(path, "/dev/null" | "/dev/stdin" | "/dev/stdout" | "/dev/stderr")
}

/// The file an operand means to a command that runs in `place`.
pub(super) fn locate(word: &Word, place: &Place) -> TouchedPath {
    known(word, place).unwrap_or_else(|| TouchedPath::Unknown(word.text.clone()))
}

fn known(word: &Word, place: &Place) -> Option<TouchedPath> {
    if !word.literal || word.text.is_empty() {
        return None;
    }
    let path = Path::new(&word.text);
    let directory = match &place.directory {
        Some(directory) => directory.clone(),
        None if path.is_absolute() => crate::paths::AbsPath::new("/").ok()?,
        None => return None,
    };
    // `link/..` is the parent of what the link leads to, and not what the text says.
    let mut by_name = !path.is_absolute() && place.by_name;
    for component in path.components() {
        match component {
            Component::Normal(_) => by_name = true,
            Component::ParentDir if by_name => return None,
            Component::ParentDir | Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Some(TouchedPath::Known(directory.join(path)))
}

/// How a program's operands are used.
enum Use {
    /// All are read; none means the folder it runs in, where that is `true`.
    Reads { here: bool },
    /// The first is no file, unless one of the options gave it; the rest as above.
    ReadsAfter { options: &'static [&'static str], here: bool },
    /// All are written.
    Writes,
    /// All but the last are read, the last is written.
    Copies,
    /// All are written: what is moved is gone.
    Moves,
    /// The first is no file, the rest are written.
    WritesAfter,
}

fn usage(name: &str) -> Option<(Use, Known)> {
    let known = |short| Known { short, long: &[] };
    Some(match name {
        "cat" | "less" | "more" | "wc" | "diff" | "cmp" | "comm" | "nl" | "tac" | "rev" | "od"
        | "hexdump" | "strings" | "md5sum" | "sha1sum" | "sha256sum" | "file" | "readlink" | "realpath"
        | "stat" | "cut" | "paste" | "fold" | "column" | "base64" | "zcat" | "bat" | "source" | "." => {
            (Use::Reads { here: false }, known("d:f:c:w:s:b:t:n"))
        }
        "head" | "tail" => (Use::Reads { here: false }, known("#n:c:s:qvzfF")),
        "ls" | "du" | "tree" | "exa" => (Use::Reads { here: true }, known("I:w:T:d:")),
        "grep" | "egrep" | "fgrep" => (
            Use::ReadsAfter { options: &["-e", "-f", "--regexp", "--file"], here: false },
            known("#e:f:A:B:C:m:d:D:rRinHhlLcvwxoqsEFPzab"),
        ),
        "rg" | "ag" => (
            Use::ReadsAfter { options: &["-e", "-f", "--files", "--regexp"], here: true },
            known("e:f:A:B:C:m:g:t:T:j:M:d:r:"),
        ),
        "sed" | "gsed" => (
            Use::ReadsAfter { options: &["-e", "-f", "--expression", "--file"], here: false },
            known("e:f:l:nrEzsu"),
        ),
        "awk" | "jq" => (Use::ReadsAfter { options: &["-f"], here: false }, known("f:F:v:L:")),
        "sort" | "uniq" => (Use::Reads { here: false }, known("k:t:o:S:T:f:s:w:")),
        "tee" | "rm" | "rmdir" | "unlink" | "shred" => (Use::Writes, known("n:s:")),
        "mkdir" => (Use::Writes, known("m:")),
        "touch" => (Use::Writes, known("d:t:r:")),
        "truncate" => (Use::Writes, known("s:r:")),
        "mv" => (Use::Moves, known("t:S:")),
        "cp" | "install" | "ln" => (Use::Copies, known("t:S:m:o:g:")),
        "chmod" | "chown" | "chgrp" => (Use::WritesAfter, known("")),
        _ => return None,
    })
}

/// Values of long options that stand apart and are no files would be taken for operands; they are harmless there.
pub(super) fn by_operands(argv: &[Word], place: &Place) -> Vec<FileTouch> {
    let Some((name, arguments)) = argv.split_first() else { return Vec::new() };
    let name = program(name);
    if name == "git" {
        return super::git::touches(arguments, place);
    }
    let here = Word::literal(".");
    let mut found = Vec::new();
    let mut touch = |access, word: &Word| {
        if !is_harmless(&word.text) && word.text != "-" {
            found.push(FileTouch { access, path: locate(word, place), redirected: false, recursive: false });
        }
    };
    if name == "find" || name == "fd" {
        let roots = arguments.iter().skip_while(|word| matches!(word.text.as_str(), "-L" | "-P" | "-H"));
        let roots: Vec<_> =
            roots.take_while(|word| name == "find" && !word.text.starts_with(['-', '(', '!'])).collect();
        let writes = arguments.iter().any(|word| word.text == "-delete");
        let access = if writes { Access::Write } else { Access::Read };
        roots.iter().for_each(|root| touch(access, root));
        if roots.is_empty() {
            touch(access, &here);
        }
        for pair in arguments.windows(2) {
            match pair[0].text.as_str() {
                "-fprint" | "-fprint0" | "-fls" | "-fprintf" => touch(Access::Write, &pair[1]),
                "-newer" | "-files0-from" | "-samefile" => touch(Access::Read, &pair[1]),
                _ => {}
            }
        }
        return found;
    }
    if name == "dd" {
        for word in arguments {
            let apart = |rest: &str| Word { text: rest.to_owned(), ..word.clone() };
            if let Some(file) = word.text.strip_prefix("of=") {
                touch(Access::Write, &apart(file));
            } else if let Some(file) = word.text.strip_prefix("if=") {
                touch(Access::Read, &apart(file));
            }
        }
        return found;
    }
    let Some((usage, known)) = usage(name) else { return found };
    let split = known.split(arguments);
    for (option, value) in &split.options {
        let Some(value) = value else { continue };
        let word = Word::literal(value.clone());
        match (name, option.as_str()) {
            ("sort", "-o" | "--output") => touch(Access::Write, &word),
            ("mv" | "cp" | "install" | "ln", "-t" | "--target-directory") => touch(Access::Write, &word),
            ("grep" | "egrep" | "fgrep" | "rg" | "sed" | "awk", "-f" | "--file") => {
                touch(Access::Read, &word)
            }
            ("touch" | "truncate", "-r" | "--reference") => touch(Access::Read, &word),
            _ => {}
        }
    }
    let operands = &split.operands;
    let recursive = name != "ls" && split.has(&["-r", "-R", "--recursive", "--dereference-recursive"]);
    let (first, access) = match &usage {
        Use::Reads { .. } => (0, Access::Read),
        Use::ReadsAfter { options, .. } => (usize::from(!split.has(options)), Access::Read),
        Use::Writes | Use::Moves => (0, Access::Write),
        Use::WritesAfter => (1, Access::Write),
        Use::Copies => (0, Access::Read),
    };
    let files = operands.get(first..).unwrap_or_default();
    let in_place =
        split.options.iter().any(|(name, _)| name.starts_with("-i") || name.starts_with("--in-place"));
    let access = if name.ends_with("sed") && in_place { Access::Write } else { access };
    for (at, file) in files.iter().enumerate() {
        let last = at + 1 == files.len();
        let written = matches!(usage, Use::Copies) && last || name == "uniq" && at == 1;
        touch(if written { Access::Write } else { access }, file);
        if name == "ln" || name == "install" {
            touch(Access::Write, file);
        }
    }
    let here_when_none = match usage {
        Use::Reads { here } | Use::ReadsAfter { here, .. } => here || recursive,
        Use::Writes | Use::Copies | Use::Moves | Use::WritesAfter => false,
    };
    if files.is_empty() && here_when_none {
        touch(Access::Read, &here);
    }
    found
}
