//! A text of an answer that the user puts into a document: a code block that they apply.
//!
//! Rule: it goes the way of the agent's own changes, so it is reviewed, undone and reported like them; only a text that is
//! open or in the workspace is changed, whatever path a model has named.

use std::ops::Range;
use std::sync::Arc;

use ropey::Rope;
use tokio_util::sync::CancellationToken;

use crate::edits::Edits;
use kode_base::blocking;
use kode_base::ids::{CallId, ChangeId, HunkId, TurnId};
use kode_base::paths::{AbsPath, Target};
use kode_text::edit::diff::line_changes;
use kode_text::edit::ledger::ChangeOrigin;
use kode_text::edit::ledger::review::HunkKind;
use kode_text::edit::{Author, ChangeSet, FileChange};
use kode_text::workspace::{ApplyError, ReadError};

/// A longer text is not put in.
pub const MAX_TEXT: usize = 4 << 20;

/// Why a text was not put into a document.
#[derive(Debug, thiserror::Error)]
pub enum ApplyTextError {
    /// It is neither open nor in the workspace.
    #[error("`{0}` is neither open nor in a folder of the workspace")]
    Outside(String),
    /// The text is there already.
    #[error("`{0}` has this text already")]
    Same(String),
    /// It is too long.
    #[error("the text has {0} bytes; at most {MAX_TEXT} are put in")]
    TooLong(usize),
    /// The document cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It cannot be changed.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The session has ended.
    #[error("the session is closed; load it again to continue")]
    Closed,
}

impl Edits {
    /// Puts a text into a document in place of what `place` names in it, as a change of the agent's; answers its hunks. A
    /// file that is not there is made.
    ///
    /// # Errors
    /// [`ApplyTextError`]; nothing is changed then.
    pub async fn apply_text(
        self: &Arc<Self>,
        target: &Target,
        place: impl Fn(&Rope) -> Range<usize>,
        text: &str,
    ) -> Result<Vec<HunkId>, ApplyTextError> {
        if self.core.is_closing() {
            return Err(ApplyTextError::Closed);
        }
        if text.len() > MAX_TEXT {
            return Err(ApplyTextError::TooLong(text.len()));
        }
        let path = self.workspace.display(target);
        let is_open = self.workspace.open_document(target).await.is_some();
        if !is_open && !self.is_in_workspace(target).await {
            return Err(ApplyTextError::Outside(path));
        }
        let base = match self.workspace.text(target).await {
            Ok(file) => Some(file),
            Err(ReadError::NotFound { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let old = base.as_ref().map_or("", |base| &*base.text).to_owned();
        let text = if old.contains("\r\n") {
            text.replace("\r\n", "\n").replace('\n', "\r\n")
        } else {
            text.to_owned()
        };
        let mut new = old.clone();
        new.replace_range(place(&Rope::from_str(&old)), &text);
        let edits = line_changes(&old, &new);
        if edits.is_empty() {
            return Err(ApplyTextError::Same(path));
        }
        let turn = self.core.state().rewinds.newest_turn().cloned().unwrap_or_else(TurnId::generate);
        let (id, call, kind) = (ChangeId::generate(), CallId::generate(), HunkKind::Text);
        let change = ChangeOrigin { id, turn, call: call.clone(), kind, permission: None };
        let files = vec![FileChange { target: target.clone(), base, edits }];
        let (label, summary) = (format!("Kode: Apply to {path}"), String::new());
        let set = ChangeSet { label, summary, files, removals: Vec::new(), author: Author::User };
        self.apply_change(set, &change, &[], &CancellationToken::new()).await?;
        self.core.sync().await;
        // A path is data: it must not be able to begin a line of its own.
        let path = path.replace(char::is_control, "\u{fffd}");
        self.remark_with_next_prompt(&format!("The user has put a text of your answer into `{path}`."));
        let hunks = self.review_of(target).map(|file| file.hunks).unwrap_or_default();
        Ok(hunks.into_iter().filter(|hunk| hunk.call == call).map(|hunk| hunk.id).collect())
    }

    /// Whether a file is in a folder of the workspace, links followed. One that is not there is where its folder leads.
    async fn is_in_workspace(&self, target: &Target) -> bool {
        let Some(file) = target.file().cloned() else { return false };
        let (workspace, roots) = (Arc::clone(&self.workspace), self.workspace.roots().to_vec());
        blocking(move || {
            let real = |path: AbsPath| workspace.real(&Target::File(path)).file().cloned();
            let there =
                std::iter::successors(Some(file), AbsPath::parent).find(|path| path.as_path().exists());
            let Some(there) = there.and_then(real) else { return false };
            roots.into_iter().filter_map(real).any(|root| there.is_within(&root))
        })
        .await
    }
}
