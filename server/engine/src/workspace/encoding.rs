//! From bytes on disk to text and back: encodings, byte order marks, line endings, and what is not text at all.
//!
//! Rule: a guess is never silent and never costs a byte: text is written back in the encoding it was read in, only
//! when that encoding gives the very same bytes for the text that was there and holds every new character.

use std::borrow::Cow;
use std::fmt;

use chardetng::EncodingDetector;
use encoding_rs::{Encoding, GB18030, GBK, UTF_8, UTF_16BE, UTF_16LE};

/// How much non-ASCII text the encoding detector looks at.
const DETECT_BYTES: usize = 1 << 20;

/// How much is looked at to tell binary data by its control characters.
const CONTROL_SAMPLE_BYTES: usize = 64 << 10;

/// Data in which more than one byte in so many is a control character is no text.
const CONTROL_SHARE: usize = 10;

/// Damaged UTF-8 is told from other encodings by having so many good multi-byte characters for each bad byte.
const GOOD_PER_BAD: usize = 4;

/// How a text is written on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextFormat {
    encoding: &'static Encoding,
    bom: bool,
}

/// A text as read from bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The text without byte order mark; bytes that mean nothing in the encoding are U+FFFD.
    pub text: String,
    /// How the bytes were read.
    pub format: TextFormat,
}

/// Bytes that are not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotText {
    /// An image; the format's name.
    Image(&'static str),
    /// Something else that is not text; what it seems to be.
    Binary(&'static str),
}

/// Text that cannot be written in an encoding without changing it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The encoding has no such character.
    #[error("the character `{character}` (U+{:04X}) cannot be written in {encoding}", *.character as u32)]
    Unmappable {
        /// The first character that does not fit.
        character: char,
        /// The encoding's name.
        encoding: String,
    },
    /// Writing the text that was read would already change bytes.
    #[error(
        "its bytes are not what {encoding}, the encoding it seems to be in, would write for the same text"
    )]
    NotFaithful {
        /// The encoding's name.
        encoding: String,
    },
}

/// Which line breaks a text has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnding {
    /// No line break at all.
    None,
    /// Line feeds.
    Lf,
    /// Carriage return and line feed.
    Crlf,
    /// Carriage returns.
    Cr,
    /// More than one kind; the most frequent is `dominant`'s to say.
    Mixed,
}

impl TextFormat {
    /// UTF-8 without byte order mark: how new files are written.
    pub const UTF_8: Self = Self { encoding: UTF_8, bom: false };

    /// Whether the bytes begin with a byte order mark.
    #[must_use]
    pub fn has_bom(self) -> bool {
        self.bom
    }

    /// Whether this is UTF-8, with or without byte order mark.
    #[must_use]
    pub fn is_utf_8(self) -> bool {
        self.encoding == UTF_8
    }

    /// Turns text into bytes, byte order mark included.
    ///
    /// # Errors
    /// [`EncodeError::Unmappable`] with the first character the encoding cannot hold.
    pub fn encode(self, text: &str) -> Result<Vec<u8>, EncodeError> {
        let mut bytes = Vec::with_capacity(text.len() + 3);
        if self.encoding == UTF_16LE || self.encoding == UTF_16BE {
            let to_bytes = if self.encoding == UTF_16LE { u16::to_le_bytes } else { u16::to_be_bytes };
            let mark = self.bom.then_some('\u{feff}');
            let mut units = [0; 2];
            for character in mark.into_iter().chain(text.chars()) {
                bytes.extend(character.encode_utf16(&mut units).iter().copied().flat_map(to_bytes));
            }
            return Ok(bytes);
        }
        if self.bom {
            bytes.extend_from_slice("\u{feff}".as_bytes());
        }
        if self.encoding == UTF_8 {
            bytes.extend_from_slice(text.as_bytes());
            return Ok(bytes);
        }
        bytes.extend_from_slice(&self.encode_legacy(text)?);
        Ok(bytes)
    }

    /// Checks that writing `text` gives `bytes` again, so that an edit changes nothing but its own span.
    ///
    /// # Errors
    /// [`EncodeError::NotFaithful`] when it would not.
    pub fn check_faithful(self, text: &str, bytes: &[u8]) -> Result<(), EncodeError> {
        match self.encode(text) {
            Ok(written) if written == bytes => Ok(()),
            Ok(_) | Err(_) => Err(EncodeError::NotFaithful { encoding: self.to_string() }),
        }
    }

    /// Some encoders write a look-alike for a character they lack (Shift_JIS writes `¥` as a backslash), so the
    /// bytes are read back before they are believed.
    fn encode_legacy(self, text: &str) -> Result<Cow<'_, [u8]>, EncodeError> {
        let unmappable = |character| EncodeError::Unmappable { character, encoding: self.to_string() };
        let (bytes, _, has_unmappable) = self.encoding.encode(text);
        let (read_back, _) = self.encoding.decode_without_bom_handling(&bytes);
        if !has_unmappable && read_back == text {
            return Ok(Cow::Owned(bytes.into_owned()));
        }
        let first = text.chars().find(|character| {
            let mut buffer = [0; 4];
            let single: &str = character.encode_utf8(&mut buffer);
            let (bytes, _, has_unmappable) = self.encoding.encode(single);
            has_unmappable || self.encoding.decode_without_bom_handling(&bytes).0 != single
        });
        Err(unmappable(first.unwrap_or(char::REPLACEMENT_CHARACTER)))
    }
}

impl fmt::Display for TextFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.encoding.name())?;
        if self.bom { formatter.write_str(" with BOM") } else { Ok(()) }
    }
}

impl LineEnding {
    /// Which line breaks `text` has.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let [lf, crlf, cr] = count_line_breaks(text);
        match (lf > 0, crlf > 0, cr > 0) {
            (false, false, false) => Self::None,
            (true, false, false) => Self::Lf,
            (false, true, false) => Self::Crlf,
            (false, false, true) => Self::Cr,
            _ => Self::Mixed,
        }
    }

    /// The most frequent line break of `text`; `None` when it has none.
    #[must_use]
    pub fn dominant(text: &str) -> Option<&'static str> {
        let [lf, crlf, cr] = count_line_breaks(text);
        if lf + crlf + cr == 0 {
            None
        } else if crlf >= lf && crlf >= cr {
            Some("\r\n")
        } else if lf >= cr {
            Some("\n")
        } else {
            Some("\r")
        }
    }

    /// The name for reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lf => "LF",
            Self::Crlf => "CRLF",
            Self::Cr => "CR",
            Self::Mixed => "mixed",
        }
    }
}

/// Reads bytes as text: by byte order mark, as UTF-8, as UTF-16 that looks like it, else in the encoding the
/// detector finds likeliest.
///
/// # Errors
/// [`NotText`] when the bytes are an image or other binary data.
pub fn decode(bytes: &[u8]) -> Result<Decoded, NotText> {
    if let Some(not_text) = sniff(bytes) {
        return Err(not_text);
    }
    if let Some((encoding, bom_length)) = Encoding::for_bom(bytes) {
        let (text, _) = encoding.decode_without_bom_handling(&bytes[bom_length..]);
        return reject_nul(Decoded { text: text.into_owned(), format: TextFormat { encoding, bom: true } });
    }
    if bytes.contains(&0) {
        return decode_utf_16(bytes).ok_or(NotText::Binary("binary data"));
    }
    let sample = &bytes[..bytes.len().min(CONTROL_SAMPLE_BYTES)];
    if sample.iter().filter(|byte| is_control(**byte)).count() * CONTROL_SHARE > sample.len() {
        return Err(NotText::Binary("binary data"));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(Decoded { text: text.to_owned(), format: TextFormat::UTF_8 });
    }
    if is_damaged_utf_8(bytes) {
        let text = String::from_utf8_lossy(bytes).into_owned();
        return Ok(Decoded { text, format: TextFormat::UTF_8 });
    }
    Ok(decode_legacy(bytes))
}

fn decode_legacy(bytes: &[u8]) -> Decoded {
    let start = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(0);
    let end = bytes.len().min(start + DETECT_BYTES);
    let mut detector = EncodingDetector::new();
    detector.feed(&bytes[start..end], end == bytes.len());
    let guess = detector.guess(None, false);
    // The detector says GBK for everything Chinese in simplified script; its four-byte characters are GB18030.
    let encoding =
        if guess == GBK && !writes_back(GBK, bytes) && writes_back(GB18030, bytes) { GB18030 } else { guess };
    let (text, _) = encoding.decode_without_bom_handling(bytes);
    Decoded { text: text.into_owned(), format: TextFormat { encoding, bom: false } }
}

fn writes_back(encoding: &'static Encoding, bytes: &[u8]) -> bool {
    let (text, _) = encoding.decode_without_bom_handling(bytes);
    encoding.encode(&text).0 == bytes
}

/// UTF-16 without a mark: no control characters, and more ASCII in one byte order than in the other. ASCII with a
/// stray NUL would often pass for Chinese, so bytes that are all ASCII must be NUL for a good part.
fn decode_utf_16(bytes: &[u8]) -> Option<Decoded> {
    let nuls = bytes.iter().filter(|byte| **byte == 0).count();
    if bytes.is_ascii() && nuls * 3 < bytes.len() {
        return None;
    }
    let read = |encoding: &'static Encoding| {
        let text = encoding.decode_without_bom_handling_and_without_replacement(bytes)?;
        let is_plausible = !text.chars().any(|c| c.is_ascii() && is_control(c as u8));
        let ascii = text.chars().filter(char::is_ascii).count();
        (is_plausible && ascii > 0).then(|| (ascii, text.into_owned(), encoding))
    };
    let (_, text, encoding) =
        [read(UTF_16LE), read(UTF_16BE)].into_iter().flatten().max_by_key(|(ascii, ..)| *ascii)?;
    Some(Decoded { text, format: TextFormat { encoding, bom: false } })
}

fn reject_nul(decoded: Decoded) -> Result<Decoded, NotText> {
    if decoded.text.contains('\0') { Err(NotText::Binary("binary data")) } else { Ok(decoded) }
}

fn is_damaged_utf_8(bytes: &[u8]) -> bool {
    let (mut good, mut bad) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        good += chunk.valid().chars().filter(|character| !character.is_ascii()).count();
        bad += chunk.invalid().len();
    }
    good >= bad * GOOD_PER_BAD
}

fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x08 | 0x0c | 0x1b)
}

fn count_line_breaks(text: &str) -> [usize; 3] {
    let [mut lf, mut crlf, mut cr] = [0; 3];
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\n' => lf += 1,
            b'\r' if bytes.next_if_eq(&b'\n').is_some() => crlf += 1,
            b'\r' => cr += 1,
            _ => {}
        }
    }
    [lf, crlf, cr]
}

fn sniff(bytes: &[u8]) -> Option<NotText> {
    const MAGIC: &[(&[u8], NotText)] = &[
        (b"\x89PNG\r\n\x1a\n", NotText::Image("PNG")),
        (b"\xff\xd8\xff", NotText::Image("JPEG")),
        (b"GIF87a", NotText::Image("GIF")),
        (b"GIF89a", NotText::Image("GIF")),
        (b"%PDF-", NotText::Binary("a PDF document")),
        (b"PK\x03\x04", NotText::Binary("a ZIP archive or a document made of one")),
        (b"\x1f\x8b", NotText::Binary("gzip data")),
        (b"BZh", NotText::Binary("bzip2 data")),
        (b"\xfd7zXZ\0", NotText::Binary("xz data")),
        (b"\x28\xb5\x2f\xfd", NotText::Binary("Zstandard data")),
        (b"\x7fELF", NotText::Binary("an ELF executable or library")),
        (b"\0asm", NotText::Binary("a WebAssembly module")),
        (b"SQLite format 3\0", NotText::Binary("an SQLite database")),
        (b"\xff\xfe\0\0", NotText::Binary("UTF-32 text, which is not supported")),
        (b"\0\0\xfe\xff", NotText::Binary("UTF-32 text, which is not supported")),
    ];
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Some(NotText::Image("WebP"));
    }
    let (magic, not_text) = MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic))?;
    // Three letters also begin honest text; bzip2 continues with its block size and a fixed number.
    let is_text = *magic == b"BZh" && bytes.get(4..7) != Some(b"1AY");
    (!is_text).then_some(*not_text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CHINESE: &str =
        "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。\r\n";
    const TAIWANESE: &str =
        "人人生而自由,在尊嚴和權利上一律平等。他們賦有理性和良心,並應以兄弟關係的精神對待。\n";
    const JAPANESE: &str =
        "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。\n";
    const FRENCH: &str =
        "Tous les êtres humains naissent libres et égaux en dignité et en droits, déjà à l'été.\n";

    fn legacy(encoding: &'static Encoding, text: &str) -> Vec<u8> {
        let (bytes, _, has_unmappable) = encoding.encode(text);
        assert!(!has_unmappable);
        bytes.into_owned()
    }

    #[test]
    fn every_supported_encoding_is_read_and_written_back() {
        let gb18030 = format!("{CHINESE}\u{20087}\u{3447}");
        let cases: Vec<(&str, Vec<u8>, &str)> = vec![
            ("UTF-8", FRENCH.as_bytes().to_vec(), FRENCH),
            ("UTF-8 with BOM", [b"\xef\xbb\xbf", FRENCH.as_bytes()].concat(), FRENCH),
            ("UTF-16LE with BOM", utf_16("\u{feff}", CHINESE, u16::to_le_bytes), CHINESE),
            ("UTF-16BE with BOM", utf_16("\u{feff}", CHINESE, u16::to_be_bytes), CHINESE),
            ("UTF-16LE", utf_16("", CHINESE, u16::to_le_bytes), CHINESE),
            ("UTF-16BE", utf_16("", FRENCH, u16::to_be_bytes), FRENCH),
            ("GBK", legacy(GBK, CHINESE), CHINESE),
            ("gb18030", legacy(GB18030, &gb18030), &gb18030),
            ("Big5", legacy(encoding_rs::BIG5, TAIWANESE), TAIWANESE),
            ("Shift_JIS", legacy(encoding_rs::SHIFT_JIS, JAPANESE), JAPANESE),
            ("EUC-JP", legacy(encoding_rs::EUC_JP, JAPANESE), JAPANESE),
            ("windows-1252", legacy(encoding_rs::WINDOWS_1252, FRENCH), FRENCH),
        ];
        for (name, bytes, text) in cases {
            let decoded = decode(&bytes).unwrap();
            assert_eq!((decoded.format.to_string().as_str(), decoded.text.as_str()), (name, text));
            decoded.format.check_faithful(&decoded.text, &bytes).unwrap();
        }
    }

    fn utf_16(mark: &str, text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        format!("{mark}{text}").encode_utf16().flat_map(to_bytes).collect()
    }

    #[test]
    fn binary_data_is_refused_by_what_it_is() {
        let cases: [(&[u8], NotText); 7] = [
            (b"\x89PNG\r\n\x1a\n....", NotText::Image("PNG")),
            (b"RIFF\x10\0\0\0WEBPVP8 ", NotText::Image("WebP")),
            (b"%PDF-1.7\n1 0 obj", NotText::Binary("a PDF document")),
            (b"\x7fELF\x02\x01\x01\0", NotText::Binary("an ELF executable or library")),
            (b"some text\0and more", NotText::Binary("binary data")),
            (b"\x01\x02\x03\x04\x05abc", NotText::Binary("binary data")),
            (b"\xff\xfe\0\0a\0\0\0", NotText::Binary("UTF-32 text, which is not supported")),
        ];
        for (bytes, expected) in cases {
            assert_eq!(decode(bytes), Err(expected), "{bytes:?}");
        }
    }

    #[test]
    fn text_that_only_resembles_binary_is_read() {
        for text in ["", "BZh is a prefix", "\x1b[31mred\x1b[0m\n", "RIFF raff", "GIF files"] {
            assert_eq!(decode(text.as_bytes()).unwrap().text, text);
        }
    }

    #[test]
    fn characters_the_encoding_lacks_are_refused_and_never_replaced() {
        let format = |encoding| TextFormat { encoding, bom: false };
        for (encoding, text, culprit) in [
            (encoding_rs::WINDOWS_1252, "na\u{ef}ve \u{4eba}", '\u{4eba}'),
            (encoding_rs::SHIFT_JIS, "5 \u{a5}", '\u{a5}'),
            (GBK, "\u{20087}", '\u{20087}'),
        ] {
            let error = format(encoding).encode(text).unwrap_err();
            let encoding = encoding.name().to_owned();
            assert_eq!(error, EncodeError::Unmappable { character: culprit, encoding });
        }
    }

    #[test]
    fn damaged_utf_8_is_readable_but_not_rewritable() {
        let bytes = [JAPANESE.as_bytes(), b"\xff", JAPANESE.as_bytes()].concat();
        let decoded = decode(&bytes).unwrap();
        assert!(decoded.format.is_utf_8());
        assert!(decoded.text.contains(char::REPLACEMENT_CHARACTER));
        assert!(decoded.format.check_faithful(&decoded.text, &bytes).is_err());
    }

    #[test]
    fn line_endings_are_told_apart() {
        for (text, ending, dominant) in [
            ("a", LineEnding::None, None),
            ("a\nb\n", LineEnding::Lf, Some("\n")),
            ("a\r\nb", LineEnding::Crlf, Some("\r\n")),
            ("a\rb\r", LineEnding::Cr, Some("\r")),
            ("a\r\nb\nc\r\n", LineEnding::Mixed, Some("\r\n")),
            ("a\r\r\n\r", LineEnding::Mixed, Some("\r")),
        ] {
            assert_eq!((LineEnding::of(text), LineEnding::dominant(text)), (ending, dominant), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_called_faithful_survives_an_edit_byte_for_byte(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            mark in proptest::sample::select(vec![&b""[..], b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"]),
        ) {
            let bytes = [mark, &bytes].concat();
            if let Ok(decoded) = decode(&bytes)
                && decoded.format.check_faithful(&decoded.text, &bytes).is_ok()
            {
                let appended = decoded.format.encode(&format!("{}x", decoded.text)).unwrap();
                let prefix_is_kept = appended.starts_with(&bytes);
                // ISO-2022-JP returns to ASCII before the `x`; everything before that stays.
                prop_assert!(prefix_is_kept || decoded.format.encoding == encoding_rs::ISO_2022_JP);
            }
        }

        #[test]
        fn unicode_formats_keep_any_text(text in "[^\0]*", bom: bool) {
            for encoding in [UTF_8, UTF_16LE, UTF_16BE] {
                let format = TextFormat { encoding, bom };
                let bytes = format.encode(&text).unwrap();
                format.check_faithful(&text, &bytes).unwrap();
                if bom && let Ok(decoded) = decode(&bytes) {
                    prop_assert_eq!(decoded, Decoded { text: text.clone(), format });
                }
            }
        }
    }
}
