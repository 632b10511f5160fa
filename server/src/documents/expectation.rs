//! Waiting for a document to show an edit: what an editor says about an edit is not believed, its text is.
//!
//! Rule: an expectation is checked after every single content change, so that an undo right behind the edit does
//! not hide it, and costs nothing while none is pending; comparing whole texts is bounded per notification.

use std::cell::OnceCell;

use kode_engine::text::document::DocumentSnapshot;
use kode_engine::text::edit::change::edit_rope;
use kode_engine::text::edit::{TextEdit, rebase};
use ropey::Rope;
use tokio::sync::watch;

/// Bytes of text that one notification may compare in full before its last change; the last is always compared.
pub(super) const COMPARE_BUDGET: usize = 4 << 20;

/// How far an awaited edit has come.
#[derive(Clone, Debug)]
enum EditProgress {
    Waiting,
    Moved,
    Shown(DocumentSnapshot),
    Closed,
}

/// How an expectation ended.
#[derive(Clone, Debug)]
pub enum EditSettlement {
    /// The document has shown the edit; the snapshot is the document at that moment.
    Shown(DocumentSnapshot),
    /// The document was closed before it showed the edit.
    Closed,
}

/// An awaited edit of one open document. Dropping it ends the waiting.
#[derive(Debug)]
pub struct EditExpectation {
    progress: watch::Receiver<EditProgress>,
}

impl EditExpectation {
    /// Waits until the document has shown the edit or was closed.
    pub async fn settled(&mut self) -> EditSettlement {
        let is_settled =
            |progress: &EditProgress| matches!(progress, EditProgress::Shown(_) | EditProgress::Closed);
        // An error means that the documents themselves are gone, which is as good as closed.
        let _ = self.progress.wait_for(is_settled).await;
        self.seen().unwrap_or(EditSettlement::Closed)
    }

    /// How the expectation has ended, if it has.
    #[must_use]
    pub fn seen(&self) -> Option<EditSettlement> {
        match &*self.progress.borrow() {
            EditProgress::Waiting | EditProgress::Moved => None,
            EditProgress::Shown(snapshot) => Some(EditSettlement::Shown(snapshot.clone())),
            EditProgress::Closed => Some(EditSettlement::Closed),
        }
    }

    /// Waits until the document is no longer the text the edit was computed on, for whatever reason.
    pub async fn moved(&mut self) {
        // As above: without documents there is nothing to wait for.
        let _ = self.progress.wait_for(|progress| !matches!(progress, EditProgress::Waiting)).await;
    }
}

/// The documents' side of an [`EditExpectation`].
#[derive(Debug)]
pub(super) struct ExpectedEdit {
    base: Rope,
    base_text: OnceCell<String>,
    edits: Vec<TextEdit>,
    text: Rope,
    /// Observations that were not reported yet.
    news: Option<EditProgress>,
    progress: watch::Sender<EditProgress>,
}

impl ExpectedEdit {
    pub(super) fn new(base: &Rope, edits: &[TextEdit]) -> (Self, EditExpectation) {
        let (sender, progress) = watch::channel(EditProgress::Waiting);
        let expected = Self {
            base: base.clone(),
            base_text: OnceCell::new(),
            edits: edits.to_vec(),
            text: apply(base, edits),
            news: None,
            progress: sender,
        };
        (expected, EditExpectation { progress })
    }

    /// Checks the document after one change. `budget` is the rest of [`COMPARE_BUDGET`].
    pub(super) fn observe(&mut self, now: &DocumentSnapshot, last_change: bool, budget: &mut usize) {
        if self.progress.is_closed() || matches!(self.news, Some(EditProgress::Shown(_))) {
            return;
        }
        let shown = self.is_shown_by(&now.text, last_change, budget);
        self.news = Some(if shown { EditProgress::Shown(now.clone()) } else { EditProgress::Moved });
    }

    /// Reports the observations and returns whether the expectation is still pending.
    pub(super) fn settle(&mut self) -> bool {
        let news = self.news.take();
        let pending = !matches!(news, Some(EditProgress::Shown(_))) && !self.progress.is_closed();
        if let Some(news) = news {
            self.progress.send_replace(news);
        }
        pending
    }

    pub(super) fn close(&self) {
        self.progress.send_replace(EditProgress::Closed);
    }

    fn is_shown_by(&self, now: &Rope, last_change: bool, budget: &mut usize) -> bool {
        if now.len_bytes() == self.text.len_bytes() && *now == self.text {
            return true;
        }
        let cost = self.base.len_bytes() + now.len_bytes();
        if cost > *budget && !last_change {
            return false;
        }
        *budget = budget.saturating_sub(cost);
        let base = self.base_text.get_or_init(|| self.base.to_string());
        rebase::contains(base, &self.edits, &now.to_string())
    }
}

/// The text with sorted, non-overlapping byte edits.
pub(super) fn apply(base: &Rope, edits: &[TextEdit]) -> Rope {
    let mut text = base.clone();
    edit_rope(&mut text, edits);
    text
}
