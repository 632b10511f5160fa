//! Reading long files piece by piece.
//!
//! Rule: memory does not grow with the file. A file short enough to be edited is decoded exactly as if it were read
//! whole, so that having read it as a stream counts as having read it; of a longer one the encoding is reported by its
//! beginning.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Take};
use std::ops::ControlFlow;
use std::path::Path;

use encoding_rs::Decoder;
use sha2::{Digest, Sha256};

use crate::file_text::{FileStamp, FileText, TextStamp};
use crate::workspace::error::BytesError;
use crate::workspace::overlay::{MAX_FILE_BYTES, open_regular, open_resolved, read_opened};
use crate::workspace::{Portion, ReadError, Workspace};
use kode_base::encoding::detect::{DETECT_BYTES, ScanExtent, Visit, detect};
use kode_base::encoding::{PIECE_BYTES, TextFormat, decode_piece, reject_nul};
use kode_base::paths::{AbsPath, Target};

/// Files larger than this are read as streams where that is possible.
pub const MAX_WHOLE_BYTES: u64 = 1 << 20;

/// A text, whole or to be read piece by piece.
pub enum OpenText {
    /// An open document, or a file that is not long.
    Whole(FileText),
    /// A long file.
    Stream(TextStream),
}

/// The text of a long file on disk, read piece by piece. Its methods block.
pub struct TextStream {
    target: Target,
    shown: String,
    file: Take<File>,
    stamp: FileStamp,
    format: TextFormat,
    decoder: Decoder,
    /// Of the text so far; `None` when the file is too long to be edited.
    hash: Option<Sha256>,
    bytes: Vec<u8>,
    text: String,
    is_at_end: bool,
}

impl Workspace {
    /// The text as the user sees it, as a stream when it is that of a long file.
    ///
    /// # Errors
    /// [`ReadError`], each with a hint.
    pub async fn open(&self, target: &Target) -> Result<OpenText, ReadError> {
        match self.document_text(target).await {
            Some(text) => Ok(OpenText::Whole(text)),
            None => self.on_disk(target, OpenText::read).await,
        }
    }

    /// As [`Workspace::open`], of a file that led to `real` when it was judged. It is opened there, and not where it leads now.
    ///
    /// # Errors
    /// As [`Workspace::open`], and [`ReadError::Replaced`].
    pub async fn open_judged(&self, target: &Target, real: Option<&AbsPath>) -> Result<OpenText, ReadError> {
        let Some(real) = real else { return self.open(target).await };
        if let Some(text) = self.document_text(target).await {
            return Ok(OpenText::Whole(text));
        }
        let real = real.clone();
        let read = move |target: Target, _: &Path, shown: &str| {
            let opened = open_resolved(real.as_path()).map_err(|error| match real.as_path().metadata() {
                // A link that could not be followed when it was judged is judged by its name, and still leads nowhere.
                Err(nowhere) if matches!(error, BytesError::Replaced) => BytesError::Io(nowhere),
                _ => error,
            });
            let file = opened.map_err(|error| error.into_read_error(shown))?;
            OpenText::of(target, file, shown)
        };
        self.on_disk(target, read).await
    }

    /// Notes that the session has read the text of this stream, or this part of it. Counts only when all of the stream has
    /// been read and the file can be edited.
    pub fn note_stream_read(&self, stream: &TextStream, portion: &Portion) {
        if let Some(hash) = stream.hash.as_ref().filter(|_| stream.is_at_end) {
            let stamp = TextStamp::File(stream.stamp.clone());
            self.tracker.note(&stream.target, hash.clone().finalize().into(), Some(portion), Some(stamp));
            self.tracker.watch(&stream.target);
        }
    }
}

impl OpenText {
    pub(super) fn read(target: Target, path: &Path, shown: &str) -> Result<Self, ReadError> {
        let file = open_regular(path).map_err(|error| error.into_read_error(shown))?;
        Self::of(target, file, shown)
    }

    fn of(target: Target, (file, metadata): (File, Metadata), shown: &str) -> Result<Self, ReadError> {
        match metadata.len() {
            size if size > MAX_WHOLE_BYTES => {
                TextStream::new(target, file, FileStamp::of(&metadata), shown).map(Self::Stream)
            }
            _ => read_opened(target, (file, metadata), shown).map(Self::Whole),
        }
    }
}

impl TextStream {
    /// How the file is written.
    #[must_use]
    pub fn format(&self) -> TextFormat {
        self.format
    }

    /// The file's size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.stamp.size()
    }

    /// Whether the file is short enough for `Edit` and `Write`. Then all of it has to be read for the read to count.
    #[must_use]
    pub fn is_editable(&self) -> bool {
        self.hash.is_some()
    }

    /// The next piece of the text, which may be empty; `None` at its end.
    ///
    /// # Errors
    /// [`ReadError`] when the system fails, or the file turns out to be binary.
    pub fn next_piece(&mut self) -> Result<Option<&str>, ReadError> {
        if self.is_at_end {
            return Ok(None);
        }
        let read = read_full(&mut self.file, &mut self.bytes);
        let length = read.map_err(|error| BytesError::from(error).into_read_error(&self.shown))?;
        self.is_at_end = length < self.bytes.len();
        self.text.clear();
        decode_piece(&mut self.decoder, &self.bytes[..length], self.is_at_end, &mut self.text);
        reject_nul(&self.text).map_err(|not_text| ReadError::of_bytes(not_text, &self.shown))?;
        if let Some(hash) = &mut self.hash {
            hash.update(&self.text);
        }
        Ok(Some(&self.text))
    }

    fn new(target: Target, mut file: File, stamp: FileStamp, shown: &str) -> Result<Self, ReadError> {
        let size = stamp.size();
        let io_error = |error| BytesError::from(error).into_read_error(shown);
        let is_editable = size <= MAX_FILE_BYTES;
        let (extent, judged) = match is_editable {
            true => (ScanExtent::Whole, size),
            false => (ScanExtent::Start, DETECT_BYTES as u64),
        };
        let mut bytes = vec![0; PIECE_BYTES];
        let mut pass = |visit: &mut Visit<'_>| pass_over(&mut file, judged, &mut bytes, visit);
        let format = detect(&mut pass, extent).map_err(io_error)?;
        let format = format.map_err(|not_text| ReadError::of_bytes(not_text, shown))?;
        file.seek(SeekFrom::Start(0)).map_err(io_error)?;
        Ok(Self {
            target,
            shown: shown.to_owned(),
            // Text appended while the file is read is not waited for.
            file: file.take(size),
            stamp,
            format,
            decoder: format.decoder(),
            hash: is_editable.then(Sha256::new),
            bytes,
            text: String::new(),
            is_at_end: false,
        })
    }
}

fn pass_over(file: &mut File, limit: u64, buffer: &mut [u8], visit: &mut Visit<'_>) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    let mut file = file.take(limit);
    loop {
        let length = read_full(&mut file, buffer)?;
        if length == 0 || visit(&buffer[..length]) == ControlFlow::Break(()) {
            return Ok(());
        }
    }
}

/// Fills the buffer; less than all of it only at the end.
fn read_full(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use encoding_rs::{BIG5, EUC_JP, GB18030, GBK, SHIFT_JIS, WINDOWS_1252};

    use super::*;
    use crate::testing::Rig;
    use crate::workspace::Freshness;

    const CHINESE: &str =
        "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。\r\n";
    const TAIWANESE: &str =
        "人人生而自由,在尊嚴和權利上一律平等。他們賦有理性和良心,並應以兄弟關係的精神對待。\n";
    const JAPANESE: &str =
        "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。\n";
    const FRENCH: &str =
        "Tous les êtres humains naissent libres et égaux en dignité et en droits, déjà à l'été.\n";

    async fn stream(rig: &Rig, name: &str) -> TextStream {
        match rig.workspace().open(&rig.target(name)).await.unwrap() {
            OpenText::Stream(stream) => stream,
            OpenText::Whole(_) => panic!("{name} is read whole"),
        }
    }

    fn rest(stream: &mut TextStream) -> String {
        let mut text = String::new();
        while let Some(piece) = stream.next_piece().unwrap() {
            text.push_str(piece);
        }
        text
    }

    /// This many repetitions of a line exceed the size that is read whole, and more than one piece, in `encoded` bytes each.
    fn enough(encoded: &[u8]) -> usize {
        usize::try_from(MAX_WHOLE_BYTES).unwrap() / encoded.len() + 1
    }

    #[tokio::test]
    async fn every_encoding_is_streamed_as_it_is_read_whole() {
        type Encode = fn(&str) -> Vec<u8>;
        let utf_8: Encode = |text| text.as_bytes().to_vec();
        let utf_16_le: Encode = |text| text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let utf_16_be: Encode = |text| text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let cases: [(&str, &str, Encode, &str, &str); 12] = [
            ("UTF-8", "", utf_8, FRENCH, "é"),
            ("UTF-8 with BOM", "\u{feff}", utf_8, JAPANESE, "a"),
            ("UTF-16LE with BOM", "\u{feff}", utf_16_le, CHINESE, "没有"),
            ("UTF-16BE with BOM", "\u{feff}", utf_16_be, CHINESE, "没有"),
            ("UTF-16LE", "", utf_16_le, CHINESE, "没有"),
            ("UTF-16BE", "", utf_16_be, FRENCH, "é"),
            ("GBK", "", |text| GBK.encode(text).0.into_owned(), CHINESE, "没有"),
            ("gb18030", "", |text| GB18030.encode(text).0.into_owned(), CHINESE, "\u{20087}"),
            ("Big5", "", |text| BIG5.encode(text).0.into_owned(), TAIWANESE, "平"),
            ("Shift_JIS", "", |text| SHIFT_JIS.encode(text).0.into_owned(), JAPANESE, "a"),
            ("EUC-JP", "", |text| EUC_JP.encode(text).0.into_owned(), JAPANESE, "a"),
            ("windows-1252", "", |text| WINDOWS_1252.encode(text).0.into_owned(), FRENCH, "é"),
        ];
        for (name, mark, encode, line, last) in cases {
            // Mostly ASCII, which is quick to go through.
            let line = &format!("{line}{}\n", "plain ".repeat(50));
            let count = enough(&encode(line));
            let text = format!("{}{last}", line.repeat(count));
            let rig = Rig::new();
            rig.write("a.txt", [encode(mark), encode(line).repeat(count), encode(last)].concat());
            let mut stream = stream(&rig, "a.txt").await;
            assert_eq!(stream.format().to_string(), name);
            assert!(rest(&mut stream) == text, "{name}");
            rig.workspace().note_stream_read(&stream, &Portion::Whole);
            let whole = rig.workspace().text(&rig.target("a.txt")).await.unwrap();
            assert_eq!((whole.format, *whole.text == *text), (stream.format(), true), "{name}");
            assert_eq!(rig.workspace().freshness(&whole), Freshness::Current, "{name}");
        }
    }

    #[tokio::test]
    async fn only_a_stream_read_to_its_end_counts_as_read() {
        let rig = Rig::new();
        rig.write("a.txt", "line\n".repeat(enough(b"line\n")));
        let mut stream = stream(&rig, "a.txt").await;
        stream.next_piece().unwrap();
        rig.workspace().note_stream_read(&stream, &Portion::Whole);
        let whole = rig.workspace().text(&rig.target("a.txt")).await.unwrap();
        assert_eq!(rig.workspace().freshness(&whole), Freshness::Unread);
    }

    #[tokio::test]
    async fn documents_and_short_files_are_whole_and_binary_files_are_refused() {
        let rig = Rig::new();
        rig.write("short.txt", "x".repeat(usize::try_from(MAX_WHOLE_BYTES).unwrap()));
        rig.write("open.txt", "line\n".repeat(enough(b"line\n")));
        rig.open("open.txt", "unsaved");
        for name in ["short.txt", "open.txt"] {
            let open = rig.workspace().open(&rig.target(name)).await.unwrap();
            assert!(matches!(open, OpenText::Whole(_)), "{name}");
        }
        rig.write("late.bin", format!("{}\0", "line\n".repeat(enough(b"line\n"))));
        File::create(rig.path("sparse.bin")).unwrap().set_len(500 << 20).unwrap();
        for name in ["late.bin", "sparse.bin"] {
            let open = rig.workspace().open(&rig.target(name)).await;
            assert!(matches!(open, Err(ReadError::Binary { .. })), "{name}");
        }
    }
}
