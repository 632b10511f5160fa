//! The open documents as the editor describes them: one owner, changed in arrival order, read as snapshots, and told to
//! observers.
//!
//! Rule: only the sync handlers change a document, and they do so before their first await; the lock is held for
//! one change at a time and never across an await. Whatever an editor gets wrong is logged and survived.

mod compose;
mod expectation;
mod saving;
mod side;
mod uri;
mod virtual_documents;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use kode_engine::base::file_uri::{self, DriveSpelling};
use kode_engine::base::paths::{AbsPath, Target};
use kode_engine::base::spelling::{Spellings, folded};
use kode_engine::text::document::DocumentSnapshot;
use kode_engine::text::edit::TextEdit;
use kode_engine::text::host::{DocumentEvent, DocumentObserver};
use lsp_types::{
    DidChangeTextDocumentParams, TextDocumentContentChangeEvent, TextDocumentIdentifier, TextDocumentItem,
    Url, WillSaveTextDocumentParams,
};
use ropey::Rope;

pub use expectation::{EditExpectation, EditSettlement};
pub use saving::{SAVE_LIMIT, SaveExpectation};
pub use side::{BASELINE_SCHEME, PROPOSED_SCHEME, SideUri};
pub use uri::{file_path, target};
pub use virtual_documents::VirtualDocuments;

use crate::lsp::PositionEncoding;
use compose::ComposedChanges;
use expectation::{COMPARE_BUDGET, ExpectedEdit};
use saving::SaveState;
use uri::DocumentKey;

/// The most open documents that are known to be too large.
const MAX_TOO_LARGE: usize = 1_000;

/// All open documents.
#[derive(Debug)]
pub struct Documents {
    state: Mutex<DocumentTable>,
    spellings: Arc<Spellings>,
    /// How this client writes drives; learned from the first URI that has one.
    drives: OnceLock<DriveSpelling>,
}

impl Default for Documents {
    fn default() -> Self {
        Self::on(Spellings::here())
    }
}

#[derive(Debug, Default)]
struct DocumentTable {
    encoding: PositionEncoding,
    open: HashMap<DocumentKey, OpenDocument>,
    /// Open documents whose text is too large to be followed, with the bytes of the message that brought it.
    too_large: HashMap<DocumentKey, u64>,
    observers: Vec<Weak<dyn DocumentObserver>>,
}

#[derive(Debug)]
struct OpenDocument {
    snapshot: DocumentSnapshot,
    expected: Vec<ExpectedEdit>,
    saving: SaveState,
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
    /// None yet, on these disks.
    fn on(spellings: Arc<Spellings>) -> Self {
        Self { state: Mutex::default(), spellings, drives: OnceLock::new() }
    }

    /// Learns from a URI of the client how it writes drives.
    pub(crate) fn learn_spelling(&self, uri: &Url) {
        if let Some(drives) = DriveSpelling::shown_by(uri.as_str()) {
            self.drives.get_or_init(|| drives);
        }
    }

    /// The URI of a file or document for this client: its own text for a document that it has open, else one that is written as
    /// the client writes its own.
    #[must_use]
    pub fn uri_of(&self, target: &Target) -> String {
        if let Some(document) = self.snapshot_of(target) {
            return document.uri;
        }
        match target {
            Target::File(path) => file_uri::of_path(path, self.drives.get().copied().unwrap_or_default()),
            Target::Untitled(uri) => uri.clone(),
        }
    }

    /// Sets what positions count, once it is negotiated.
    pub fn set_encoding(&self, encoding: PositionEncoding) {
        self.lock().encoding = encoding;
    }

    /// The unit of positions.
    #[must_use]
    pub fn encoding(&self) -> PositionEncoding {
        self.lock().encoding
    }

    /// The document with this URI, in any spelling.
    #[must_use]
    pub fn snapshot(&self, uri: &Url) -> Option<DocumentSnapshot> {
        self.find(DocumentKey::of(uri))
    }

    /// The document for a file or for the URI of a document without a file.
    #[must_use]
    pub fn snapshot_of(&self, target: &Target) -> Option<DocumentSnapshot> {
        self.find(DocumentKey::of_target(target))
    }

    /// All open documents, by URI.
    #[must_use]
    pub fn all(&self) -> Vec<DocumentSnapshot> {
        let mut all: Vec<_> = self.lock().open.values().map(|document| document.snapshot.clone()).collect();
        all.sort_unstable_by(|a, b| a.uri.cmp(&b.uri));
        all
    }

    /// Tells the observer of every event from now on, as long as it lives.
    pub fn observe(&self, observer: Weak<dyn DocumentObserver>) {
        self.lock().observers.push(observer);
    }

    /// Notes that a document is open whose text is too large to be followed: its former state is out of date.
    pub fn open_too_large(&self, uri: &Url, bytes: u64) {
        let mut state = self.lock();
        state.close(&DocumentKey::of(uri));
        if state.too_large.len() < MAX_TOO_LARGE {
            state.too_large.insert(DocumentKey::of(uri), bytes);
        }
    }

    /// The bytes of the message with the text of a document that is open and too large to be followed.
    #[must_use]
    pub fn too_large(&self, target: &Target) -> Option<u64> {
        let key = self.place(DocumentKey::of_target(target));
        self.lock().too_large.get(&key).copied()
    }

    /// Follows a document that the editor opened. One that is open already takes the new text.
    pub fn open(&self, item: TextDocumentItem) {
        self.learn_spelling(&item.uri);
        let key = DocumentKey::of(&item.uri);
        let snapshot = DocumentSnapshot {
            path: key.path().map(|path| self.spellings.spelled(path)),
            language_id: item.language_id,
            version: item.version,
            text: Rope::from_str(&item.text),
            uri: item.uri.to_string(),
        };
        let mut state = self.lock();
        let DocumentTable { open, observers, too_large, .. } = &mut *state;
        too_large.remove(&key);
        match open.get_mut(&key) {
            Some(document) => {
                tracing::warn!(uri = %item.uri, "the editor opened a document that was open; its new text is used");
                document.snapshot = snapshot;
                document.compare(true, &mut 0);
                report(observers, &DocumentEvent::Opened(document.snapshot.clone()));
                document.settle();
            }
            None => {
                report(observers, &DocumentEvent::Opened(snapshot.clone()));
                let document = OpenDocument {
                    snapshot,
                    expected: Vec::new(),
                    saving: SaveState::default(),
                    edit_turn: Arc::new(tokio::sync::Mutex::new(())),
                };
                open.insert(key, document);
            }
        }
    }

    /// Applies the changes of one notification, in their order.
    pub fn change(&self, params: DidChangeTextDocumentParams) {
        let DidChangeTextDocumentParams { text_document: changed, content_changes } = params;
        let mut state = self.lock();
        let DocumentTable { encoding, open, observers, .. } = &mut *state;
        let Some(document) = open.get_mut(&DocumentKey::of(&changed.uri)) else {
            tracing::warn!(uri = %changed.uri, "the editor changed a document it never opened; ignored");
            return;
        };
        if changed.version <= document.snapshot.version {
            tracing::warn!(
                uri = %changed.uri, from = document.snapshot.version, to = changed.version,
                "the version of a document did not grow; the change is applied all the same"
            );
        }
        let before = document.snapshot.clone();
        document.snapshot.version = changed.version;
        let mut made = ComposedChanges::default();
        let mut budget = COMPARE_BUDGET;
        let mut changes = content_changes.into_iter().peekable();
        while let Some(change) = changes.next() {
            apply_change(&mut document.snapshot.text, change, *encoding, &mut made);
            document.compare(changes.peek().is_none(), &mut budget);
        }
        let after = document.snapshot.clone();
        report(observers, &DocumentEvent::Changed { before, after, edits: made.finish() });
        document.settle();
    }

    /// Notes why the editor is about to save a document.
    pub fn will_save(&self, params: &WillSaveTextDocumentParams) {
        let mut state = self.lock();
        let Some(document) = state.open.get_mut(&DocumentKey::of(&params.text_document.uri)) else {
            tracing::warn!(uri = %params.text_document.uri, "the editor saves a document it never opened; ignored");
            return;
        };
        document.saving.begin(params.reason);
    }

    /// Reports a document the editor saved.
    pub fn saved(&self, saved: &TextDocumentIdentifier) {
        let mut state = self.lock();
        let DocumentTable { open, observers, .. } = &mut *state;
        let Some(document) = open.get_mut(&DocumentKey::of(&saved.uri)) else {
            tracing::warn!(uri = %saved.uri, "the editor saved a document it never opened; ignored");
            return;
        };
        let by_user = document.saving.is_by_user();
        report(observers, &DocumentEvent::Saved { document: document.snapshot.clone(), by_user });
        document.saving.end();
    }

    /// Starts to wait for a save that the editor is asked for now; `None` when the document is not open.
    #[must_use]
    pub fn expect_save(&self, target: &Target) -> Option<SaveExpectation> {
        let key = self.place(DocumentKey::of_target(target));
        Some(self.lock().open.get_mut(&key)?.saving.expect())
    }

    /// Notes that the editor will not save a document though it was asked to: the next save is another one.
    pub fn save_refused(&self, target: &Target) {
        let key = self.place(DocumentKey::of_target(target));
        if let Some(document) = self.lock().open.get_mut(&key) {
            document.saving.refuse();
        }
    }

    /// Forgets a document the editor closed. Edits that are still awaited end as closed.
    pub fn close(&self, document: &TextDocumentIdentifier) {
        let mut state = self.lock();
        let key = DocumentKey::of(&document.uri);
        if state.too_large.remove(&key).is_none() && !state.close(&key) {
            tracing::warn!(uri = %document.uri, "the editor closed a document that was not open; ignored");
        }
    }

    /// Forgets all documents, because the editor is gone: from now on their files are what there is.
    pub(crate) fn close_all(&self) {
        for document in self.all() {
            match Url::parse(&document.uri) {
                Ok(uri) => self.close(&TextDocumentIdentifier { uri }),
                Err(error) => {
                    tracing::error!(uri = document.uri, %error, "a document without a URI stays open")
                }
            }
        }
    }

    /// Starts to wait for a document to show `edits`, which were computed on `base`. From here on no change of the
    /// document is missed.
    ///
    /// # Errors
    /// [`ExpectError`] when the document is not `base` at this moment.
    pub fn expect(
        &self,
        base: &DocumentSnapshot,
        edits: &[TextEdit],
    ) -> Result<EditExpectation, ExpectError> {
        let mut state = self.lock();
        let document = state.open.get_mut(&key_of(base)).ok_or(ExpectError::Closed)?;
        let current = &document.snapshot;
        let unchanged = current.version == base.version
            && (current.text.is_instance(&base.text) || current.text == base.text);
        if !unchanged {
            return Err(ExpectError::Stale);
        }
        let (expected, expectation) = ExpectedEdit::new(&base.text, edits);
        document.expected.push(expected);
        Ok(expectation)
    }

    /// The lock of a running edit of this document, so that edits go one after the other; `None`
    /// when the document is not open.
    #[must_use]
    pub fn edit_turn(&self, document: &DocumentSnapshot) -> Option<Arc<tokio::sync::Mutex<()>>> {
        self.lock().open.get(&key_of(document)).map(|document| Arc::clone(&document.edit_turn))
    }

    fn find(&self, key: DocumentKey) -> Option<DocumentSnapshot> {
        let key = self.place(key);
        self.lock().open.get(&key).map(|document| document.snapshot.clone())
    }

    /// The key under which a file is open, when the client has opened it by another spelling; else the same key. The disk is asked
    /// only where it may fold, and for what is not open by this name.
    fn place(&self, key: DocumentKey) -> DocumentKey {
        let Some(path) = key.path().filter(|path| !self.spellings.is_plain(path)) else { return key };
        let alike: Vec<AbsPath> = {
            let state = self.lock();
            if state.open.contains_key(&key) || state.too_large.contains_key(&key) {
                return key;
            }
            let name = path.as_path().file_name().map(folded);
            let paths = state.open.keys().chain(state.too_large.keys()).filter_map(DocumentKey::path);
            paths.filter(|open| open.as_path().file_name().map(folded) == name).cloned().collect()
        };
        if alike.is_empty() {
            return key;
        }
        let compared = self.spellings.compared(path);
        alike
            .into_iter()
            .find(|open| self.spellings.compared(open) == compared)
            .map_or(key, DocumentKey::File)
    }

    fn lock(&self) -> MutexGuard<'_, DocumentTable> {
        // A handler that panicked may have left one change half done; the rest of the documents are sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DocumentTable {
    /// Forgets an open document; returns whether there was one.
    fn close(&mut self, key: &DocumentKey) -> bool {
        let Some(closed) = self.open.remove(key) else { return false };
        report(&mut self.observers, &DocumentEvent::Closed(closed.snapshot.clone()));
        closed.expected.iter().for_each(ExpectedEdit::close);
        true
    }
}

impl OpenDocument {
    fn compare(&mut self, last_change: bool, budget: &mut usize) {
        let Self { snapshot, expected, .. } = self;
        expected.iter_mut().for_each(|expected| expected.observe(snapshot, last_change, budget));
    }

    /// Wakes the waiters for an edit. Observers were notified before, so that none learns of a change after
    /// a waiter has acted on it.
    fn settle(&mut self) {
        self.expected.retain_mut(ExpectedEdit::settle);
    }
}

/// Tells all observers that still live.
fn report(observers: &mut Vec<Weak<dyn DocumentObserver>>, event: &DocumentEvent) {
    observers.retain(|observer| {
        let observer = observer.upgrade();
        observer.inspect(|observer| observer.observe(event)).is_some()
    });
}

fn key_of(snapshot: &DocumentSnapshot) -> DocumentKey {
    // Not by its path: the client may show one file under two names.
    Url::parse(&snapshot.uri)
        .map_or_else(|_| DocumentKey::of_target(&snapshot.target()), |uri| DocumentKey::of(&uri))
}

fn apply_change(
    text: &mut Rope,
    change: TextDocumentContentChangeEvent,
    encoding: PositionEncoding,
    made: &mut ComposedChanges,
) {
    let Some(range) = change.range else {
        *text = Rope::from_str(&change.text);
        made.replace_all();
        return;
    };
    let a = encoding.char_index(text, range.start);
    // Most changes are a key typed at one place.
    let b = if range.end == range.start { a } else { encoding.char_index(text, range.end) };
    let (start, end) = (a.min(b), a.max(b));
    let range = text.char_to_byte(start)..text.char_to_byte(end);
    text.remove(start..end);
    text.insert(start, &change.text);
    made.push(TextEdit { range, new_text: change.text });
}

#[cfg(test)]
mod tests;
