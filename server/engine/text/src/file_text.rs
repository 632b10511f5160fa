//! The text of a file or of an open document as the user sees it, and what tells that it is still the same.
//!
//! Rule: a value never changes; nothing here reads the disk.

use std::fs::Metadata;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use crate::document::DocumentSnapshot;
use kode_base::encoding::{EncodeError, NotText, TextFormat};
use kode_base::paths::Target;

/// A file that was changed less than this before it was checked may change again without a new date: some file
/// systems count in two seconds.
pub(crate) const DATE_GRANULARITY: Duration = Duration::from_secs(2);

/// The stamp that shows without reading whether a text is still the checked one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TextStamp {
    /// The version of an open document.
    Document { uri: String, version: i32 },
    /// The metadata of a file.
    File(FileStamp),
}

/// The metadata of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    pub(crate) modified: Option<SystemTime>,
    pub(crate) size: u64,
    /// Inode number and time of the last change of any kind, where there are such.
    pub(crate) inode: (u64, i64, i64),
    pub(crate) taken: SystemTime,
}

impl TextStamp {
    pub(crate) fn of_document(document: &DocumentSnapshot) -> Self {
        Self::Document { uri: document.uri.clone(), version: document.version }
    }

    /// When a file was last changed.
    pub(crate) fn modified(&self) -> Option<SystemTime> {
        match self {
            Self::File(stamp) => stamp.modified,
            Self::Document { .. } => None,
        }
    }
}

impl FileStamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let inode = {
            use std::os::unix::fs::MetadataExt;
            (metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
        };
        #[cfg(not(unix))]
        let inode = (0, 0, 0);
        Self { modified: metadata.modified().ok(), size: metadata.len(), inode, taken: SystemTime::now() }
    }

    /// The size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Whether a file that looked like this and now looks like `now` certainly has the same content.
    pub(crate) fn proves(&self, now: &Self) -> bool {
        let is_same = (self.modified, self.size, self.inode) == (now.modified, now.size, now.inode);
        is_same && self.modified.is_some_and(|modified| self.has_settled(modified)) && {
            let (_, seconds, _) = self.inode;
            let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
            self.has_settled(changed)
        }
    }

    fn has_settled(&self, moment: SystemTime) -> bool {
        self.taken.duration_since(moment).is_ok_and(|age| age >= DATE_GRANULARITY)
    }
}

/// The text of a file as the user sees it.
#[derive(Clone, Debug)]
pub struct FileText {
    /// The place of the text.
    pub target: Target,
    /// Where it came from.
    pub source: TextSource,
    /// The text, decoded, line endings as they are, without byte order mark.
    pub text: Arc<str>,
    /// How it is written on disk. UTF-8 for an open document: there the editor decides.
    pub format: TextFormat,
    /// SHA-256 of the bytes on disk, or of the document's text.
    pub hash: [u8; 32],
    /// The stamp that shows without reading whether it is still the same.
    pub(crate) stamp: TextStamp,
}

/// Where a text came from.
#[derive(Clone, Debug)]
pub enum TextSource {
    /// An open document.
    Document(DocumentSnapshot),
    /// The file on disk.
    Disk,
}

impl FileText {
    /// When its file was last changed; `None` for an open document.
    #[must_use]
    pub fn modified(&self) -> Option<std::time::SystemTime> {
        self.stamp.modified()
    }

    /// SHA-256 of the text, whatever its encoding.
    pub(crate) fn text_hash(&self) -> [u8; 32] {
        // The bytes of the text are those on the disk then, or differ where some mean nothing in UTF-8.
        let is_text = self.format == TextFormat::UTF_8 && !self.text.contains(char::REPLACEMENT_CHARACTER);
        if is_text { self.hash } else { hash(self.text.as_bytes()) }
    }

    /// The version of the open document it is from; `None` for a file.
    #[must_use]
    pub fn version(&self) -> Option<i32> {
        match &self.source {
            TextSource::Document(document) => Some(document.version),
            TextSource::Disk => None,
        }
    }

    /// Checks that the text can be written back without changing a byte that no edit touches, and that `new_text`
    /// fits its encoding. Open documents always can: their editor writes them.
    ///
    /// # Errors
    /// [`EncodeError`] with the reason.
    pub fn check_writable_as(&self, new_text: &str) -> Result<(), EncodeError> {
        match self.source {
            TextSource::Document(_) => Ok(()),
            TextSource::Disk => {
                let not_faithful = || EncodeError::NotFaithful { encoding: self.format.to_string() };
                let written = self.format.encode(&self.text).map_err(|_| not_faithful())?;
                if hash(&written) != self.hash {
                    return Err(not_faithful());
                }
                self.format.encode(new_text).map(drop)
            }
        }
    }

    /// The same file with another text, as if that had been written.
    ///
    /// # Errors
    /// [`EncodeError`] where the encoding of the file has no bytes for it.
    pub fn rewritten(&self, text: Arc<str>) -> Result<Self, EncodeError> {
        let hash = match self.source {
            TextSource::Document(_) => hash(text.as_bytes()),
            TextSource::Disk => hash(&self.format.encode(&text)?),
        };
        Ok(Self { text, hash, ..self.clone() })
    }

    pub(crate) fn of_document(target: Target, document: DocumentSnapshot) -> Self {
        let text: Arc<str> = document.text.to_string().into();
        let hash = hash(text.as_bytes());
        let stamp = TextStamp::of_document(&document);
        Self { target, source: TextSource::Document(document), text, format: TextFormat::UTF_8, hash, stamp }
    }

    pub(crate) fn of_bytes(target: Target, bytes: &[u8], stamp: TextStamp) -> Result<Self, NotText> {
        let decoded = kode_base::encoding::decode(bytes)?;
        let (text, format) = (decoded.text.into(), decoded.format);
        Ok(Self { target, source: TextSource::Disk, text, format, hash: hash(bytes), stamp })
    }
}

pub(crate) fn hash(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kode_base::paths::AbsPath;

    #[test]
    fn the_hash_of_a_text_is_that_of_its_characters_in_every_encoding() {
        let stamp = |bytes: &[u8]| {
            let size = bytes.len() as u64;
            TextStamp::File(FileStamp {
                modified: None,
                size,
                inode: (0, 0, 0),
                taken: SystemTime::UNIX_EPOCH,
            })
        };
        let texts: [&[u8]; 6] =
            [b"", b"abc\r\n", "h\u{e9}".as_bytes(), b"\xef\xbb\xbfabc", b"\xff\xfea\0b\0", b"caf\xe9"];
        let damaged = [&b"\xff"[..], "\u{e9}".repeat(9).as_bytes()].concat();
        for bytes in texts.into_iter().chain([damaged.as_slice()]) {
            let target = Target::File(AbsPath::new("/a").unwrap());
            let file = FileText::of_bytes(target, bytes, stamp(bytes)).unwrap();
            assert_eq!(file.text_hash(), hash(file.text.as_bytes()), "{bytes:?}");
        }
    }

    #[test]
    fn a_date_proves_something_only_when_it_was_old_at_the_look() {
        let moment = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let stamp = |modified, changed, taken| FileStamp {
            modified: Some(moment(modified)),
            size: 1,
            inode: (1, changed, 0),
            taken: moment(taken),
        };
        let later = |stamp: &FileStamp| FileStamp { taken: moment(1_000), ..stamp.clone() };
        for (looked, expected) in
            [(stamp(10, 10, 12), true), (stamp(10, 10, 11), false), (stamp(10, 11, 12), false)]
        {
            assert_eq!(looked.proves(&later(&looked)), expected, "{looked:?}");
        }
        let looked = stamp(10, 10, 12);
        assert!(!looked.proves(&FileStamp { size: 2, ..looked.clone() }));
        assert!(!looked.proves(&FileStamp { inode: (2, 10, 0), ..looked.clone() }));
    }
}
