//! Words of the shell language, read byte by byte: literal text, expansions, and hidden scripts.
//!
//! Rule: whatever is not surely literal or a plain expansion is reported; scripts inside substitutions are handed
//! out, so that they are judged as well.

/// A word unchanged in a script.
#[derive(Clone, Debug, Default)]
pub(super) struct RawWord {
    /// Where it begins and ends, in bytes.
    pub start: usize,
    pub end: usize,
    /// Its text without quotes; for a word that expands, an approximation.
    pub text: String,
    /// Unchanged in the script.
    pub source: String,
    /// Whether a variable, a pattern, braces or a tilde is in it.
    pub expands: bool,
    /// Whether it could become several words or one that begins with `-`.
    pub open: bool,
    /// Whether any of it is quoted.
    pub quoted: bool,
    /// The parts that cannot be judged.
    pub problems: Vec<&'static str>,
    /// Scripts inside substitutions.
    pub scripts: Vec<String>,
    /// The substitutions so plain that all shells agree on where they end; they are among the scripts and no
    /// problem yet.
    pub plain: Vec<PlainSubstitution>,
    /// Where substitutions stand that are only a way to write text, from start to end.
    pub texts: Vec<(usize, usize)>,
}

/// A plain substitution.
#[derive(Clone, Debug)]
pub(super) struct PlainSubstitution {
    pub start: usize,
    pub end: usize,
    pub script: String,
}

pub(super) const SUBSTITUTION: &str = "a command substitution runs a command of its own";
pub(super) const PROCESS: &str = "a process substitution runs a command of its own";
pub(super) const ARITHMETIC: &str = "an arithmetic expression can run commands";
pub(super) const PARAMETER: &str = "a parameter expansion with an operator can run commands";
pub(super) const ANSI_QUOTES: &str = "a control character in `$'...'`, or `$\"...\"`, is not read";
pub(super) const UNCLOSED: &str = "a quote or bracket is not closed";
pub(super) const TILDE: &str = "a tilde names a folder that is not known";
pub(super) const HISTORY: &str = "an exclamation mark can stand for an earlier command";

/// Whether a byte ends an unquoted word.
pub(super) fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}

/// Reads the word that begins at `start`; never empty unless an operator or the end is there.
pub(super) fn word(text: &str, start: usize) -> RawWord {
    let mut lexer =
        Lexer { text, bytes: text.as_bytes(), at: start, bare: Vec::new(), word: RawWord::default() };
    lexer.word.start = start;
    lexer.run();
    lexer.finish()
}

/// Reads text that expands as if in double quotes: the body of a here-document.
pub(super) fn quoted_body(text: &str) -> RawWord {
    let mut lexer = Lexer { text, bytes: text.as_bytes(), at: 0, bare: Vec::new(), word: RawWord::default() };
    while lexer.at < lexer.bytes.len() {
        lexer.quoted_char();
    }
    lexer.word.end = lexer.at;
    lexer.word
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// The unquoted characters, with a NUL for everything quoted or expanded.
    bare: Vec<u8>,
    word: RawWord,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn run(&mut self) {
        while let Some(byte) = self.peek(0) {
            match byte {
                b'<' | b'>' if self.peek(1) == Some(b'(') => {
                    self.word.problems.push(PROCESS);
                    self.script(2);
                }
                _ if ends_word(byte) => break,
                b'\\' => self.backslash(),
                b'\'' => self.single_quotes(),
                b'"' => self.double_quotes(),
                b'`' => self.backquotes(),
                b'$' => self.dollar(false),
                _ => {
                    self.bare.push(byte);
                    self.character();
                }
            }
        }
    }

    fn character(&mut self) {
        let Some(character) = self.text.get(self.at..).and_then(|rest| rest.chars().next()) else {
            self.at += 1;
            return;
        };
        self.word.text.push(character);
        self.at += character.len_utf8();
    }

    fn mark(&mut self) {
        self.bare.push(0);
    }

    fn backslash(&mut self) {
        self.at += 1;
        match self.peek(0) {
            Some(b'\n') => self.at += 1,
            Some(_) => {
                self.word.quoted = true;
                self.mark();
                self.character();
            }
            None => self.word.problems.push(UNCLOSED),
        }
    }

    fn single_quotes(&mut self) {
        self.word.quoted = true;
        self.mark();
        self.at += 1;
        let rest = &self.text[self.at..];
        let length = rest.find('\'').unwrap_or_else(|| {
            self.word.problems.push(UNCLOSED);
            rest.len()
        });
        self.word.text.push_str(&rest[..length]);
        self.at = (self.at + length + 1).min(self.bytes.len());
    }

    fn double_quotes(&mut self) {
        self.word.quoted = true;
        self.mark();
        self.at += 1;
        loop {
            match self.peek(0) {
                None => {
                    self.word.problems.push(UNCLOSED);
                    return;
                }
                Some(b'"') => {
                    self.at += 1;
                    return;
                }
                Some(_) => self.quoted_char(),
            }
        }
    }

    fn quoted_char(&mut self) {
        match self.peek(0) {
            Some(b'\\') => match self.peek(1) {
                Some(b'\n') => self.at += 2,
                Some(b'$' | b'`' | b'"' | b'\\') => {
                    self.at += 1;
                    self.character();
                }
                _ => self.character(),
            },
            Some(b'`') => self.backquotes(),
            Some(b'$') => self.dollar(true),
            _ => self.character(),
        }
    }

    fn backquotes(&mut self) {
        self.word.problems.push(SUBSTITUTION);
        self.mark();
        self.at += 1;
        let mut script = Vec::new();
        loop {
            match self.peek(0) {
                None => {
                    self.word.problems.push(UNCLOSED);
                    break;
                }
                Some(b'`') => {
                    self.at += 1;
                    break;
                }
                Some(b'\\') if matches!(self.peek(1), Some(b'`' | b'\\' | b'$' | b'"')) => {
                    script.extend(self.peek(1));
                    self.at += 2;
                }
                Some(byte) => {
                    script.push(byte);
                    self.at += 1;
                }
            }
        }
        self.word.scripts.push(String::from_utf8_lossy(&script).into_owned());
    }

    fn dollar(&mut self, quoted: bool) {
        match self.peek(1) {
            Some(b'(') if self.peek(2) == Some(b'(') => {
                self.word.problems.push(ARITHMETIC);
                self.script(2);
            }
            Some(b'(') => self.substitution(quoted),
            Some(b'[') => {
                self.word.problems.push(ARITHMETIC);
                self.mark();
                self.at += 2;
            }
            Some(b'{') => self.braced(quoted),
            Some(b'\'') if !quoted => self.ansi_quotes(),
            Some(b'"') if !quoted => {
                self.word.problems.push(ANSI_QUOTES);
                self.at += 1;
            }
            Some(byte) if byte == b'_' || byte.is_ascii_alphabetic() => {
                let name = self.bytes[self.at + 1..].iter().take_while(|byte| is_name(**byte)).count();
                self.expansion(1 + name, quoted);
            }
            Some(b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => self.expansion(2, quoted),
            _ => {
                self.bare.push(b'$');
                self.character();
            }
        }
    }

    fn substitution(&mut self, quoted: bool) {
        let start = self.at;
        let rest = self.text.get(start + 2..).unwrap_or_default();
        if quoted && let Some((document, length)) = quoted_document(rest) {
            self.word.text.push_str(document.trim_end_matches('\n'));
            self.at = start + 2 + length;
            self.word.texts.push((start, self.at));
            return;
        }
        let length = plain_script(rest);
        if length.is_none() {
            self.word.problems.push(SUBSTITUTION);
        }
        let first = self.word.text.is_empty();
        self.script(2);
        if let Some(length) = length {
            let script = rest[..length].to_owned();
            // A number is one word that is no option.
            let single = quoted || script == "nproc";
            self.word.expands = true;
            self.word.open |= first || !single;
            self.word.text.push_str(&self.text[start..self.at]);
            self.word.plain.push(PlainSubstitution { start, end: self.at, script });
        }
    }

    fn expansion(&mut self, length: usize, quoted: bool) {
        // `"$@"` becomes several words even in quotes.
        let several = self.peek(1) == Some(b'@') || self.peek(2) == Some(b'@');
        self.word.expands = true;
        self.word.open |= !quoted || self.word.text.is_empty() || several;
        self.mark();
        let end = (self.at + length).min(self.bytes.len());
        self.word.text.push_str(self.text.get(self.at..end).unwrap_or_default());
        self.at = end;
    }

    fn braced(&mut self, quoted: bool) {
        let inner = &self.bytes[self.at + 2..];
        let name = inner.iter().take_while(|byte| is_name(**byte)).count();
        if name > 0 && inner.get(name) == Some(&b'}') && !inner[0].is_ascii_digit() {
            self.expansion(name + 3, quoted);
            return;
        }
        // The text inside is read on as part of the word, so that scripts in it are found.
        self.word.problems.push(PARAMETER);
        self.mark();
        self.at += 2;
    }

    /// Takes the script that begins `skip` bytes ahead and ends at its closing parenthesis.
    fn script(&mut self, skip: usize) {
        self.mark();
        let start = (self.at + skip).min(self.bytes.len());
        let length = closing(&self.bytes[start..]).unwrap_or_else(|| {
            self.word.problems.push(UNCLOSED);
            self.bytes.len() - start
        });
        self.word.scripts.push(self.text.get(start..start + length).unwrap_or_default().to_owned());
        self.at = (start + length + 1).min(self.bytes.len());
    }

    fn ansi_quotes(&mut self) {
        let before = self.word.text.len();
        self.word.quoted = true;
        self.mark();
        self.at += 2;
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\'' => {
                    self.at += 1;
                    let text = self.word.text.get(before..).unwrap_or_default();
                    // Text that a terminal or a program could misread is not treated as text.
                    if text.chars().any(|letter| letter.is_control() && !matches!(letter, '\n' | '\t')) {
                        self.word.problems.push(ANSI_QUOTES);
                    }
                    return;
                }
                b'\\' => self.ansi_escape(),
                _ => self.character(),
            }
        }
        self.word.problems.push(UNCLOSED);
    }

    fn ansi_escape(&mut self) {
        let digits = |at: usize, most: usize, radix: u32| {
            self.bytes[at.min(self.bytes.len())..]
                .iter()
                .take(most)
                .take_while(|byte| char::from(**byte).is_digit(radix))
                .count()
        };
        let (skip, length, radix) = match self.peek(1) {
            Some(b'x') => (2, digits(self.at + 2, 2, 16), 16),
            Some(b'u') => (2, digits(self.at + 2, 4, 16), 16),
            Some(b'U') => (2, digits(self.at + 2, 8, 16), 16),
            Some(b'0'..=b'7') => (1, digits(self.at + 1, 3, 8), 8),
            _ => (1, 0, 10),
        };
        if length > 0 {
            let start = self.at + skip;
            let value =
                self.text.get(start..start + length).and_then(|code| u32::from_str_radix(code, radix).ok());
            // Past ASCII, a byte is not the character of its number.
            let is_byte = skip == 1 || self.peek(1) == Some(b'x');
            let letter = value.filter(|value| !is_byte || *value < 0x80).and_then(char::from_u32);
            if letter.is_none() {
                self.word.problems.push(ANSI_QUOTES);
            }
            self.word.text.extend(letter.or_else(|| value.and_then(char::from_u32)));
            self.at = start + length;
            return;
        }
        self.at += 1;
        let plain = match self.peek(0) {
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'\\' | b'\'' | b'"' | b'?') => return self.character(),
            Some(_) => {
                self.word.problems.push(ANSI_QUOTES);
                return self.character();
            }
            None => return,
        };
        self.word.text.push(plain);
        self.at += 1;
    }

    fn finish(mut self) -> RawWord {
        let bare = &self.bare;
        let has = |wanted: u8| bare.contains(&wanted);
        let bracket = bare.iter().position(|byte| *byte == b'[').is_some() && bare.len() > 1;
        let pattern = has(b'*') || has(b'?') || bracket;
        let braces = match bare.iter().position(|byte| *byte == b'{') {
            Some(open) => bare[open..].contains(&b',') || bare[open..].windows(2).any(|two| two == b".."),
            None => false,
        };
        let tilde = bare
            .iter()
            .enumerate()
            .any(|(at, byte)| *byte == b'~' && (at == 0 || matches!(bare[at - 1], b'=' | b':')));
        if pattern || braces {
            self.word.expands = true;
            // A name that matches begins like the pattern does.
            let first = bare.first().copied().unwrap_or_default();
            let fixed = !matches!(first, b'*' | b'?' | b'[' | b'{' | b'-' | 0);
            self.word.open |= !fixed || braces;
        }
        if tilde {
            self.word.expands = true;
            let named = bare.first() == Some(&b'~') && !matches!(bare.get(1), None | Some(b'/'));
            if named || bare.iter().filter(|byte| **byte == b'~').count() > 1 {
                self.word.problems.push(TILDE);
            }
        }
        // In a shell that keeps a history, `!x` represents an earlier command; `!` and `!=` do not.
        if let Some(at) = bare.iter().position(|byte| *byte == b'!')
            && !matches!(bare.get(at + 1), None | Some(b'='))
        {
            self.word.problems.push(HISTORY);
        }
        // A line that continues after the word is no part of it.
        let blank = matches!(self.peek(0), None | Some(b' ' | b'\t'));
        while blank && self.word.problems.is_empty() && self.at > self.word.start {
            match self.text.get(self.word.start..self.at).and_then(|word| word.strip_suffix("\\\n")) {
                Some(word) if !word.is_empty() => self.at -= 2,
                _ => break,
            }
        }
        self.word.end = self.at;
        self.word.source = self.text.get(self.word.start..self.at).unwrap_or_default().to_owned();
        self.word
    }
}

/// How long a script is that ends at the first parenthesis that closes, its reader: no brackets, comments,
/// escapes or expansions in it, and quotes that are closed.
fn plain_script(text: &str) -> Option<usize> {
    let length = text.find([')', '(', '#', '\\', '$', '`', '\n', '<', '!', '{', '}', '\0', '\r'])?;
    let script = &text[..length];
    let even = |mark: char| script.matches(mark).count().is_multiple_of(2);
    let one_kind = !script.contains('\'') || !script.contains('"');
    let plain = text[length..].starts_with(')') && one_kind && even('\'') && even('"');
    (plain && !script.trim().is_empty()).then_some(length)
}

/// The text of `cat <<'END'`, a here-document and `)`, and how long all of it is.
fn quoted_document(text: &str) -> Option<(String, usize)> {
    const MAX_MARK: usize = 64;
    let opened = text.strip_prefix("cat <<")?;
    let (mark, body) = opened.split_once('\n')?;
    let mark = ['\'', '"'].iter().find_map(|quote| mark.strip_prefix(*quote)?.strip_suffix(*quote))?;
    if mark.is_empty() || mark.len() > MAX_MARK || !mark.bytes().all(is_name) {
        return None;
    }
    let mut document = String::new();
    let mut rest = body;
    loop {
        let (line, after) = rest.split_once('\n')?;
        rest = after;
        if line == mark {
            break;
        }
        // A shell that ends the document early would end it at such a line.
        if line.starts_with(mark) {
            return None;
        }
        document.push_str(line);
        document.push('\n');
    }
    let after = rest.trim_start_matches(['\n', ' ', '\t']).strip_prefix(')')?;
    Some((document, text.len() - after.len()))
}

fn is_name(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

/// How far it is to the parenthesis that closes a script; quotes are minded.
fn closing(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut at, mut double) = (0_usize, 0, false);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b'"' => double = !double,
            b'\'' if !double => at += 1 + bytes[at + 1..].iter().position(|byte| *byte == b'\'')?,
            b'(' => depth += 1,
            b')' if depth == 0 => return Some(at),
            b')' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    None
}
