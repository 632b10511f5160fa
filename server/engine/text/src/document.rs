//! An open document of the editor, as it is at one moment.
//!
//! Rule: a snapshot never changes.

use ropey::Rope;

use kode_base::paths::{AbsPath, Target};

/// An open document as the user sees it at this moment. Cloning is cheap: the rope is shared.
#[derive(Clone, Debug)]
pub struct DocumentSnapshot {
    /// The URI, percent-encoded as URLs are.
    pub uri: String,
    /// The file behind the document; `None` for untitled documents and foreign schemes.
    pub path: Option<AbsPath>,
    /// The editor's language id, for example `rust`.
    pub language_id: String,
    /// The editor's version number of this text.
    pub version: i32,
    /// The text, line endings as in the editor.
    pub text: Rope,
}

impl DocumentSnapshot {
    /// The name of this document for tools.
    #[must_use]
    pub fn target(&self) -> Target {
        match &self.path {
            Some(path) => Target::File(path.clone()),
            None => Target::Untitled(self.uri.clone()),
        }
    }
}
