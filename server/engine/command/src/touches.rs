//! Which files a command reads and changes, as far as its text tells.
//!
//! Rule: a path is known only when no link on the way could make its text lie; for a program listed here, no
//! operand is left out.

use super::options::SplitArguments;
use super::programs::{self, OperandUse, ProgramFacts, Recursion};
use super::wrappers::program;
use super::{CommandWord, FileAccess, FileTouch};

pub(crate) use crate::place::{WorkingFolder, is_harmless, locate};

/// The findings, and where relative files lie.
struct TouchFinder<'a> {
    place: &'a WorkingFolder,
    found: Vec<FileTouch>,
}

impl TouchFinder<'_> {
    fn touch(&mut self, access: FileAccess, word: &CommandWord, recursive: bool) {
        if !is_harmless(&word.text) && word.text != "-" {
            let path = locate(word, self.place);
            self.found.push(FileTouch { access, path, redirected: false, recursive });
        }
    }

    fn read(&mut self, word: &CommandWord) {
        self.touch(FileAccess::Read, word, false);
    }

    fn write(&mut self, word: &CommandWord) {
        self.touch(FileAccess::Write, word, false);
    }
}

/// The files among the arguments of a program that is known.
pub(super) fn by_operands(argv: &[CommandWord], place: &WorkingFolder) -> Vec<FileTouch> {
    let Some((name, arguments)) = argv.split_first() else { return Vec::new() };
    let name = program(name);
    if name == "git" {
        return super::git::touches(arguments, place);
    }
    let mut finder = TouchFinder { place, found: Vec::new() };
    match name {
        "find" => find(arguments, &mut finder),
        "fd" | "fdfind" => {
            let roots = arguments.iter().filter(|word| !word.text.starts_with('-')).skip(1);
            roots
                .chain([&CommandWord::literal(".")])
                .for_each(|root| finder.touch(FileAccess::Read, root, true));
        }
        "dd" => {
            for word in arguments {
                if let Some(file) = word.text.strip_prefix("of=") {
                    finder.write(&part(word, file));
                } else if let Some(file) = word.text.strip_prefix("if=") {
                    finder.read(&part(word, file));
                }
            }
        }
        "openssl" => {
            for pair in arguments.windows(2) {
                match pair[0].text.as_str() {
                    "-out" | "-keyout" => finder.write(&pair[1]),
                    "-in" | "-inkey" | "-key" | "-cert" | "-CAfile" | "-config" | "-kfile" => {
                        finder.read(&pair[1]);
                    }
                    _ => {}
                }
            }
        }
        "tar" | "bsdtar" => {
            if let Some(program) = programs::find(name) {
                by_table(name, program, &dashed(arguments), &mut finder);
            }
        }
        _ => {
            if let Some(program) = programs::find(name) {
                by_table(name, program, arguments, &mut finder);
            }
        }
    }
    finder.found
}

/// A part of a word.
fn part(word: &CommandWord, text: &str) -> CommandWord {
    CommandWord { text: text.to_owned(), ..word.clone() }
}

fn find(arguments: &[CommandWord], finder: &mut TouchFinder<'_>) {
    let skips = |word: &&CommandWord| {
        matches!(word.text.as_str(), "-L" | "-P" | "-H" | "-D") || word.text.starts_with("-O")
    };
    let roots: Vec<&CommandWord> = arguments
        .iter()
        .skip_while(skips)
        .take_while(|word| !word.text.starts_with(['-', '(', '!']))
        .collect();
    let writes = arguments.iter().any(|word| word.text == "-delete");
    let access = if writes { FileAccess::Write } else { FileAccess::Read };
    roots.iter().for_each(|root| finder.touch(access, root, true));
    if roots.is_empty() {
        finder.touch(access, &CommandWord::literal("."), true);
    }
    for pair in arguments.windows(2) {
        match pair[0].text.as_str() {
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => finder.write(&pair[1]),
            "-files0-from" | "-samefile" | "-anewer" | "-cnewer" => finder.read(&pair[1]),
            option if option.starts_with("-newer") => finder.read(&pair[1]),
            _ => {}
        }
    }
}

/// The letters of `tar xfC a.tar dir` as options, each with its value.
fn dashed(arguments: &[CommandWord]) -> Vec<CommandWord> {
    let Some((letters, rest)) = arguments.split_first() else { return Vec::new() };
    if letters.text.starts_with('-') || !letters.literal {
        return arguments.to_vec();
    }
    let mut rest = rest.iter().cloned();
    let mut made = Vec::new();
    for letter in letters.text.chars() {
        made.push(CommandWord::literal(format!("-{letter}")));
        if "fCXTIgbVKNLFH".contains(letter) {
            made.extend(rest.next());
        }
    }
    made.extend(rest);
    made
}

fn by_table(name: &str, program: &ProgramFacts, arguments: &[CommandWord], finder: &mut TouchFinder<'_>) {
    let split = program.known.split(arguments);
    split.files.iter().for_each(|(access, file)| finder.touch(*access, file, false));
    let recursive = match program.recursive {
        Recursion::Never => false,
        Recursion::Always => true,
        Recursion::With(options) => split.may_have(options),
    };
    let here = CommandWord::literal(".");
    // Where an option is not known, its value could stand where the first operand would.
    let after = |skipped: usize| if split.doubtful { 0 } else { skipped };
    let from = |first: usize| split.operands.get(first..).unwrap_or_default();
    match program.operands {
        OperandUse::None => {
            if split.doubtful {
                from(0).iter().for_each(|word| finder.read(word));
            }
        }
        OperandUse::Read { here: default } => {
            read_all(from(0), default, recursive, finder);
            // Options may be in a file that `strings` is given.
            for word in from(0).iter().filter(|_| name == "strings") {
                word.text.strip_prefix('@').into_iter().for_each(|file| finder.read(&part(word, file)));
            }
        }
        OperandUse::ReadAfter { options, here } => {
            let first = after(usize::from(!split.has(options)));
            read_all(from(first), here || recursive, recursive, finder);
        }
        OperandUse::Write | OperandUse::Move => {
            from(0).iter().for_each(|word| finder.touch(FileAccess::Write, word, recursive));
        }
        OperandUse::WriteAfter => {
            let first = after(usize::from(!split.may_have(&["--reference"])));
            from(first).iter().for_each(|word| finder.touch(FileAccess::Write, word, recursive));
        }
        OperandUse::Both => {
            for word in from(0) {
                finder.touch(FileAccess::Read, word, recursive);
                finder.touch(FileAccess::Write, word, recursive);
            }
        }
        OperandUse::Copy => copies(name, from(0), recursive, finder),
        OperandUse::ReadThenWrite => {
            for (at, word) in from(0).iter().enumerate() {
                let reads = at == 0 || split.doubtful;
                finder.touch(if reads { FileAccess::Read } else { FileAccess::Write }, word, false);
                if at > 0 && reads {
                    finder.write(word);
                }
            }
        }
        OperandUse::WriteThenRead => {
            for (at, word) in from(0).iter().enumerate() {
                finder.touch(if at == 0 { FileAccess::Write } else { FileAccess::Read }, word, recursive);
            }
        }
        OperandUse::UnpackFirst => {
            from(0).iter().take(1).for_each(|word| finder.read(word));
            let folder = split.files.iter().find(|(access, _)| *access == FileAccess::Write);
            finder.touch(FileAccess::Write, folder.map_or(&here, |(_, folder)| folder), true);
        }
        OperandUse::Patch => match from(0) {
            [] => finder.touch(FileAccess::Write, &here, true),
            [first, rest @ ..] => {
                finder.write(first);
                rest.iter().for_each(|word| finder.read(word));
            }
        },
        OperandUse::Fetch => fetches(name, &split, finder),
        OperandUse::Archive => archives(&split, finder),
    }
    let in_place = split.may_have(&["-i", "--in-place", "--inplace"]);
    if in_place && matches!(name, "sed" | "gsed" | "perl" | "ruby" | "yq") {
        from(0).iter().for_each(|word| finder.write(word));
    }
}

fn read_all(files: &[&CommandWord], here: bool, recursive: bool, finder: &mut TouchFinder<'_>) {
    files.iter().for_each(|word| finder.touch(FileAccess::Read, word, recursive));
    if files.is_empty() && here {
        finder.touch(FileAccess::Read, &CommandWord::literal("."), recursive);
    }
}

fn copies(name: &str, operands: &[&CommandWord], recursive: bool, finder: &mut TouchFinder<'_>) {
    for (at, word) in operands.iter().enumerate() {
        let last = at + 1 == operands.len();
        finder.touch(if last { FileAccess::Write } else { FileAccess::Read }, word, recursive);
        if !last && matches!(name, "ln" | "install") {
            finder.write(word);
        }
    }
}

/// The data that `curl` and `wget` send and keep.
fn fetches(name: &str, split: &SplitArguments<'_>, finder: &mut TouchFinder<'_>) {
    for (_, value) in &split.options {
        // `-d @file`, `-F field=@file` and `-F field=<file` send a file.
        let sent = value.as_deref().and_then(|value| value.split_once(['@', '<']));
        sent.into_iter().for_each(|(_, file)| finder.read(&CommandWord::literal(file)));
    }
    for operand in &split.operands {
        let file = operand.text.strip_prefix("file://");
        file.into_iter().for_each(|file| finder.read(&part(operand, file)));
        if split.doubtful {
            finder.read(operand);
        }
    }
    let named = split.has(&["-o", "--output", "--output-document"]) || name == "wget" && split.has(&["-O"]);
    if !named && (name == "wget" || split.may_have(&["-O", "-J", "--remote-name", "--remote-name-all"])) {
        finder.write(&CommandWord::literal("."));
    }
}

fn archives(split: &SplitArguments<'_>, finder: &mut TouchFinder<'_>) {
    let packs = split.may_have(&["-c", "-r", "-u", "-A", "--create", "--append", "--update"]);
    let unpacks = split.may_have(&["-x", "--extract", "--get"]);
    let mut folders = 0;
    for (option, value) in &split.options {
        let Some(value) = value.as_ref().map(CommandWord::literal) else { continue };
        match option.as_str() {
            "-f" | "--file" => {
                finder.touch(if packs { FileAccess::Write } else { FileAccess::Read }, &value, false)
            }
            "-C" | "--directory" | "--one-top-level" => {
                folders += 1;
                finder.touch(if unpacks { FileAccess::Write } else { FileAccess::Read }, &value, true);
            }
            _ => {}
        }
    }
    if unpacks && folders == 0 {
        finder.touch(FileAccess::Write, &CommandWord::literal("."), true);
    }
    for operand in split.operands.iter().filter(|_| packs || split.doubtful) {
        finder.touch(FileAccess::Read, operand, true);
    }
}
