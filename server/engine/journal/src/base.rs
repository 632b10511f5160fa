//! The base of a session: what the first part of its journal adds up to, so that only the rest is folded when it is opened.
//!
//! Rule: it is a cache. One that was written by another build, that is damaged, or that does not belong to the journal
//! beside it, is not used; an interrupted write leaves the one before.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::iter;
use std::path::Path;

use kode_base::file_moves;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::disk::write_atomically;

/// The name of the file in a session's folder.
pub const BASE: &str = "base.bin";

/// Number of bytes at the beginning of a journal, and before the base's place, that identify the journal.
const LOOKED_AT: u64 = 4 * 1024;

/// The longest first line of a base.
const HEADER_LIMIT: u64 = 4 * 1024;

/// Which part of which journal a base is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseMark {
    /// The bytes of the journal that are in it, up to the end of a line.
    pub offset: u64,
    /// The checksum of the first bytes of the journal.
    head: u32,
    /// The checksum of the last bytes before `offset`.
    tail: u32,
}

/// The text before the content of a base: one line of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseHeader {
    /// The form of the content.
    form: String,
    /// The part of the journal.
    pub mark: BaseMark,
    /// How many bytes of the shelf belong to it.
    pub shelf: u64,
    /// The bytes of the content.
    len: u64,
    /// The checksum of them, and of what this line says beside it.
    check: u32,
}

/// How many bytes a piece of a content has.
const PIECE: usize = 64 << 10;

/// A content as bytes, in pieces: a single buffer would be copied as it grows to some megabytes, and leave its larger blocks with
/// the allocator.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ContentBytes(Vec<Vec<u8>>);

/// A base as it was read.
#[derive(Debug)]
pub struct Base {
    /// The text before the content.
    pub header: BaseHeader,
    content: Vec<u8>,
}

/// Why a base is not used.
#[derive(Debug, thiserror::Error)]
pub enum BaseError {
    /// The system says so.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It differs from the written data.
    #[error("it is damaged")]
    Damaged,
    /// Another build has written it.
    #[error("another version has written it")]
    Form,
    /// The journal is another one than it was.
    #[error("the journal is another one, or shorter than it was")]
    Journal,
    /// Its content is of another form than it says.
    #[error("its content cannot be read: {0}")]
    Content(#[from] serde_json::Error),
}

impl BaseMark {
    /// Marks the first `offset` bytes of a journal.
    ///
    /// # Errors
    /// The error of the system; of kind [`io::ErrorKind::UnexpectedEof`] when there are fewer.
    pub fn of(journal: &Path, offset: u64) -> io::Result<Self> {
        let mut file = File::open(journal)?;
        let len = offset.min(LOOKED_AT);
        Ok(Self { offset, head: check(&mut file, 0, len)?, tail: check(&mut file, offset - len, len)? })
    }
}

impl BaseHeader {
    /// The checksum of a content and of its description.
    fn checked<'a>(&self, content: impl IntoIterator<Item = &'a [u8]>) -> io::Result<u32> {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&serde_json::to_vec(&(&self.form, &self.mark, self.shelf, self.len))?);
        content.into_iter().for_each(|piece| hasher.update(piece));
        Ok(hasher.finalize())
    }
}

impl ContentBytes {
    /// How many there are.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.0.iter().map(|piece| piece.len() as u64).sum()
    }

    fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(Vec::as_slice)
    }
}

impl Write for ContentBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.last().is_none_or(|last| last.len() == PIECE) {
            self.0.push(Vec::with_capacity(PIECE));
        }
        let Some(last) = self.0.last_mut() else { return Ok(0) };
        let count = bytes.len().min(PIECE - last.len());
        last.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes what a base holds as bytes.
///
/// # Errors
/// When it has no written form.
pub fn encode(content: &impl Serialize) -> io::Result<ContentBytes> {
    let mut bytes = ContentBytes::default();
    serde_json::to_writer(&mut bytes, content)?;
    Ok(bytes)
}

/// Replaces the base, in one step. `form` names what the content is made by: another build reads its own form alone.
///
/// # Errors
/// The error of the system; the one that was there is left then.
pub fn write(path: &Path, form: &str, mark: BaseMark, shelf: u64, content: &ContentBytes) -> io::Result<()> {
    let mut header = BaseHeader { form: form.to_owned(), mark, shelf, len: content.size(), check: 0 };
    header.check = header.checked(content.pieces())?;
    let mut header = serde_json::to_vec(&header)?;
    header.push(b'\n');
    let pieces: Vec<&[u8]> = iter::once(header.as_slice()).chain(content.pieces()).collect();
    write_atomically(path, &pieces)
}

/// Reads the base of a journal, if there is one.
///
/// # Errors
/// [`BaseError`]; it is not to be used then.
pub fn read(path: &Path, form: &str, journal: &Path) -> Result<Option<Base>, BaseError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut start = Vec::new();
    Read::by_ref(&mut file).take(HEADER_LIMIT).read_to_end(&mut start)?;
    let end = start.iter().position(|byte| *byte == b'\n').ok_or(BaseError::Damaged)?;
    let header: BaseHeader = serde_json::from_slice(&start[..end]).map_err(|_| BaseError::Damaged)?;
    if header.form != form {
        return Err(BaseError::Form);
    }
    if file.metadata()?.len() != end as u64 + 1 + header.len {
        return Err(BaseError::Damaged);
    }
    match BaseMark::of(journal, header.mark.offset) {
        Ok(mark) if mark == header.mark => {}
        Ok(_) => return Err(BaseError::Journal),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(BaseError::Journal),
        Err(error) => return Err(error.into()),
    }
    let begun = &start[end + 1..];
    let mut content = Vec::new();
    content
        .try_reserve_exact(usize::try_from(header.len).map_err(io::Error::other)?)
        .map_err(io::Error::other)?;
    content.extend_from_slice(begun);
    file.take(header.len.saturating_sub(begun.len() as u64)).read_to_end(&mut content)?;
    match header.checked([content.as_slice()])? == header.check {
        true => Ok(Some(Base { header, content })),
        false => Err(BaseError::Damaged),
    }
}

/// Removes a base, because what it leans on is about to change.
///
/// # Errors
/// The error of the system.
pub fn remove(path: &Path) -> io::Result<()> {
    match file_moves::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

impl Base {
    /// How many bytes its content has.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.header.len
    }

    /// Its content.
    ///
    /// # Errors
    /// [`BaseError::Content`].
    pub fn content<T: DeserializeOwned>(&self) -> Result<T, BaseError> {
        Ok(serde_json::from_slice(&self.content)?)
    }
}

fn check(file: &mut File, at: u64, len: u64) -> io::Result<u32> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    Read::by_ref(file).take(len).read_to_end(&mut bytes)?;
    if bytes.len() as u64 != len {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(crc32fast::hash(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: &str = "0123456789abcdef";

    fn put(folder: &Path, content: &str) {
        let mark = BaseMark::of(&folder.join("journal"), 10).unwrap();
        write(&folder.join(BASE), FORM, mark, 7, &encode(&content).unwrap()).unwrap();
    }

    fn get(folder: &Path) -> Result<Option<String>, BaseError> {
        read(&folder.join(BASE), FORM, &folder.join("journal"))?.map(|base| base.content()).transpose()
    }

    #[test]
    fn a_base_comes_back_as_long_as_the_journal_continues() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal");
        std::fs::write(&journal, "line 1 ab\nline 2\n").unwrap();
        assert!(get(folder.path()).unwrap().is_none());
        put(folder.path(), "one");
        put(folder.path(), "two");
        assert_eq!(get(folder.path()).unwrap().unwrap(), "two");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left behind");
        std::fs::write(&journal, "line 1 ab\nanother 2\nand more\n").unwrap();
        assert_eq!(get(folder.path()).unwrap().unwrap(), "two");
        for other in ["line 1 ac\nline 2\n", "line 1 ab", ""] {
            std::fs::write(&journal, other).unwrap();
            assert!(matches!(get(folder.path()), Err(BaseError::Journal)), "{other:?}");
        }
    }

    #[test]
    fn a_content_of_any_size_comes_back_and_takes_pieces_of_one_size() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("journal"), "line 1 ab\n").unwrap();
        // Beside the text there are two quotation marks.
        for size in [0, 1, PIECE - 3, PIECE - 2, PIECE - 1, 3 * PIECE - 2, 5 * PIECE + 7] {
            let text = "0123456789".repeat(size / 10 + 1)[..size].to_owned();
            let content = encode(&text).unwrap();
            assert_eq!(content.size(), size as u64 + 2);
            let (last, whole) = content.0.split_last().unwrap();
            assert!(whole.iter().all(|piece| piece.len() == PIECE) && (1..=PIECE).contains(&last.len()));
            put(folder.path(), &text);
            assert!(get(folder.path()).unwrap().unwrap() == text, "{size}");
        }
    }

    #[test]
    fn a_base_with_one_wrong_byte_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("journal"), "line 1 ab\n").unwrap();
        put(folder.path(), "content");
        let path = folder.path().join(BASE);
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            let got = get(folder.path());
            assert!(got.is_err(), "byte {at}");
            std::fs::write(&path, &good[..at]).unwrap();
            assert!(get(folder.path()).is_err(), "cut at {at}");
        }
        let other = String::from_utf8_lossy(&good).replacen(FORM, &"f".repeat(FORM.len()), 1);
        std::fs::write(&path, other).unwrap();
        assert!(matches!(get(folder.path()), Err(BaseError::Form)));
    }
}
