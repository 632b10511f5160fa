//! The effect of a command on a file, as values that a journal can hold.
//!
//! Rule: an image either suffices to restore a file byte for byte or says plainly why it does not. Names that are
//! not Unicode survive being written as JSON.

use std::path::PathBuf;
use std::{fmt, io};

use serde::{Deserialize, Serialize};

use kode_base::paths::AbsPath;
use kode_journal::BlobId;

/// The effect of a command on one path. A renamed file is deleted at one and created at the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellChange {
    /// The file or link.
    #[serde(with = "lossless")]
    pub path: AbsPath,
    /// The content before the command.
    pub before: FileImage,
    /// The content after it.
    pub after: FileImage,
}

/// The content at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum FileImage {
    /// No file and no link. A folder may be there: folders are not tracked.
    Absent,
    /// A file whose bytes are kept.
    Kept {
        /// Its bytes.
        blob: BlobId,
        /// Its mode bits, `0o7777` at most; without Unix permissions only their write bit counts.
        mode: u32,
    },
    /// A symbolic link.
    Symlink {
        /// Its text, not followed.
        #[serde(with = "lossless")]
        target: PathBuf,
    },
    /// Something that cannot be restored, nor recognized.
    NotKept {
        /// Why not.
        reason: NotKeptReason,
    },
}

/// Why the bytes of a file are not kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum NotKeptReason {
    /// The file is larger than the limit of one file.
    TooLarge {
        /// Its size in bytes.
        size: u64,
    },
    /// All files together exceed the limit.
    NoRoom,
    /// There was no time to read it.
    OutOfTime,
    /// This user may not read it.
    PermissionDenied,
    /// It was not checked: there were too many files, or it may have been an ignored one, so that not even its
    /// absence is known.
    NotCovered,
    /// It is a pipe, a socket or a device.
    NotAFile,
    /// The system failed to read it or to keep its bytes.
    Failed {
        /// The error of the system.
        error: String,
    },
}

impl NotKeptReason {
    pub(super) fn unreadable(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::PermissionDenied,
            _ => Self::Failed { error: error.to_string() },
        }
    }
}

impl fmt::Display for NotKeptReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { size } => write!(formatter, "it is too large to be kept ({size} bytes)"),
            Self::NoRoom => formatter.write_str("the files of the workspace are too large to be kept"),
            Self::OutOfTime => formatter.write_str("there was no time to read it"),
            Self::PermissionDenied => formatter.write_str("it cannot be read: permission denied"),
            Self::NotCovered => {
                formatter.write_str("it was ignored, or there were too many files to compare")
            }
            Self::NotAFile => formatter.write_str("it is not a regular file"),
            Self::Failed { error } => write!(formatter, "it could not be kept: {error}"),
        }
    }
}

/// Paths in JSON: text where they are Unicode, else their bytes.
mod lossless {
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum PathText {
        Text(String),
        Bytes { bytes: Vec<u8> },
    }

    pub(super) fn serialize<S: Serializer>(path: impl AsRef<Path>, serializer: S) -> Result<S::Ok, S::Error> {
        let name = path.as_ref().as_os_str();
        let written = match name.to_str() {
            Some(text) => PathText::Text(text.to_owned()),
            None => PathText::Bytes { bytes: name.as_encoded_bytes().to_vec() },
        };
        written.serialize(serializer)
    }

    pub(super) fn deserialize<'de, P, D>(deserializer: D) -> Result<P, D::Error>
    where
        P: TryFrom<PathBuf, Error: std::fmt::Display>,
        D: Deserializer<'de>,
    {
        let name = match PathText::deserialize(deserializer)? {
            PathText::Text(text) => OsString::from(text),
            PathText::Bytes { bytes } => os_string(bytes).map_err(D::Error::custom)?,
        };
        P::try_from(PathBuf::from(name)).map_err(D::Error::custom)
    }

    #[cfg(unix)]
    fn os_string(bytes: Vec<u8>) -> Result<OsString, std::string::FromUtf8Error> {
        Ok(std::os::unix::ffi::OsStringExt::from_vec(bytes))
    }

    #[cfg(not(unix))]
    fn os_string(bytes: Vec<u8>) -> Result<OsString, std::string::FromUtf8Error> {
        String::from_utf8(bytes).map(OsString::from)
    }
}
