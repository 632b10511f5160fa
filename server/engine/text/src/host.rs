//! The engine's one door out to whatever holds the user's text: an editor, or nothing at all (headless).
//!
//! Rule: nothing here moves focus, cursor or scroll, nothing waits without a limit, and an edit counts as made
//! only when the document itself has shown the new text.

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;

use crate::document::DocumentSnapshot;
use crate::edit::TextEdit;
use kode_base::ids::SessionId;
use kode_base::paths::{AbsPath, Target};

/// One attempt to edit one open document.
#[derive(Clone, Debug)]
pub struct DocumentEdit {
    /// The snapshot the edits were computed on; its version goes to the editor with them.
    pub base: DocumentSnapshot,
    /// Edits in byte offsets of the base text, sorted, not overlapping.
    pub edits: Vec<TextEdit>,
    /// The editor's label of the undo step.
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
        /// The editor's reason, or an observation instead of one.
        reason: String,
    },
    /// The editor never showed the new text within the limit.
    Unconfirmed {
        /// The awaited change, and the editor's answer meanwhile.
        reason: String,
    },
    /// The document was closed meanwhile: the file on disk decides now.
    Closed,
}

/// An event of an open document.
#[derive(Clone, Debug)]
pub enum DocumentEvent {
    /// It was opened, or opened again with another text.
    Opened(DocumentSnapshot),
    /// Its text changed, by any author.
    Changed {
        /// The document before.
        before: DocumentSnapshot,
        /// The document after.
        after: DocumentSnapshot,
        /// The changes, in byte offsets of the text before, sorted, neither overlapping nor touching; `None` when the
        /// editor sent a whole text and only a comparison can tell.
        edits: Option<Vec<TextEdit>>,
    },
    /// It was saved.
    Saved {
        /// The document as it was saved.
        document: DocumentSnapshot,
        /// Whether a person asked for it; false for an automatic save and for one the agent has asked for.
        by_user: bool,
    },
    /// It was closed; its text is what it was then.
    Closed(DocumentSnapshot),
}

impl DocumentEvent {
    /// The document, after what happened.
    #[must_use]
    pub fn document(&self) -> &DocumentSnapshot {
        match self {
            Self::Opened(document)
            | Self::Changed { after: document, .. }
            | Self::Saved { document, .. }
            | Self::Closed(document) => document,
        }
    }
}

/// A listener for open documents.
pub trait DocumentObserver: Send + Sync {
    /// Takes an event, in the order of events. Called while documents are locked: returns at once and calls nothing
    /// of the host.
    fn observe(&self, event: &DocumentEvent);
}

/// How a request to save a document ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaveOutcome {
    /// The file has the document's text.
    Saved,
    /// The document is not open.
    NotOpen,
    /// The editor has no way to be asked, or did not save.
    Failed {
        /// Why not.
        reason: String,
    },
}

/// The diagnostics of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiagnostics {
    /// The file or document.
    pub target: Target,
    /// Whether it is about an older text than the document has now.
    pub is_outdated: bool,
    /// The diagnostics, in no certain order.
    pub diagnostics: Vec<Diagnostic>,
}

/// One thing that a language server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1: in characters where the text is known, else as the editor counts.
    pub column: u32,
    /// How bad it is.
    pub severity: DiagnosticSeverity,
    /// The problem.
    pub message: String,
    /// Which server says so; may be empty.
    pub source: String,
    /// The server's name for it; may be empty.
    pub code: String,
}

/// How bad a diagnostic is, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiagnosticSeverity {
    /// It does not work.
    Error,
    /// It may not work.
    Warning,
    /// Good to know.
    Information,
    /// Could be nicer.
    Hint,
}

/// Why the editor told nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiagnosticsError {
    /// There is no editor, or it does not tell.
    #[error("there is no editor and no language server that provides diagnostics")]
    Unavailable,
    /// It was asked and failed, or took too long.
    #[error("no diagnostics came: {0}")]
    Failed(String),
}

/// The engine's interface to an editor. Implemented by the language server, and by headless runs with no
/// documents at all.
#[async_trait]
pub trait Host: Send + Sync + 'static {
    /// The open document for a file or URI, as the user sees it now.
    fn document(&self, target: &Target) -> Option<DocumentSnapshot>;

    /// The bytes of a document that is open and too large to be followed: nothing is known of its text.
    fn too_large(&self, _target: &Target) -> Option<u64> {
        None
    }

    /// All open documents, untitled ones included.
    fn documents(&self) -> Vec<DocumentSnapshot>;

    /// Tries once to edit an open document and says what the document showed afterwards.
    async fn edit_document(&self, edit: DocumentEdit) -> DocumentEditOutcome;

    /// Tells the observer of every event from now on, as long as it lives.
    fn observe_documents(&self, observer: Weak<dyn DocumentObserver>);

    /// Whether the editor saves documents when asked.
    fn can_save(&self) -> bool;

    /// Asks the editor to save an open document and waits, for a limited time, until it has.
    async fn save_document(&self, target: &Target) -> SaveOutcome;

    /// Asks the editor to delete the file of an open document that still has this version, and to close the document. Returns
    /// whether the editor did; `false` as well where it cannot be asked.
    async fn delete_document(&self, _document: &DocumentSnapshot) -> bool {
        false
    }

    /// Brings the document of a file or URI up to date, in an editor that has to be asked for it. Waits for a limited time; a
    /// host that sees every change does nothing.
    async fn refresh_document(&self, _target: &Target) {}

    /// Has the editor create a file that is not there, with this text. `None` where the editor takes no part in that: the file
    /// is written to the disk then.
    async fn create_document(&self, _target: &Target, _text: &str) -> Option<DocumentEditOutcome> {
        None
    }

    /// The host of one session with these folders, where the editor answers for each session apart.
    fn of_session(&self, _session: &SessionId, _roots: &[AbsPath]) -> Option<Arc<dyn Host>> {
        None
    }

    /// The language of the editor's own texts as it names it, such as `de` or `pt-BR`, if it does.
    fn locale(&self) -> Option<String> {
        None
    }

    /// Whether the editor tells what its language servers say.
    fn can_diagnose(&self) -> bool {
        false
    }

    /// Asks the editor what its language servers say about these files, about all of them when none is named, and
    /// waits for a limited time.
    ///
    /// # Errors
    /// [`DiagnosticsError`]; nothing is known then, which is not the same as nothing being wrong.
    async fn diagnostics(&self, _targets: &[Target]) -> Result<Vec<FileDiagnostics>, DiagnosticsError> {
        Err(DiagnosticsError::Unavailable)
    }

    /// The same after a change of these files: the editor waits until its servers have published, for `limit` at most.
    ///
    /// # Errors
    /// [`DiagnosticsError`].
    async fn settled_diagnostics(
        &self,
        targets: &[Target],
        _limit: Duration,
    ) -> Result<Vec<FileDiagnostics>, DiagnosticsError> {
        self.diagnostics(targets).await
    }
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

    fn observe_documents(&self, _observer: Weak<dyn DocumentObserver>) {}

    fn can_save(&self) -> bool {
        false
    }

    async fn save_document(&self, _target: &Target) -> SaveOutcome {
        SaveOutcome::NotOpen
    }
}
