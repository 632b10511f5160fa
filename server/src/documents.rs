//! The open documents as the editor describes them: one owner, changed in arrival order, read as snapshots.
//!
//! Rule: only the sync handlers change a document, and they do so before their first await; the lock is held for
//! one change at a time and never across an await. Whatever an editor gets wrong is logged and survived.

mod expectation;
mod uri;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kode_engine::edit::TextEdit;
use kode_engine::host::DocumentSnapshot;
use kode_engine::paths::Target;
use lsp_types::{
    DidChangeTextDocumentParams, TextDocumentContentChangeEvent, TextDocumentIdentifier, TextDocumentItem,
    Url,
};
use ropey::Rope;

pub use expectation::{Expectation, Settled};
pub use uri::file_path;

use crate::lsp::PositionEncoding;
use expectation::{COMPARE_BUDGET, Expected};
use uri::DocumentKey;

/// All open documents.
#[derive(Debug, Default)]
pub struct Documents {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    encoding: PositionEncoding,
    open: HashMap<DocumentKey, Document>,
}

#[derive(Debug)]
struct Document {
    snapshot: DocumentSnapshot,
    expected: Vec<Expected>,
    edit_turn: Arc<tokio::sync::Mutex<()>>,
}

/// Why an edit of a document cannot be awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectError {
    /// The document is not the text the edit was computed on any more.
    Stale,
    /// The document is not open.
    Closed,
}

impl Documents {
    /// Sets what positions count, once it is negotiated.
    pub fn set_encoding(&self, encoding: PositionEncoding) {
        self.lock().encoding = encoding;
    }

    /// What positions count.
    #[must_use]
    pub fn encoding(&self) -> PositionEncoding {
        self.lock().encoding
    }

    /// The document with this URI, in any spelling.
    #[must_use]
    pub fn snapshot(&self, uri: &Url) -> Option<DocumentSnapshot> {
        self.find(&DocumentKey::of(uri))
    }

    /// The document for a file or for the URI of a document without a file.
    #[must_use]
    pub fn snapshot_of(&self, target: &Target) -> Option<DocumentSnapshot> {
        self.find(&DocumentKey::of_target(target))
    }

    /// All open documents, by URI.
    #[must_use]
    pub fn all(&self) -> Vec<DocumentSnapshot> {
        let mut all: Vec<_> = self.lock().open.values().map(|document| document.snapshot.clone()).collect();
        all.sort_unstable_by(|a, b| a.uri.cmp(&b.uri));
        all
    }

    /// Takes up a document the editor opened. One that is open already takes the new text.
    pub fn open(&self, item: TextDocumentItem) {
        let snapshot = DocumentSnapshot {
            path: file_path(&item.uri),
            language_id: item.language_id,
            version: item.version,
            text: Rope::from_str(&item.text),
            uri: item.uri.to_string(),
        };
        let mut state = self.lock();
        match state.open.get_mut(&DocumentKey::of(&item.uri)) {
            Some(document) => {
                tracing::warn!(uri = %item.uri, "the editor opened a document that was open; its new text counts");
                document.snapshot = snapshot;
                document.observe(true, &mut 0);
            }
            None => {
                let document = Document {
                    snapshot,
                    expected: Vec::new(),
                    edit_turn: Arc::new(tokio::sync::Mutex::new(())),
                };
                state.open.insert(DocumentKey::of(&item.uri), document);
            }
        }
    }

    /// Applies the changes of one notification, in their order.
    pub fn change(&self, params: DidChangeTextDocumentParams) {
        let DidChangeTextDocumentParams { text_document: changed, content_changes } = params;
        let mut state = self.lock();
        let encoding = state.encoding;
        let Some(document) = state.open.get_mut(&DocumentKey::of(&changed.uri)) else {
            tracing::warn!(uri = %changed.uri, "the editor changed a document it never opened; ignored");
            return;
        };
        if changed.version <= document.snapshot.version {
            tracing::warn!(
                uri = %changed.uri, from = document.snapshot.version, to = changed.version,
                "the version of a document did not grow; the change is applied all the same"
            );
        }
        document.snapshot.version = changed.version;
        let mut budget = COMPARE_BUDGET;
        let mut changes = content_changes.into_iter().peekable();
        while let Some(change) = changes.next() {
            apply_change(&mut document.snapshot.text, change, encoding);
            document.observe(changes.peek().is_none(), &mut budget);
        }
    }

    /// Forgets a document the editor closed. Edits that are still awaited end as closed.
    pub fn close(&self, document: &TextDocumentIdentifier) {
        let Some(closed) = self.lock().open.remove(&DocumentKey::of(&document.uri)) else {
            tracing::warn!(uri = %document.uri, "the editor closed a document that was not open; ignored");
            return;
        };
        for expected in &closed.expected {
            expected.close();
        }
    }

    /// Starts to wait for a document to show `edits`, which were computed on `base`. From here on no change of the
    /// document is missed.
    ///
    /// # Errors
    /// [`ExpectError`] when the document is not `base` at this moment.
    pub fn expect(&self, base: &DocumentSnapshot, edits: &[TextEdit]) -> Result<Expectation, ExpectError> {
        let mut state = self.lock();
        let document = state.open.get_mut(&key_of(base)).ok_or(ExpectError::Closed)?;
        let current = &document.snapshot;
        let unchanged = current.version == base.version
            && (current.text.is_instance(&base.text) || current.text == base.text);
        if !unchanged {
            return Err(ExpectError::Stale);
        }
        let (expected, expectation) = Expected::new(&base.text, edits);
        document.expected.push(expected);
        Ok(expectation)
    }

    /// What an edit of this document holds while it is under way, so that edits go one after the other; `None`
    /// when the document is not open.
    #[must_use]
    pub fn edit_turn(&self, document: &DocumentSnapshot) -> Option<Arc<tokio::sync::Mutex<()>>> {
        self.lock().open.get(&key_of(document)).map(|document| Arc::clone(&document.edit_turn))
    }

    fn find(&self, key: &DocumentKey) -> Option<DocumentSnapshot> {
        self.lock().open.get(key).map(|document| document.snapshot.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A handler that panicked may have left one change half done; the rest of the documents are sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Document {
    fn observe(&mut self, last_change: bool, budget: &mut usize) {
        let Self { snapshot, expected, .. } = self;
        expected.retain(|expected| expected.observe(snapshot, last_change, budget));
    }
}

fn key_of(snapshot: &DocumentSnapshot) -> DocumentKey {
    DocumentKey::of_target(&snapshot.target())
}

fn apply_change(text: &mut Rope, change: TextDocumentContentChangeEvent, encoding: PositionEncoding) {
    let Some(range) = change.range else {
        *text = Rope::from_str(&change.text);
        return;
    };
    let (a, b) = (encoding.char_index(text, range.start), encoding.char_index(text, range.end));
    text.remove(a.min(b)..a.max(b));
    text.insert(a.min(b), &change.text);
}

#[cfg(test)]
mod tests;
