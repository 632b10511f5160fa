//! The engine's one door out to whatever holds the user's text: an editor, or nothing at all (headless).
//!
//! Rule: nothing here moves focus, cursor or scroll, nothing waits without a limit, and an edit counts as made
//! only when the document itself has shown the new text.

use async_trait::async_trait;
use ropey::Rope;

use crate::edit::TextEdit;
use crate::paths::{AbsPath, Target};

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
    /// What tools call this document.
    #[must_use]
    pub fn target(&self) -> Target {
        match &self.path {
            Some(path) => Target::File(path.clone()),
            None => Target::Untitled(self.uri.clone()),
        }
    }
}

/// One attempt to edit one open document.
#[derive(Clone, Debug)]
pub struct DocumentEdit {
    /// The snapshot the edits were computed on; its version goes to the editor with them.
    pub base: DocumentSnapshot,
    /// Edits in byte offsets of the base text, sorted, not overlapping.
    pub edits: Vec<TextEdit>,
    /// What the editor shows as the name of the undo step.
    pub label: String,
}

/// How one attempt to edit an open document ended.
#[derive(Clone, Debug)]
pub enum DocumentEditOutcome {
    /// The document has shown the new text; the snapshot is the document at that moment and may already hold
    /// more of the user's typing.
    Applied(DocumentSnapshot),
    /// The document had moved on before the edit arrived and was not changed by it: rebase and try again.
    Stale,
    /// The editor refused although the document had not changed.
    Rejected {
        /// The editor's reason, or what was seen instead of one.
        reason: String,
    },
    /// The editor never showed the new text within the limit.
    Unconfirmed {
        /// What was waited for, and what the editor said meanwhile.
        reason: String,
    },
    /// The document was closed meanwhile: the file on disk decides now.
    Closed,
}

/// What the engine needs from an editor. Implemented by the language server, and by headless runs with no
/// documents at all.
#[async_trait]
pub trait Host: Send + Sync + 'static {
    /// The open document for a file or URI, as the user sees it now.
    fn document(&self, target: &Target) -> Option<DocumentSnapshot>;

    /// All open documents, untitled ones included.
    fn documents(&self) -> Vec<DocumentSnapshot>;

    /// Tries once to edit an open document and says what the document showed afterwards.
    async fn edit_document(&self, edit: DocumentEdit) -> DocumentEditOutcome;
}

/// The host of headless runs: no editor, so no open documents.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEditor;

#[async_trait]
impl Host for NoEditor {
    fn document(&self, _target: &Target) -> Option<DocumentSnapshot> {
        None
    }

    fn documents(&self) -> Vec<DocumentSnapshot> {
        Vec::new()
    }

    async fn edit_document(&self, _edit: DocumentEdit) -> DocumentEditOutcome {
        DocumentEditOutcome::Closed
    }
}
