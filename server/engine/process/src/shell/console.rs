//! From the bytes that a command prints to text, on systems where programs print in several encodings.
//!
//! Rule: a line that is UTF-8 is read as UTF-8; any other line is in the code page of the console. UTF-16 is recognized where a line begins
//! with a byte order mark or with plain letters of two bytes. The result depends on the bytes alone, however they are cut into
//! pieces, and no more than a bound of them is held back.

use std::char::decode_utf16;
#[cfg(windows)]
use std::sync::LazyLock;

use encoding_rs::{
    BIG5, Decoder, EUC_KR, Encoding, GBK, SHIFT_JIS, UTF_8, WINDOWS_1250, WINDOWS_1251, WINDOWS_1252,
    WINDOWS_1253, WINDOWS_1254, WINDOWS_1255, WINDOWS_1256, WINDOWS_1257, WINDOWS_1258,
};
use oem_cp::code_table::DECODING_TABLE_CP_MAP;

/// The most bytes of a line that are held back until its encoding is known.
const MAX_HELD: usize = 4096;

/// The code page of the console of this system; `None` where programs print UTF-8.
#[cfg(windows)]
fn code_page() -> Option<u16> {
    /// Where Windows keeps it.
    const KEY: &str = r"SYSTEM\CurrentControlSet\Control\Nls\CodePage";
    static CODE_PAGE: LazyLock<Option<u16>> = LazyLock::new(|| {
        let read = windows_registry::LOCAL_MACHINE.open(KEY).and_then(|key| key.get_string("OEMCP"));
        match read {
            Ok(number) => number.trim().parse().ok(),
            Err(error) => {
                tracing::warn!(%error, "the code page of the console is not known; output is read as UTF-8");
                None
            }
        }
    });
    *CODE_PAGE
}

/// The code page of the console of this system; `None` where programs print UTF-8.
#[cfg(not(windows))]
fn code_page() -> Option<u16> {
    None
}

/// Turns the bytes of a command into text as they come.
pub(super) enum ConsoleDecoder {
    /// Where programs print UTF-8.
    Utf8(Decoder),
    /// Where they print in several encodings.
    Mixed(MixedText),
}

impl ConsoleDecoder {
    /// The one for programs of this system.
    pub(super) fn here() -> Self {
        Self::of_code_page(code_page())
    }

    fn of_code_page(code_page: Option<u16>) -> Self {
        match code_page {
            Some(code_page) => Self::Mixed(MixedText::new(code_page)),
            None => Self::Utf8(UTF_8.new_decoder_without_bom_handling()),
        }
    }

    /// The text that some bytes complete; with `last`, that of all bytes.
    pub(super) fn decode(&mut self, bytes: &[u8], last: bool) -> String {
        match self {
            Self::Utf8(decoder) => {
                let room = decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(0);
                let mut text = String::with_capacity(room);
                // The room is what the decoder asked for, so that one call takes in everything.
                let _ = decoder.decode_to_string(bytes, &mut text, last);
                text
            }
            Self::Mixed(mixed) => mixed.decode(bytes, last),
        }
    }
}

/// The encoding of the lines in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEncoding {
    /// One in which ASCII is ASCII: UTF-8 or the code page.
    Bytes,
    /// UTF-16 with the lower byte first.
    Utf16Le,
    /// UTF-16 with the higher byte first, which only a byte order mark shows.
    Utf16Be,
}

/// Output of programs that print in several encodings.
pub(super) struct MixedText {
    code_page: u16,
    encoding: LineEncoding,
    /// Whether the next byte begins a line.
    begins: bool,
    held: Vec<u8>,
}

impl MixedText {
    fn new(code_page: u16) -> Self {
        Self { code_page, encoding: LineEncoding::Bytes, begins: true, held: Vec::new() }
    }

    fn decode(&mut self, bytes: &[u8], last: bool) -> String {
        self.held.extend_from_slice(bytes);
        let mut text = String::new();
        while !self.held.is_empty() {
            if self.begins {
                let Some((encoding, mark)) = line_encoding(self.encoding, &self.held, last) else { break };
                self.encoding = encoding;
                self.begins = false;
                self.held.drain(..mark);
            }
            let taken = match self.encoding {
                LineEncoding::Bytes => self.take_bytes(last, &mut text),
                LineEncoding::Utf16Le => self.take_units(u16::from_le_bytes, last, &mut text),
                LineEncoding::Utf16Be => self.take_units(u16::from_be_bytes, last, &mut text),
            };
            if taken == 0 {
                break;
            }
            self.held.drain(..taken);
        }
        text
    }

    /// Takes in a line, or the part of it whose encoding does not matter. Gives how many bytes that was.
    fn take_bytes(&mut self, last: bool, text: &mut String) -> usize {
        let end = self.held.iter().position(|byte| matches!(byte, b'\n' | b'\r')).map(|at| at + 1);
        if let Some(end) = end {
            text.push_str(&decode_line(&self.held[..end], self.code_page));
            self.begins = self.held[end - 1] == b'\n';
            return end;
        }
        if last {
            text.push_str(&decode_line(&self.held, self.code_page));
            return self.held.len();
        }
        let plain = self.held.iter().position(|byte| !byte.is_ascii()).unwrap_or(self.held.len());
        let taken = if self.held.len() > MAX_HELD { complete(&self.held) } else { plain };
        text.push_str(&decode_line(&self.held[..taken], self.code_page));
        taken
    }

    /// Takes in the units of UTF-16 up to the end of a line. Gives how many bytes that was.
    fn take_units(&mut self, unit: fn([u8; 2]) -> u16, last: bool, text: &mut String) -> usize {
        let pairs = self.held.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        let mut units: Vec<u16> = Vec::with_capacity(self.held.len() / 2);
        for next in pairs {
            units.push(next);
            if next == u16::from(b'\n') {
                self.begins = true;
                break;
            }
        }
        // The other half of a character may be in the next piece.
        let is_half = units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit));
        if is_half && !last {
            units.pop();
        }
        text.extend(decode_utf16(units.iter().copied()).map(|read| read.unwrap_or('\u{fffd}')));
        let taken = units.len() * 2;
        if last && taken + 1 == self.held.len() {
            text.push('\u{fffd}');
            return self.held.len();
        }
        taken
    }
}

/// The encoding of a line that begins here, and the length of its byte order mark; `None` when more bytes are needed.
fn line_encoding(before: LineEncoding, bytes: &[u8], last: bool) -> Option<(LineEncoding, usize)> {
    use LineEncoding::{Bytes, Utf16Be, Utf16Le};
    match bytes {
        [0xff, 0xfe, ..] => return Some((Utf16Le, 2)),
        [0xfe, 0xff, ..] => return Some((Utf16Be, 2)),
        [0xff | 0xfe] if !last => return None,
        _ => {}
    }
    match before {
        Bytes => match bytes {
            [first, 0, second, 0, ..] if is_text(*first) && is_text(*second) => Some((Utf16Le, 0)),
            [first, 0] if last && is_text(*first) => Some((Utf16Le, 0)),
            [_] | [_, 0] | [_, 0, _] if !last => None,
            _ => Some((Bytes, 0)),
        },
        Utf16Le => {
            // A line of bytes is UTF-8 without a NUL, and its end is a single byte.
            let end = bytes.iter().take(MAX_HELD).position(|byte| matches!(byte, 0 | b'\n'));
            let is_line = |end: usize| end > 0 && is_plain_line(&bytes[..end]);
            match end {
                Some(end) if bytes[end] == 0 => Some((Utf16Le, 0)),
                Some(end) if bytes.get(end + 1).is_none() && !last => None,
                Some(end) if bytes.get(end + 1) != Some(&0) && is_line(end) => Some((Bytes, 0)),
                Some(_) => Some((Utf16Le, 0)),
                None if last && is_line(bytes.len()) => Some((Bytes, 0)),
                None if !last && bytes.len() < MAX_HELD => None,
                None => Some((Utf16Le, 0)),
            }
        }
        Utf16Be => Some((Utf16Be, 0)),
    }
}

fn is_text(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n')
}

fn is_plain_line(line: &[u8]) -> bool {
    let is_control = |letter: char| letter.is_control() && !matches!(letter, '\t' | '\r');
    std::str::from_utf8(line).is_ok_and(|line| !line.contains(is_control))
}

/// The bytes without an unfinished UTF-8 character at their end.
fn complete(bytes: &[u8]) -> usize {
    let is_unfinished = |end: &usize| {
        std::str::from_utf8(&bytes[*end..])
            .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    (bytes.len().saturating_sub(3)..bytes.len()).find(is_unfinished).unwrap_or(bytes.len())
}

/// The text of a line, or of a part of one: UTF-8 where the bytes are that, otherwise as the code page has it. A byte that means
/// nothing is U+FFFD.
fn decode_line(bytes: &[u8], code_page: u16) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    if let Some(encoding) = encoding_of(code_page) {
        return encoding.decode_without_bom_handling(bytes).0.into_owned();
    }
    match DECODING_TABLE_CP_MAP.get(&code_page) {
        Some(table) => table.decode_string_lossy(bytes),
        None => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// The encoding of a code page that is one of the web too.
fn encoding_of(code_page: u16) -> Option<&'static Encoding> {
    Some(match code_page {
        932 => SHIFT_JIS,
        936 => GBK,
        949 => EUC_KR,
        950 => BIG5,
        1250 => WINDOWS_1250,
        1251 => WINDOWS_1251,
        1252 => WINDOWS_1252,
        1253 => WINDOWS_1253,
        1254 => WINDOWS_1254,
        1255 => WINDOWS_1255,
        1256 => WINDOWS_1256,
        1257 => WINDOWS_1257,
        1258 => WINDOWS_1258,
        65001 => UTF_8,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of an output that comes in pieces of a length.
    fn text(bytes: &[u8], code_page: u16, length: usize) -> String {
        let mut decoder = ConsoleDecoder::of_code_page(Some(code_page));
        let mut text: String = bytes.chunks(length).map(|piece| decoder.decode(piece, false)).collect();
        text.push_str(&decoder.decode(&[], true));
        text
    }

    fn utf_16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    fn joined(parts: &[&[u8]]) -> Vec<u8> {
        parts.concat()
    }

    #[test]
    fn each_line_is_read_in_its_own_encoding_however_it_is_cut() {
        let marked = joined(&[b"\xff\xfe", &utf_16("Größe 中文 \u{1f600}\r\n")]);
        let table: &[(u16, Vec<u8>, &str)] = &[
            (850, b"plain\r\nlines\n".to_vec(), "plain\r\nlines\n"),
            (850, "Größe, in UTF-8\n".into(), "Größe, in UTF-8\n"),
            (850, b"Gr\x94\xe1e\r\n".to_vec(), "Größe\r\n"),
            (437, b"\xc9\xcd\xbb 1\xab\n".to_vec(), "╔═╗ 1½\n"),
            (852, b"\x9d\xa2d\xab\n".to_vec(), "Łódź\n"),
            (866, b"\x8f\xe0\xa8\xa2\xa5\xe2\r\n".to_vec(), "Привет\r\n"),
            (932, b"\x83\x65\x83\x58\x83\x67\n".to_vec(), "テスト\n"),
            (936, b"\xd6\xd0\xce\xc4\n".to_vec(), "中文\n"),
            (1252, b"caf\xe9\n".to_vec(), "café\n"),
            (65001, b"caf\xe9\n".to_vec(), "caf\u{fffd}\n"),
            (9999, b"caf\xe9\n".to_vec(), "caf\u{fffd}\n"),
            // Both in one output: each program prints in its own.
            (850, joined(&["é\n".as_bytes(), b"\x82\n", "é".as_bytes()]), "é\né\né"),
            (850, joined(&[b"50% \x82\r", "60% é\r\n".as_bytes()]), "50% é\r60% é\r\n"),
            (850, marked.clone(), "Größe 中文 \u{1f600}\r\n"),
            (850, joined(&[b"before\n", &marked, b"after \x82\n"]), "before\nGröße 中文 \u{1f600}\r\n"),
            (850, joined(&[&marked, b"done\n", b"caf\x82\n"]), "Größe 中文 \u{1f600}\r\ndone\ncafé\n"),
            (
                850,
                joined(&[&marked, &marked, b"done"]),
                "Größe 中文 \u{1f600}\r\nGröße 中文 \u{1f600}\r\ndone",
            ),
            (850, utf_16("Windows Subsystem\r\n中文\r\n"), "Windows Subsystem\r\n中文\r\n"),
            (
                850,
                joined(&[b"list:\r\n", &utf_16("Ubuntu\r\n\r\n"), b"end\r\n"]),
                "list:\r\nUbuntu\r\n\r\nend\r\n",
            ),
            (850, joined(&[b"\xfe\xff", &[0, b'h', 0, b'i', 0, b'\n']]), "hi\n"),
            (850, utf_16("x"), "x"),
            (850, joined(&[&utf_16("ok\n"), b"\x00"]), "ok\n\u{fffd}"),
            // A NUL among bytes is no UTF-16.
            (850, b"a\0bc\n".to_vec(), "a\0bc\n"),
            (850, b"\xff".to_vec(), "\u{a0}"),
            (850, b"".to_vec(), ""),
        ];
        for (code_page, bytes, expected) in table {
            for length in [1, 2, 3, 5, 4096] {
                let read = text(bytes, *code_page, length);
                // A line behind UTF-16 that is neither UTF-8 nor marked stays UTF-16: nothing tells it apart.
                assert!(read.starts_with(expected), "{code_page} {bytes:?} in pieces of {length}: {read:?}");
                if !expected.ends_with("\u{1f600}\r\n") {
                    assert_eq!(read, *expected, "{code_page} {bytes:?} in pieces of {length}");
                }
            }
        }
    }

    #[test]
    fn plain_text_is_given_at_once_and_no_more_than_a_bound_is_held_back() {
        let mut decoder = ConsoleDecoder::of_code_page(Some(850));
        assert_eq!(decoder.decode(b"Password: ", false), "Password: ");
        assert_eq!(decoder.decode("é".as_bytes(), false), "");
        assert_eq!(decoder.decode(b"\n", false), "é\n");
        let long = "é".repeat(MAX_HELD);
        let mut given = decoder.decode(&long.as_bytes()[..MAX_HELD + 1], false);
        assert_eq!(given.chars().count(), MAX_HELD / 2, "the half of a character waits for the other half");
        given.push_str(&decoder.decode(&long.as_bytes()[MAX_HELD + 1..], false));
        given.push_str(&decoder.decode(&[], true));
        assert_eq!(given, long);
    }

    #[test]
    fn where_programs_print_utf_8_nothing_else_is_guessed() {
        let mut decoder = ConsoleDecoder::of_code_page(None);
        assert_eq!(decoder.decode(b"caf\xc3", false), "caf");
        assert_eq!(decoder.decode(b"\xa9 \x82\n", false), "é \u{fffd}\n");
    }
}
