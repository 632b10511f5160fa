//! Chat documents: `*.kode.md`, Markdown in which the user writes a prompt below a heading and sends it, and into which the
//! answer is written. All that an editor needs for a conversation is to edit text.
//!
//! Rule: kode-ls never changes or moves the user's text; it writes below it, in lines of our own. A
//! document is bound to its conversation by a line in it, so that it continues where it was when it is opened again.

mod answer;
mod layout;
pub(crate) mod offers;
mod send;
mod words;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kode_engine::base::ids::SessionId;
use kode_engine::base::paths::Target;
use kode_engine::text::document::DocumentSnapshot;
use lsp_types::Url;

use crate::documents;
use layout::ChatLayout;
pub(super) use send::{SEND, send};

/// How the name of a chat document ends.
const SUFFIX: &str = ".kode.md";

/// The language of a buffer that is a prompt and nothing else.
const PROMPT_LANGUAGE: &str = "kodeprompt";

/// A longer document is not a chat document: it would be read at every step of the cursor.
const MAX_BYTES: usize = 4 << 20;

/// Maximum number of documents that are remembered with their conversations, for editors that take no edits.
const MAX_REMEMBERED: usize = 100;

/// The answers that are being written, and the conversations of documents that cannot be written.
#[derive(Debug, Default)]
pub(crate) struct ChatDocuments {
    state: Mutex<ChatState>,
}

#[derive(Debug, Default)]
struct ChatState {
    writing: HashMap<Target, ActiveAnswer>,
    remembered: HashMap<Target, SessionId>,
}

#[derive(Debug)]
struct ActiveAnswer {
    session: SessionId,
    /// Whether who shows answers the plain way has left this one to the document.
    is_left: bool,
    /// Whether the document has not shown the written text for long.
    is_late: bool,
}

impl ChatDocuments {
    /// Notes that an answer is written into a document from now on; false when one is already.
    fn begin(&self, uri: &Url, session: &SessionId) -> bool {
        let mut state = self.lock();
        let target = documents::target(uri);
        if state.writing.contains_key(&target) {
            return false;
        }
        state
            .writing
            .insert(target, ActiveAnswer { session: session.clone(), is_left: false, is_late: false });
        true
    }

    /// Remembers the conversation of a document that cannot be written.
    fn remember(&self, uri: &Url, session: &SessionId) {
        let mut state = self.lock();
        let target = documents::target(uri);
        if state.remembered.len() >= MAX_REMEMBERED && !state.remembered.contains_key(&target) {
            state.remembered.clear();
        }
        state.remembered.insert(target, session.clone());
    }

    /// Notes that nothing is written into a document any more; whether its answer was left to it.
    fn end(&self, uri: &Url) -> bool {
        self.lock().writing.remove(&documents::target(uri)).is_some_and(|written| written.is_left)
    }

    /// The conversation whose answer is being written into a document.
    fn writing(&self, uri: &Url) -> Option<SessionId> {
        self.lock().writing.get(&documents::target(uri)).map(|written| written.session.clone())
    }

    /// The conversation that was last sent to from a document which cannot be written.
    fn remembered(&self, uri: &Url) -> Option<SessionId> {
        self.lock().remembered.get(&documents::target(uri)).cloned()
    }

    /// Notes that a document is late, so that its answer is to be shown the plain way as well; whether that was left to it
    /// until now.
    fn be_late(&self, uri: &Url) -> bool {
        let mut state = self.lock();
        let written = state.writing.get_mut(&documents::target(uri));
        written.is_some_and(|written| {
            written.is_late = true;
            std::mem::take(&mut written.is_left)
        })
    }

    /// Notes that a document is late no more.
    fn be_in_time(&self, uri: &Url) {
        if let Some(written) = self.lock().writing.get_mut(&documents::target(uri)) {
            written.is_late = false;
        }
    }

    /// Leaves the answer of this conversation to the document that it is being written into; false if absent, or it
    /// is late.
    pub(crate) fn leave(&self, session: &SessionId) -> bool {
        let mut state = self.lock();
        let mut written =
            state.writing.values_mut().filter(|written| written.session == *session && !written.is_late);
        let found = written.next();
        found.map(|written| written.is_left = true).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, ChatState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a document is a chat document.
fn is_chat(document: &DocumentSnapshot) -> bool {
    let path = document.uri.split(['?', '#']).next().unwrap_or_default();
    path.ends_with(SUFFIX) && document.text.len_bytes() <= MAX_BYTES
}

/// The prompt that is being typed at a byte of a document, and the conversation that it is for; `None` where the cursor is
/// in no prompt.
pub(super) fn prompt_at(document: &DocumentSnapshot, at: usize) -> Option<(Range<usize>, Option<SessionId>)> {
    if document.language_id == PROMPT_LANGUAGE {
        return Some((0..at, None));
    }
    if !is_chat(document) {
        return None;
    }
    let text = document.text.to_string();
    let layout = ChatLayout::of(&text);
    // Below the place of an answer the next prompt can be started.
    let begin = layout.answering.map_or(layout.begin, |place| place.line.end);
    (at >= begin).then_some((begin..at, layout.session))
}
