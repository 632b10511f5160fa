//! The author of a save: a person, the editor by itself, or the agent by way of the editor.
//!
//! Rule: a save is a person's unless the editor has said otherwise just before it, or was asked for it by us; a text that was
//! asked for and never came is forgotten after a limit.

use std::time::Duration;

use lsp_types::TextDocumentSaveReason;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How long the editor may take to save a document when asked.
pub const SAVE_LIMIT: Duration = Duration::from_secs(10);

/// An awaited save of one open document.
#[derive(Debug)]
pub struct SaveExpectation {
    saved: oneshot::Receiver<()>,
}

impl SaveExpectation {
    /// Waits until the document was saved; for ever when it is closed instead, or the editor refuses.
    pub async fn saved(self) {
        if self.saved.await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The known state of the saves of one open document.
#[derive(Debug, Default)]
pub(super) struct SaveState {
    /// Why the editor is about to save, if it has said so.
    reason: Option<TextDocumentSaveReason>,
    /// Until when a save is one that the editor was asked for.
    asked_until: Option<Instant>,
    waiting: Vec<oneshot::Sender<()>>,
}

impl SaveState {
    /// The editor is about to save.
    pub(super) fn begin(&mut self, reason: TextDocumentSaveReason) {
        self.reason = Some(reason);
    }

    /// The editor is asked to save.
    pub(super) fn expect(&mut self) -> SaveExpectation {
        let (sender, saved) = oneshot::channel();
        self.asked_until = Some(Instant::now() + SAVE_LIMIT);
        self.waiting.retain(|waiting| !waiting.is_closed());
        self.waiting.push(sender);
        SaveExpectation { saved }
    }

    /// Whether a person asked for the save that has just come.
    pub(super) fn is_by_user(&self) -> bool {
        let asked = self.asked_until.is_some_and(|until| Instant::now() <= until);
        !asked && self.reason.is_none_or(|reason| reason == TextDocumentSaveReason::MANUAL)
    }

    /// The editor will not save; the next save starts over.
    pub(super) fn refuse(&mut self) {
        *self = Self::default();
    }

    /// The save is over; the next one starts over.
    pub(super) fn end(&mut self) {
        for waiting in std::mem::take(self).waiting {
            // The waiter has given up meanwhile.
            let _ = waiting.send(());
        }
    }
}
