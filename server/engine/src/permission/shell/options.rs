//! Arguments split into options and operands, the way getopt does.
//!
//! Rule: only options that are listed are taken for known; one that is not listed is reported, never skipped.

use super::Word;

/// The options a program knows: letters (`n:` takes a value) and long names (`lines=` takes a value).
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub short: &'static str,
    pub long: &'static [&'static str],
}

/// Arguments after the program's name, split.
#[derive(Debug, Default)]
pub(super) struct Split<'a> {
    /// Options with their values: `-n` or `--lines`.
    pub options: Vec<(String, Option<String>)>,
    /// The rest, in order.
    pub operands: Vec<&'a Word>,
    /// Whether each argument was understood: no option that is not listed, and none that could become one.
    pub known: bool,
}

impl Split<'_> {
    /// Whether one of these options is given.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|(name, _)| names.contains(&name.as_str()))
    }
}

impl Known {
    fn long(&self, name: &str) -> Option<bool> {
        self.long.iter().find_map(|known| match known.strip_suffix('=') {
            Some(known) if known == name => Some(true),
            None if *known == name => Some(false),
            _ => None,
        })
    }

    fn short(&self, letter: char) -> Option<bool> {
        let at = self.short.find(letter).filter(|_| letter != ':')?;
        Some(self.short[at + letter.len_utf8()..].starts_with(':'))
    }

    /// Splits arguments. Options may stand among the operands, until `--`.
    pub(super) fn split<'a>(&self, arguments: &'a [Word]) -> Split<'a> {
        let mut split = Split { known: true, ..Split::default() };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            if word.open {
                split.known = false;
                split.operands.push(word);
            } else if word.text == "--" {
                split.operands.extend(words.by_ref());
            } else if let Some(long) = word.text.strip_prefix("--") {
                let (name, value) =
                    long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                let wants = self.long(name);
                split.known &= wants.is_some();
                let value = match (value, wants) {
                    (None, Some(true)) => words.next().map(|value| value.text.clone()),
                    (value, _) => value.map(str::to_owned),
                };
                split.options.push((format!("--{name}"), value));
            } else if word.text.len() > 1 && word.text.starts_with('-') {
                self.letters(&word.text[1..], &mut words, &mut split);
            } else {
                split.operands.push(word);
            }
        }
        split
    }

    fn letters<'a>(&self, letters: &str, words: &mut std::slice::Iter<'a, Word>, split: &mut Split<'a>) {
        // `-5` as in `head -5`.
        if self.short.contains('#') && letters.bytes().all(|byte| byte.is_ascii_digit()) {
            return;
        }
        for (at, letter) in letters.char_indices() {
            let wants = self.short(letter);
            split.known &= wants.is_some();
            let rest = &letters[at + letter.len_utf8()..];
            if wants == Some(true) {
                let value = if rest.is_empty() {
                    words.next().map(|word| word.text.clone())
                } else {
                    Some(rest.to_owned())
                };
                split.options.push((format!("-{letter}"), value));
                return;
            }
            split.options.push((format!("-{letter}"), None));
        }
    }
}
