//! Arguments split into options and operands, the way getopt does.
//!
//! Rule: only options that are listed are treated as known; one that is not listed is reported, never skipped, and
//! what could be its value is treated as a file.

use super::{CommandWord, FileAccess};

/// The options a program knows. A letter or long name may be followed by a mark of what it takes: `:` (letters) or
/// `=` (names) a text, `%` a number, `?` a text in the same argument, `<` a file to read, `>` a file to write,
/// `@` a file that names others. A `#` among the letters represents numbers such as `-5`.
#[derive(Clone, Copy, Debug)]
pub(super) struct OptionTable {
    pub short: &'static str,
    pub long: &'static [&'static str],
}

/// Arguments after the program's name, split.
#[derive(Debug, Default)]
pub(super) struct SplitArguments<'a> {
    /// Options with their values: `-n` or `--lines`.
    pub options: Vec<(String, Option<String>)>,
    /// The rest, in order.
    pub operands: Vec<&'a CommandWord>,
    /// Values that are files, or could be.
    pub files: Vec<(FileAccess, CommandWord)>,
    /// Whether each argument was understood: no option that is not listed, and none that could become one, and
    /// none that writes a file.
    pub known: bool,
    /// Whether some option is not listed or not plain, so that any operand may be its value.
    pub doubtful: bool,
}

/// The argument of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OptionValue {
    Nothing,
    Text,
    Attached,
    Number,
    Read,
    Write,
    Names,
}

const MARKS: [char; 7] = [':', '=', '%', '?', '<', '>', '@'];

impl SplitArguments<'_> {
    /// Whether one of these options is given.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|(name, _)| names.contains(&name.as_str()))
    }

    /// Whether one of these options is given, or a long one that could be short for one of them.
    pub(super) fn may_have(&self, names: &[&str]) -> bool {
        let short_for =
            |name: &str| name.starts_with("--") && names.iter().any(|wanted| wanted.starts_with(name));
        self.has(names) || self.options.iter().any(|(name, _)| short_for(name))
    }

    fn doubt(&mut self) {
        self.known = false;
        self.doubtful = true;
    }

    /// Notes the value of an option.
    fn value(&mut self, takes: Option<OptionValue>, value: &CommandWord, apart: bool) {
        // Separate text could become several arguments.
        if value.open && (apart || !is_plain_pattern(&value.text)) {
            self.doubt();
        }
        match takes {
            Some(OptionValue::Nothing | OptionValue::Text | OptionValue::Attached) if !value.open => {}
            Some(OptionValue::Number) if value.literal && is_number(&value.text) => {}
            Some(OptionValue::Read) => self.files.push((FileAccess::Read, value.clone())),
            Some(OptionValue::Names) => {
                self.known = false;
                self.files.push((FileAccess::Read, value.clone()));
            }
            Some(OptionValue::Write) => {
                self.known = false;
                self.files.push((FileAccess::Write, value.clone()));
            }
            // Patterns in the same argument as their option are not matched against files.
            _ if !apart && !value.literal && is_plain_pattern(&value.text) => {}
            Some(OptionValue::Nothing | OptionValue::Text | OptionValue::Attached | OptionValue::Number)
            | None => {
                self.doubt();
                self.files.push((FileAccess::Read, value.clone()));
            }
        }
    }
}

impl OptionTable {
    fn long(&self, name: &str) -> Option<OptionValue> {
        self.long.iter().find(|known| bare(known) == name).map(|known| mark(known.chars().last()))
    }

    /// Whether a name that is not listed could be short for an option that writes a file.
    fn may_write(&self, name: &str) -> bool {
        self.long.iter().any(|known| known.ends_with('>') && bare(known).starts_with(name))
    }

    fn short(&self, letter: char) -> Option<OptionValue> {
        let at = self.short.find(letter).filter(|_| !MARKS.contains(&letter) && letter != '#')?;
        Some(mark(self.short[at + letter.len_utf8()..].chars().next()))
    }

    /// Splits arguments. Options may stand among the operands, until `--`.
    pub(super) fn split<'a>(&self, arguments: &'a [CommandWord]) -> SplitArguments<'a> {
        let mut split = SplitArguments { known: true, ..SplitArguments::default() };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            if word.open && !is_named_pattern(&word.text) {
                split.doubt();
                split.operands.push(word);
            } else if word.text == "--" {
                split.operands.extend(words.by_ref());
            } else if let Some(long) = word.text.strip_prefix("--") {
                self.long_option(long, word, &mut words, &mut split);
            } else if word.text.len() > 1 && word.text.starts_with('-') {
                self.letters(word, &mut words, &mut split);
            } else {
                // `"-o$X"` is an option, whatever its quotes.
                if !word.literal && word.text.trim_start_matches(['"', '\'', '\\']).starts_with('-') {
                    split.doubt();
                }
                split.operands.push(word);
            }
        }
        split
    }

    fn long_option<'a>(
        &self,
        long: &str,
        word: &CommandWord,
        words: &mut std::slice::Iter<'a, CommandWord>,
        split: &mut SplitArguments<'a>,
    ) {
        let (name, attached) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        let takes = self.long(name);
        let writes = takes.is_none() && self.may_write(name);
        if takes.is_none() {
            split.doubt();
        }
        let value = match (attached, takes) {
            (Some(value), _) => {
                Some(CommandWord { text: value.to_owned(), literal: word.literal, open: word.open })
            }
            (None, None | Some(OptionValue::Nothing | OptionValue::Attached)) => None,
            (None, Some(_)) => words.next().cloned(),
        };
        if let Some(value) = &value {
            split.value(takes, value, attached.is_none());
        }
        // A text that may be short for an option that writes: its value is here or next.
        let written = value.as_ref().or_else(|| words.as_slice().first());
        split.files.extend(written.filter(|_| writes).map(|file| (FileAccess::Write, file.clone())));
        split.options.push((format!("--{name}"), value.map(|value| value.text)));
    }

    fn letters<'a>(
        &self,
        word: &CommandWord,
        words: &mut std::slice::Iter<'a, CommandWord>,
        split: &mut SplitArguments<'a>,
    ) {
        let letters = &word.text[1..];
        // `-5` as in `head -5`.
        if self.short.contains('#') && letters.bytes().all(|byte| byte.is_ascii_digit()) {
            return;
        }
        for (at, letter) in letters.char_indices() {
            let takes = self.short(letter);
            let rest = &letters[at + letter.len_utf8()..];
            let attached = || CommandWord { text: rest.to_owned(), literal: word.literal, open: word.open };
            let name = format!("-{letter}");
            match takes {
                None => {
                    split.doubt();
                    if !rest.is_empty() {
                        split.files.push((FileAccess::Read, attached()));
                    }
                    split.options.push((name, None));
                }
                Some(OptionValue::Nothing) => split.options.push((name, None)),
                Some(_) => {
                    let next = rest.is_empty() && takes != Some(OptionValue::Attached);
                    let value = if next { words.next().cloned() } else { Some(attached()) };
                    if let Some(value) = &value {
                        split.value(takes, value, next);
                    }
                    split.options.push((name, value.map(|value| value.text)));
                    return;
                }
            }
        }
    }
}

fn bare(known: &str) -> &str {
    known.trim_end_matches(MARKS)
}

fn mark(mark: Option<char>) -> OptionValue {
    match mark {
        Some(':' | '=') => OptionValue::Text,
        Some('%') => OptionValue::Number,
        Some('?') => OptionValue::Attached,
        Some('<') => OptionValue::Read,
        Some('>') => OptionValue::Write,
        Some('@') => OptionValue::Names,
        _ => OptionValue::Nothing,
    }
}

/// `20`, `+5`, `-1`, `0.5`, `10K`: what no file is called whose name matters.
fn is_number(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-']);
    let unit = digits.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    digits.starts_with(|c: char| c.is_ascii_digit())
        && unit.len() <= 3
        && unit.bytes().all(|b| b.is_ascii_alphabetic())
}

/// Whether a word that expands stays one option, such as `--include=*.rs`.
fn is_named_pattern(text: &str) -> bool {
    text.strip_prefix("--").and_then(|option| option.split_once('=')).is_some_and(|(name, value)| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
            && is_plain_pattern(value)
    })
}

/// Whether only file names replace this text.
fn is_plain_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[']) && !text.contains(['$', '`', '{', '~', '<', '>', '(', '\\'])
}
