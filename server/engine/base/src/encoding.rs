//! From bytes on disk to text and back: encodings, byte order marks, line endings, and binary content.
//!
//! Rule: a guess is never silent and never costs a byte: text is written back in the encoding it was read in, only
//! when that encoding gives the very same bytes for the text that was there and holds every new character.

pub mod detect;

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;

use encoding_rs::{CoderResult, Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};

pub(super) use detect::{ScanExtent, Visit, detect};

/// How many bytes are checked or decoded at once.
pub const PIECE_BYTES: usize = 64 << 10;

/// How a text is written on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextFormat {
    encoding: &'static Encoding,
    bom: bool,
}

/// A text as read from bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedText {
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

/// How [`NotText::Binary`] names a PDF document.
pub const PDF_DOCUMENT: &str = "a PDF document";

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

    /// A decoder for bytes that come in pieces; it leaves out the byte order mark.
    pub fn decoder(self) -> Decoder {
        match self.bom {
            true => self.encoding.new_decoder_with_bom_removal(),
            false => self.encoding.new_decoder_without_bom_handling(),
        }
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
        let [lf, crlf, cr] = count_line_breaks(text).map(|count| count > 0);
        Self::of_kinds(lf, crlf, cr)
    }

    /// Which line breaks a text has that has these kinds of them.
    #[must_use]
    pub fn of_kinds(lf: bool, crlf: bool, cr: bool) -> Self {
        match (lf, crlf, cr) {
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
pub fn decode(bytes: &[u8]) -> Result<DecodedText, NotText> {
    let mut pieces = |visit: &mut Visit<'_>| -> Result<(), Infallible> {
        let _ = bytes.chunks(PIECE_BYTES).try_for_each(visit);
        Ok(())
    };
    let Ok(format) = detect(&mut pieces, ScanExtent::Whole);
    let format = format?;
    let (text, _) = match format.bom {
        true => format.encoding.decode_with_bom_removal(bytes),
        false => format.encoding.decode_without_bom_handling(bytes),
    };
    reject_nul(&text)?;
    Ok(DecodedText { text: text.into_owned(), format })
}

/// Appends a piece of a text, decoded; `last` tells the decoder that no bytes follow.
pub fn decode_piece(decoder: &mut Decoder, piece: &[u8], last: bool, text: &mut String) {
    let mut rest = piece;
    loop {
        text.reserve(decoder.max_utf8_buffer_length(rest.len()).unwrap_or(rest.len()));
        let (result, read, _) = decoder.decode_to_string(rest, text, last);
        rest = &rest[read..];
        if result == CoderResult::InputEmpty {
            return;
        }
    }
}

/// Refuses text that was decoded without complaint but holds a NUL, which no text does.
pub fn reject_nul(text: &str) -> Result<(), NotText> {
    if text.contains('\0') { Err(NotText::Binary("binary data")) } else { Ok(()) }
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

#[cfg(test)]
mod tests {
    use encoding_rs::{GB18030, GBK};
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
    fn line_endings_are_distinguished() {
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
                    prop_assert_eq!(decoded, DecodedText { text: text.clone(), format });
                }
            }
        }
    }
}
