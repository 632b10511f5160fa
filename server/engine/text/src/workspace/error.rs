//! Why a path or a text cannot be had.
//!
//! Rule: every error names the file, the problem and the next step.

use std::io;

use crate::workspace::overlay::MAX_FILE_BYTES;
use kode_base::call::{ToolError, ToolErrorKind};
use kode_base::encoding::NotText;

/// A path that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PathError(pub String);

/// A text that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is no such file.
    #[error("`{path}` does not exist")]
    NotFound {
        /// The file.
        path: String,
        /// A file with a similar name.
        suggestion: Option<String>,
    },
    /// The document is not open, and has no file.
    #[error("no document `{uri}` is open")]
    NotOpen {
        /// Its URI.
        uri: String,
    },
    /// It is a folder.
    #[error("`{path}` is a folder")]
    Directory {
        /// The folder.
        path: String,
    },
    /// It is a device, a pipe or a socket.
    #[error("`{path}` is not a regular file")]
    NotRegular {
        /// The thing.
        path: String,
    },
    /// It leads elsewhere than it did when the call was judged.
    #[error("`{path}` was replaced by a link while it was read")]
    Replaced {
        /// The file.
        path: String,
    },
    /// This user may not read it.
    #[error("`{path}` cannot be read: permission denied")]
    Denied {
        /// The file.
        path: String,
    },
    /// It is too large to be read as a whole.
    #[error("`{path}` is too large to be read as a whole: {size} bytes, the limit is {MAX_FILE_BYTES}")]
    TooLarge {
        /// The file.
        path: String,
        /// Its size in bytes.
        size: u64,
    },
    /// It is open in the editor, and its text there is not known.
    #[error(
        "`{path}` is open in the editor with a text that is too large to be followed ({size} bytes as the editor sent it)"
    )]
    NotFollowed {
        /// The file.
        path: String,
        /// The bytes of the editor's message.
        size: u64,
    },
    /// It is an image.
    #[error("`{path}` is an image ({format}), not text")]
    Image {
        /// The file.
        path: String,
        /// The image format.
        format: &'static str,
    },
    /// It is binary data.
    #[error("`{path}` is not text but {what}")]
    Binary {
        /// The file.
        path: String,
        /// Its apparent kind.
        what: &'static str,
    },
    /// The system failed to read it.
    #[error("`{path}` cannot be read: {source}")]
    Io {
        /// The file.
        path: String,
        /// The system's reason.
        source: io::Error,
    },
}

impl ReadError {
    /// The next step.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NotFound { suggestion: Some(similar), .. } => format!("Did you mean `{similar}`?"),
            Self::NotFound { suggestion: None, .. } => {
                "Check the path, or find the file with Glob.".to_owned()
            }
            Self::NotOpen { .. } => "Name a file, or a document that is open in the editor.".to_owned(),
            Self::Directory { .. } => "List the files in it with Glob, then name one of them.".to_owned(),
            Self::NotRegular { .. } => "Name a regular file.".to_owned(),
            Self::Replaced { .. } => "Nothing was read. Read it again to have the permission checked again.".to_owned(),
            Self::Denied { .. } => "Ask the user to change the file's permissions.".to_owned(),
            Self::TooLarge { .. } => "Search it with Grep, or read parts of it with Bash.".to_owned(),
            Self::NotFollowed { .. } => {
                "Nothing was read or changed, because the user may have unsaved changes in it. Ask the user to save and close it in \
                 the editor first."
                    .to_owned()
            }
            Self::Image { .. } => "Ask the user to describe it, or use a tool that reads images.".to_owned(),
            Self::Binary { .. } => "Inspect it with Bash if its contents matter.".to_owned(),
            Self::Io { .. } => "Check the file and its file system, then try again.".to_owned(),
        }
    }
}

impl From<ReadError> for ToolError {
    fn from(error: ReadError) -> Self {
        let kind = match error {
            ReadError::NotFound { .. } | ReadError::NotOpen { .. } => ToolErrorKind::NotFound,
            ReadError::Denied { .. } | ReadError::Replaced { .. } => ToolErrorKind::Forbidden,
            ReadError::Directory { .. }
            | ReadError::NotRegular { .. }
            | ReadError::TooLarge { .. }
            | ReadError::NotFollowed { .. }
            | ReadError::Image { .. }
            | ReadError::Binary { .. } => ToolErrorKind::Mismatch,
            ReadError::Io { .. } => ToolErrorKind::Failed,
        };
        Self::new(kind, error.to_string(), error.hint())
    }
}

impl From<PathError> for ToolError {
    fn from(error: PathError) -> Self {
        Self::new(
            ToolErrorKind::InvalidInput,
            error.0,
            "Give an absolute path, a path relative to the working folder, or the URI of an open document.",
        )
    }
}

/// Why bytes could not be read, before it is known what the file is called.
#[derive(Debug)]
pub(super) enum BytesError {
    Directory,
    NotRegular,
    Replaced,
    TooLarge(u64),
    Io(io::Error),
}

impl BytesError {
    pub(super) fn into_read_error(self, shown: &str) -> ReadError {
        let path = shown.to_owned();
        match self {
            Self::Directory => ReadError::Directory { path },
            Self::NotRegular => ReadError::NotRegular { path },
            Self::Replaced => ReadError::Replaced { path },
            Self::TooLarge(size) => ReadError::TooLarge { path, size },
            Self::Io(source) => match source.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                    ReadError::NotFound { path, suggestion: None }
                }
                io::ErrorKind::PermissionDenied => ReadError::Denied { path },
                _ => ReadError::Io { path, source },
            },
        }
    }
}

impl ReadError {
    /// The error of a file whose bytes are no text.
    pub(super) fn of_bytes(not_text: NotText, shown: &str) -> Self {
        let path = shown.to_owned();
        match not_text {
            NotText::Image(format) => Self::Image { path, format },
            NotText::Binary(what) => Self::Binary { path, what },
        }
    }
}

impl From<io::Error> for BytesError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
