//! Finding out how bytes are to be read, in passes over pieces of them.
//!
//! Rule: the same bytes give the same answer however they are cut into pieces, and no pass keeps more than a sample
//! of them, so that a file of any size can be judged.

use std::mem;
use std::ops::ControlFlow;

use chardetng::EncodingDetector;
use encoding_rs::{Decoder, DecoderResult, Encoding, GB18030, GBK, UTF_16BE, UTF_16LE};
use sha2::{Digest, Sha256};

use super::{NotText, PDF_DOCUMENT, PIECE_BYTES, TextFormat, decode_piece};

/// How much non-ASCII text the encoding detector checks.
pub const DETECT_BYTES: usize = 1 << 20;

/// How much is checked to tell binary data by its control characters.
const CONTROL_SAMPLE_BYTES: usize = 64 << 10;

/// Data in which more than one byte in this many is a control character is binary.
const CONTROL_SHARE: usize = 10;

/// Damaged UTF-8 differs from other encodings by this many good multi-byte characters for each bad byte.
const GOOD_PER_BAD: usize = 4;

const BINARY_DATA: NotText = NotText::Binary("binary data");

/// How much of the bytes a pass goes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanExtent {
    /// All of them.
    Whole,
    /// Their beginning, which may end within a character.
    Start,
}

/// Takes one piece and says whether to continue.
pub type Visit<'visit> = dyn FnMut(&[u8]) -> ControlFlow<()> + 'visit;

/// One pass over the bytes from their start.
pub type Pass<'pass, E> = dyn FnMut(&mut Visit<'_>) -> Result<(), E> + 'pass;

/// Finds out how bytes are to be read: by byte order mark, as UTF-8, as UTF-16 that looks like it, else in the
/// encoding the detector finds likeliest.
///
/// # Errors
/// Those of the passes; within, [`NotText`] when the bytes are an image or other binary data.
pub fn detect<E>(pass: &mut Pass<'_, E>, extent: ScanExtent) -> Result<Result<TextFormat, NotText>, E> {
    let head = head(pass)?;
    if let Some(not_text) = sniff(&head) {
        return Ok(Err(not_text));
    }
    if let Some((encoding, _)) = Encoding::for_bom(&head) {
        return Ok(Ok(TextFormat { encoding, bom: true }));
    }
    let census = Census::take(pass, extent)?;
    if census.nuls > 0 {
        return Ok(utf_16(pass, extent, &census)?.ok_or(BINARY_DATA));
    }
    if head.iter().filter(|byte| is_control(**byte)).count() * CONTROL_SHARE > head.len() {
        return Ok(Err(BINARY_DATA));
    }
    if census.good >= census.bad * GOOD_PER_BAD {
        return Ok(Ok(TextFormat::UTF_8));
    }
    Ok(Ok(TextFormat { encoding: legacy(pass, extent)?, bom: false }))
}

fn head<E>(pass: &mut Pass<'_, E>) -> Result<Vec<u8>, E> {
    let mut head = Vec::new();
    pass(&mut |piece| {
        let room = CONTROL_SAMPLE_BYTES - head.len();
        head.extend_from_slice(&piece[..piece.len().min(room)]);
        if head.len() == CONTROL_SAMPLE_BYTES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(head)
}

/// The properties of the bytes when they are read as UTF-8.
#[derive(Default)]
struct Census {
    bytes: usize,
    nuls: usize,
    is_not_ascii: bool,
    /// Characters of more than one byte.
    good: usize,
    /// Bytes that are part of no character.
    bad: usize,
    /// The beginning of a character whose end is in the next piece.
    cut: Vec<u8>,
}

impl Census {
    fn take<E>(pass: &mut Pass<'_, E>, extent: ScanExtent) -> Result<Self, E> {
        let mut census = Self::default();
        pass(&mut |piece| {
            census.count(piece);
            ControlFlow::Continue(())
        })?;
        if extent == ScanExtent::Whole {
            census.bad += census.cut.len();
        }
        Ok(census)
    }

    fn count(&mut self, piece: &[u8]) {
        self.bytes += piece.len();
        self.nuls += piece.iter().filter(|byte| **byte == 0).count();
        if piece.is_ascii() && self.cut.is_empty() {
            return;
        }
        self.is_not_ascii = true;
        let mut bytes = mem::take(&mut self.cut);
        bytes.extend_from_slice(piece);
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.good += chunk.valid().chars().filter(|character| !character.is_ascii()).count();
            let invalid = chunk.invalid();
            let is_unfinished = |error: std::str::Utf8Error| error.error_len().is_none();
            if chunks.peek().is_none() && std::str::from_utf8(invalid).is_err_and(is_unfinished) {
                self.cut = invalid.to_vec();
            } else {
                self.bad += invalid.len();
            }
        }
    }
}

/// UTF-16 without a mark: no control characters, and more ASCII in one byte order than in the other. ASCII with a
/// stray NUL would often pass for Chinese, so bytes that are all ASCII must be NUL for a good part.
fn utf_16<E>(pass: &mut Pass<'_, E>, extent: ScanExtent, census: &Census) -> Result<Option<TextFormat>, E> {
    if !census.is_not_ascii && census.nuls * 3 < census.bytes {
        return Ok(None);
    }
    let mut candidates = [UTF_16LE, UTF_16BE].map(Utf16Candidate::new);
    pass(&mut |piece| {
        candidates.iter_mut().for_each(|candidate| candidate.read(piece, false));
        ControlFlow::Continue(())
    })?;
    if extent == ScanExtent::Whole {
        candidates.iter_mut().for_each(|candidate| candidate.read(&[], true));
    }
    let plausible = candidates.into_iter().filter(|candidate| candidate.is_plausible && candidate.ascii > 0);
    let best = plausible.max_by_key(|candidate| candidate.ascii);
    Ok(best.map(|candidate| TextFormat { encoding: candidate.encoding, bom: false }))
}

struct Utf16Candidate {
    encoding: &'static Encoding,
    decoder: Decoder,
    text: String,
    ascii: usize,
    is_plausible: bool,
}

impl Utf16Candidate {
    fn new(encoding: &'static Encoding) -> Self {
        let decoder = encoding.new_decoder_without_bom_handling();
        Self { encoding, decoder, text: String::with_capacity(PIECE_BYTES), ascii: 0, is_plausible: true }
    }

    fn read(&mut self, piece: &[u8], last: bool) {
        let mut rest = piece;
        while self.is_plausible {
            self.text.clear();
            let (result, read) =
                self.decoder.decode_to_string_without_replacement(rest, &mut self.text, last);
            rest = &rest[read..];
            let ascii = || self.text.bytes().filter(u8::is_ascii);
            self.ascii += ascii().count();
            self.is_plausible = !ascii().any(is_control);
            match result {
                DecoderResult::InputEmpty => return,
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(..) => self.is_plausible = false,
            }
        }
    }
}

fn legacy<E>(pass: &mut Pass<'_, E>, extent: ScanExtent) -> Result<&'static Encoding, E> {
    let mut detector = EncodingDetector::new();
    let mut fed = 0;
    pass(&mut |piece| {
        let start = if fed > 0 { Some(0) } else { piece.iter().position(|byte| !byte.is_ascii()) };
        let Some(start) = start else { return ControlFlow::Continue(()) };
        let piece = &piece[start..];
        let piece = &piece[..piece.len().min(DETECT_BYTES - fed)];
        detector.feed(piece, false);
        fed += piece.len();
        if fed == DETECT_BYTES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if extent == ScanExtent::Whole && fed < DETECT_BYTES {
        detector.feed(&[], true);
    }
    let guess = detector.guess(None, false);
    // The detector says GBK for everything Chinese in simplified script; its four-byte characters are GB18030.
    // Both are read alike, so it matters only when the text is written back.
    let is_gb18030 = guess == GBK
        && extent == ScanExtent::Whole
        && !writes_back(pass, GBK)?
        && writes_back(pass, GB18030)?;
    Ok(if is_gb18030 { GB18030 } else { guess })
}

fn writes_back<E>(pass: &mut Pass<'_, E>, encoding: &'static Encoding) -> Result<bool, E> {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let (mut read, mut written) = (Sha256::new(), Sha256::new());
    let mut text = String::new();
    let mut proceed = |piece: &[u8], last: bool| {
        text.clear();
        decode_piece(&mut decoder, piece, last, &mut text);
        read.update(piece);
        written.update(encoding.encode(&text).0);
        ControlFlow::Continue(())
    };
    pass(&mut |piece| proceed(piece, false))?;
    let _ = proceed(&[], true);
    Ok(read.finalize() == written.finalize())
}

fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x08 | 0x0c | 0x1b)
}

fn sniff(bytes: &[u8]) -> Option<NotText> {
    const MAGIC: &[(&[u8], NotText)] = &[
        (b"\x89PNG\r\n\x1a\n", NotText::Image("PNG")),
        (b"\xff\xd8\xff", NotText::Image("JPEG")),
        (b"GIF87a", NotText::Image("GIF")),
        (b"GIF89a", NotText::Image("GIF")),
        (b"%PDF-", NotText::Binary(PDF_DOCUMENT)),
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
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    fn in_pieces(bytes: &[u8], size: usize, extent: ScanExtent) -> Result<TextFormat, NotText> {
        let Ok(format) = detect::<Infallible>(
            &mut |visit| {
                let _ = bytes.chunks(size).try_for_each(visit);
                Ok(())
            },
            extent,
        );
        format
    }

    fn sample() -> impl Strategy<Value = Vec<u8>> {
        let text = "[a-z人自由éüß、すべて\u{20087}\n]{0,40}";
        let encoded = (text, 0..7usize).prop_map(|(text, form)| match form {
            0 => text.into_bytes(),
            1 => encoding_rs::GBK.encode(&text).0.into_owned(),
            2 => encoding_rs::GB18030.encode(&text).0.into_owned(),
            3 => encoding_rs::SHIFT_JIS.encode(&text).0.into_owned(),
            4 => encoding_rs::WINDOWS_1252.encode(&text).0.into_owned(),
            5 => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            _ => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        });
        prop_oneof![encoded, proptest::collection::vec(any::<u8>(), 0..60)]
    }

    proptest! {
        #[test]
        fn the_answer_does_not_depend_on_the_pieces(bytes in sample(), size in 1..9usize) {
            let whole = in_pieces(&bytes, usize::MAX, ScanExtent::Whole);
            prop_assert_eq!(in_pieces(&bytes, size, ScanExtent::Whole), whole);
        }

        #[test]
        fn a_beginning_may_end_within_a_character(text in "[a-z人é\u{1f600}]{1,20}人", cut in 1..3usize) {
            let bytes = &text.as_bytes()[..text.len() - cut];
            prop_assert_eq!(in_pieces(bytes, 5, ScanExtent::Start), Ok(TextFormat::UTF_8));
        }
    }
}
