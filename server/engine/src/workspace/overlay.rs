//! SKELETON: the owner of this file replaces every body; signatures are what others call.
use std::sync::Arc;

use crate::host::{DocumentSnapshot, Host};
use crate::paths::{AbsPath, Target};
use crate::workspace::encoding::TextFormat;

/// The text of a file as the user sees it.
#[derive(Clone, Debug)]
pub struct FileText {
    /// What it is the text of.
    pub target: Target,
    /// Where it came from.
    pub source: Source,
    /// The text, decoded, line endings as they are, without byte order mark.
    pub text: Arc<str>,
    /// How it is written on disk.
    pub format: TextFormat,
    /// SHA-256 of the bytes on disk, or of the document's text.
    pub hash: [u8; 32],
}

/// Where a text came from.
#[derive(Clone, Debug)]
pub enum Source {
    /// An open document.
    Document(DocumentSnapshot),
    /// The file on disk.
    Disk,
}

/// What the session knows of a text compared with what is there now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Never read in this session.
    Unread,
    /// As it was read.
    Current,
    /// Changed since it was read.
    Changed,
}

/// A path that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PathError(pub String);

/// A text that cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ReadError(pub String);

/// A session's view of the user's files.
pub struct Workspace {}

impl Workspace {
    /// A view of the workspace folders `roots`; relative paths are taken from `cwd`.
    pub fn new(host: Arc<dyn Host>, roots: Vec<AbsPath>, cwd: AbsPath) -> Self {
        let _ = (host, roots, cwd);
        unimplemented!()
    }
    /// The folders of the workspace.
    pub fn roots(&self) -> &[AbsPath] {
        unimplemented!()
    }
    /// Where relative paths start.
    pub fn cwd(&self) -> AbsPath {
        unimplemented!()
    }
    /// Turns what the model wrote (absolute, relative, `~/`, `file:` or `untitled:` URI) into a target.
    pub fn resolve(&self, path: &str) -> Result<Target, PathError> {
        let _ = path;
        unimplemented!()
    }
    /// Whether the target, and what it links to, lies in a folder of the workspace.
    pub fn contains(&self, target: &Target) -> bool {
        let _ = target;
        unimplemented!()
    }
    /// The short form of a target for people: relative to the workspace where possible.
    pub fn display(&self, target: &Target) -> String {
        target.to_string()
    }
    /// All open documents.
    pub fn documents(&self) -> Vec<DocumentSnapshot> {
        unimplemented!()
    }
    /// The text as the user sees it: open document, else disk.
    pub async fn text(&self, target: &Target) -> Result<FileText, ReadError> {
        let _ = target;
        unimplemented!()
    }
    /// Notes that the session has read this text.
    pub fn note_read(&self, file: &FileText) {
        let _ = file;
    }
    /// Compares a text with what the session has read.
    pub fn freshness(&self, file: &FileText) -> Freshness {
        let _ = file;
        unimplemented!()
    }
}
