//! Which files a command reads and changes, as far as its text tells.
//!
//! Rule: a path is known only when no link on the way could make its text lie; for a program listed here, no
//! operand is left out.

use super::options::Split;
use super::programs::{self, Operands, Program, Recursive};
use super::wrappers::program;
use super::{Access, FileTouch, Word};

pub(crate) use crate::place::{Place, is_harmless, locate};

/// What is found, and where relative files lie.
struct Finder<'a> {
    place: &'a Place,
    found: Vec<FileTouch>,
}

impl Finder<'_> {
    fn touch(&mut self, access: Access, word: &Word, recursive: bool) {
        if !is_harmless(&word.text) && word.text != "-" {
            let path = locate(word, self.place);
            self.found.push(FileTouch { access, path, redirected: false, recursive });
        }
    }

    fn read(&mut self, word: &Word) {
        self.touch(Access::Read, word, false);
    }

    fn write(&mut self, word: &Word) {
        self.touch(Access::Write, word, false);
    }
}

/// The files among the arguments of a program that is known.
pub(super) fn by_operands(argv: &[Word], place: &Place) -> Vec<FileTouch> {
    let Some((name, arguments)) = argv.split_first() else { return Vec::new() };
    let name = program(name);
    if name == "git" {
        return super::git::touches(arguments, place);
    }
    let mut finder = Finder { place, found: Vec::new() };
    match name {
        "find" => find(arguments, &mut finder),
        "fd" | "fdfind" => {
            let roots = arguments.iter().filter(|word| !word.text.starts_with('-')).skip(1);
            roots.chain([&Word::literal(".")]).for_each(|root| finder.touch(Access::Read, root, true));
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
fn part(word: &Word, text: &str) -> Word {
    Word { text: text.to_owned(), ..word.clone() }
}

fn find(arguments: &[Word], finder: &mut Finder<'_>) {
    let skips =
        |word: &&Word| matches!(word.text.as_str(), "-L" | "-P" | "-H" | "-D") || word.text.starts_with("-O");
    let roots: Vec<&Word> = arguments
        .iter()
        .skip_while(skips)
        .take_while(|word| !word.text.starts_with(['-', '(', '!']))
        .collect();
    let writes = arguments.iter().any(|word| word.text == "-delete");
    let access = if writes { Access::Write } else { Access::Read };
    roots.iter().for_each(|root| finder.touch(access, root, true));
    if roots.is_empty() {
        finder.touch(access, &Word::literal("."), true);
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
fn dashed(arguments: &[Word]) -> Vec<Word> {
    let Some((letters, rest)) = arguments.split_first() else { return Vec::new() };
    if letters.text.starts_with('-') || !letters.literal {
        return arguments.to_vec();
    }
    let mut rest = rest.iter().cloned();
    let mut made = Vec::new();
    for letter in letters.text.chars() {
        made.push(Word::literal(format!("-{letter}")));
        if "fCXTIgbVKNLFH".contains(letter) {
            made.extend(rest.next());
        }
    }
    made.extend(rest);
    made
}

fn by_table(name: &str, program: &Program, arguments: &[Word], finder: &mut Finder<'_>) {
    let split = program.known.split(arguments);
    split.files.iter().for_each(|(access, file)| finder.touch(*access, file, false));
    let recursive = match program.recursive {
        Recursive::Never => false,
        Recursive::Always => true,
        Recursive::With(options) => split.may_have(options),
    };
    let here = Word::literal(".");
    // Where an option is not known, its value could stand where the first operand would.
    let after = |skipped: usize| if split.doubtful { 0 } else { skipped };
    let from = |first: usize| split.operands.get(first..).unwrap_or_default();
    match program.operands {
        Operands::None => {
            if split.doubtful {
                from(0).iter().for_each(|word| finder.read(word));
            }
        }
        Operands::Read { here: default } => {
            read_all(from(0), default, recursive, finder);
            // Options may stand in a file that `strings` is told of.
            for word in from(0).iter().filter(|_| name == "strings") {
                word.text.strip_prefix('@').into_iter().for_each(|file| finder.read(&part(word, file)));
            }
        }
        Operands::ReadAfter { options, here } => {
            let first = after(usize::from(!split.has(options)));
            read_all(from(first), here || recursive, recursive, finder);
        }
        Operands::Write | Operands::Move => {
            from(0).iter().for_each(|word| finder.touch(Access::Write, word, recursive));
        }
        Operands::WriteAfter => {
            let first = after(usize::from(!split.may_have(&["--reference"])));
            from(first).iter().for_each(|word| finder.touch(Access::Write, word, recursive));
        }
        Operands::Both => {
            for word in from(0) {
                finder.touch(Access::Read, word, recursive);
                finder.touch(Access::Write, word, recursive);
            }
        }
        Operands::Copy => copies(name, from(0), recursive, finder),
        Operands::ReadThenWrite => {
            for (at, word) in from(0).iter().enumerate() {
                let reads = at == 0 || split.doubtful;
                finder.touch(if reads { Access::Read } else { Access::Write }, word, false);
                if at > 0 && reads {
                    finder.write(word);
                }
            }
        }
        Operands::WriteThenRead => {
            for (at, word) in from(0).iter().enumerate() {
                finder.touch(if at == 0 { Access::Write } else { Access::Read }, word, recursive);
            }
        }
        Operands::UnpackFirst => {
            from(0).iter().take(1).for_each(|word| finder.read(word));
            let folder = split.files.iter().find(|(access, _)| *access == Access::Write);
            finder.touch(Access::Write, folder.map_or(&here, |(_, folder)| folder), true);
        }
        Operands::Patch => match from(0) {
            [] => finder.touch(Access::Write, &here, true),
            [first, rest @ ..] => {
                finder.write(first);
                rest.iter().for_each(|word| finder.read(word));
            }
        },
        Operands::Fetch => fetches(name, &split, finder),
        Operands::Archive => archives(&split, finder),
    }
    let in_place = split.may_have(&["-i", "--in-place", "--inplace"]);
    if in_place && matches!(name, "sed" | "gsed" | "perl" | "ruby" | "yq") {
        from(0).iter().for_each(|word| finder.write(word));
    }
}

fn read_all(files: &[&Word], here: bool, recursive: bool, finder: &mut Finder<'_>) {
    files.iter().for_each(|word| finder.touch(Access::Read, word, recursive));
    if files.is_empty() && here {
        finder.touch(Access::Read, &Word::literal("."), recursive);
    }
}

fn copies(name: &str, operands: &[&Word], recursive: bool, finder: &mut Finder<'_>) {
    for (at, word) in operands.iter().enumerate() {
        let last = at + 1 == operands.len();
        finder.touch(if last { Access::Write } else { Access::Read }, word, recursive);
        if !last && matches!(name, "ln" | "install") {
            finder.write(word);
        }
    }
}

/// What `curl` and `wget` send and keep.
fn fetches(name: &str, split: &Split<'_>, finder: &mut Finder<'_>) {
    for (_, value) in &split.options {
        // `-d @file`, `-F field=@file` and `-F field=<file` send a file.
        let sent = value.as_deref().and_then(|value| value.split_once(['@', '<']));
        sent.into_iter().for_each(|(_, file)| finder.read(&Word::literal(file)));
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
        finder.write(&Word::literal("."));
    }
}

fn archives(split: &Split<'_>, finder: &mut Finder<'_>) {
    let packs = split.may_have(&["-c", "-r", "-u", "-A", "--create", "--append", "--update"]);
    let unpacks = split.may_have(&["-x", "--extract", "--get"]);
    let mut folders = 0;
    for (option, value) in &split.options {
        let Some(value) = value.as_ref().map(Word::literal) else { continue };
        match option.as_str() {
            "-f" | "--file" => finder.touch(if packs { Access::Write } else { Access::Read }, &value, false),
            "-C" | "--directory" | "--one-top-level" => {
                folders += 1;
                finder.touch(if unpacks { Access::Write } else { Access::Read }, &value, true);
            }
            _ => {}
        }
    }
    if unpacks && folders == 0 {
        finder.touch(Access::Write, &Word::literal("."), true);
    }
    for operand in split.operands.iter().filter(|_| packs || split.doubtful) {
        finder.touch(Access::Read, operand, true);
    }
}
