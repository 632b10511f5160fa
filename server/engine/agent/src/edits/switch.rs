//! Bringing hunks into other states, on the disk or in the text, and in the ledger.
//!
//! Rule: the last change is taken out first. Nothing overwrites content of others, and no file is
//! made of the pieces of one that is gone.

use std::sync::Arc;

use ropey::Rope;
use tokio_util::sync::CancellationToken;

use crate::edits::EditBook;
use crate::edits::Edits;
use kode_base::blocking;
use kode_base::ids::{HunkId, ResolutionId};
use kode_base::paths::Target;
use kode_text::edit::ledger::review::{HunkKind, HunkState};
use kode_text::edit::ledger::{FileReplacement, Ledger, LedgerEntry};
use kode_text::edit::{Author, ChangeSet, FileChange, TextEdit};
use kode_text::file_text::FileText;
use kode_text::workspace::{ApplyError, ReadError};

/// The most computations of a resolution for a text that keeps changing.
const MAX_ATTEMPTS: usize = 5;

impl Edits {
    /// Brings hunks of one file into states, on the disk or in its text and in the ledger; they are one step of
    /// [`Ledger::steps`]. Answers the hunks that are there now, and those the user's own text is in. The caller holds
    /// `writing`.
    ///
    /// # Errors
    /// Why the file could not be changed, for people.
    pub(crate) async fn switch(
        &self,
        target: &Target,
        wanted: &[(HunkId, HunkState)],
        step: &ReviewStep,
    ) -> Result<SwitchOutcome, String> {
        let is_whole = {
            let book = self.book();
            wanted.iter().all(|(hunk, _)| book.ledger.is_whole(hunk))
        };
        let made = self.made_text(target, wanted).await;
        let result = match is_whole {
            true => self.switch_whole(target, wanted, step).await,
            false => self.switch_text_of_file(target, wanted, step).await,
        };
        if result.is_ok() {
            self.remove_if_undone(target, wanted, &made).await;
        }
        drop(self.synced());
        result
    }

    /// The same for hunks that are the file as a whole. It is not read: it need not be text.
    async fn switch_whole(
        &self,
        target: &Target,
        wanted: &[(HunkId, HunkState)],
        step: &ReviewStep,
    ) -> Result<SwitchOutcome, String> {
        let (moves, whole) = {
            let book = self.synced();
            let moves = book.ledger.plan_moves(target, wanted.to_vec(), step.force).moves;
            let whole = book.ledger.replacements(&moves);
            (moves, whole)
        };
        self.replace_whole(whole).await?;
        let resolved = moves.iter().map(|(hunk, _)| hunk.clone()).collect();
        self.enter_moves(&mut self.book(), target, moves, step);
        Ok(SwitchOutcome { resolved, conflicts: Vec::new() })
    }

    /// The same for hunks of its text, of a file that may have to be made again.
    async fn switch_text_of_file(
        &self,
        target: &Target,
        wanted: &[(HunkId, HunkState)],
        step: &ReviewStep,
    ) -> Result<SwitchOutcome, String> {
        let made = self.make_again(target, wanted).await?;
        let result = self.switch_text(target, wanted, step).await;
        if let (Some(empty), Err(_)) = (made, &result) {
            self.unmake(target, empty).await;
        }
        result
    }

    /// The same for hunks of its text.
    async fn switch_text(
        &self,
        target: &Target,
        wanted: &[(HunkId, HunkState)],
        step: &ReviewStep,
    ) -> Result<SwitchOutcome, String> {
        let _hold = self.feed.hold(target);
        for _ in 0..MAX_ATTEMPTS {
            let found = match self.workspace.text(target).await {
                Ok(file) => CurrentText::Text(Box::new(file)),
                Err(ReadError::NotFound { .. } | ReadError::NotOpen { .. }) => CurrentText::Gone,
                Err(error) => CurrentText::NotText(error.to_string()),
            };
            let SwitchPlan { switched, moves, edits } = {
                let mut book = self.book();
                self.feed.take(target).into_iter().for_each(|event| self.take_in(&mut book, event));
                if let CurrentText::Text(file) = &found {
                    let now = Rope::from_str(&file.text);
                    self.reconcile_read(&mut book, target, &now, file.version());
                    // The user has typed since it was read: read again.
                    if book.ledger.text(target).is_some_and(|known| *known != now) {
                        continue;
                    }
                }
                let planned = self.plan_switch(&mut book, target, wanted, step, &found)?;
                if planned.edits.is_empty() {
                    self.enter_moves(&mut book, target, planned.moves, step);
                    return Ok(planned.switched);
                }
                planned
            };
            let change = FileChange { target: target.clone(), base: found.text(), edits };
            let (label, summary) = (step.label.clone(), String::new());
            let set =
                ChangeSet { label, summary, files: vec![change], removals: Vec::new(), author: Author::User };
            match self.workspace.apply(set, &CancellationToken::new()).await {
                Ok(applied) => {
                    let mut book = self.book();
                    for file in &applied {
                        self.settle(&mut book, target, file, |_| Some(step.entry(target, moves.clone())));
                    }
                    return Ok(switched);
                }
                // The user has typed where the text was to change: read again.
                Err(ApplyError::Conflict { .. } | ApplyError::Moving { .. } | ApplyError::Exists { .. }) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Err(format!("`{}` kept changing; nothing was done", self.workspace.display(target)))
    }

    /// The edits of the current text. Of a file that is gone the ledger keeps the last text: only the states
    /// of its hunks change, and no file is made of what they are a part of.
    fn plan_switch(
        &self,
        book: &mut EditBook,
        target: &Target,
        wanted: &[(HunkId, HunkState)],
        step: &ReviewStep,
        found: &CurrentText,
    ) -> Result<SwitchPlan, String> {
        let path = self.workspace.display(target);
        let is_gone = matches!(found, CurrentText::Gone);
        // A missing file has no text of the user's.
        let force = step.force || is_gone;
        let mut plan = book.ledger.plan_moves(target, wanted.to_vec(), force);
        let returns = |ledger: &Ledger, (hunk, state): &(HunkId, HunkState)| {
            state.is_in_text() && !ledger.state(hunk).is_some_and(HunkState::is_in_text)
        };
        let makes = |moved: &(HunkId, HunkState)| {
            returns(&book.ledger, moved) && book.ledger.kind(&moved.0) == Some(HunkKind::Created)
        };
        let is_made = is_gone && plan.moves.iter().any(makes);
        if is_made {
            self.reconcile(book, target, &Rope::new());
            plan = book.ledger.plan_moves(target, wanted.to_vec(), force);
        }
        let ledger = &book.ledger;
        let mut moves = plan.moves;
        let is_buried = |(hunk, state): &(HunkId, HunkState)| {
            let is_switched = ledger.state(hunk).is_some_and(|now| now.is_in_text() != state.is_in_text());
            is_switched && ledger.is_set_aside(hunk)
        };
        if moves.iter().any(is_buried) {
            return Err(format!("a command has replaced `{path}` since; undo that first"));
        }
        let resolved = moves.iter().map(|(hunk, _)| hunk.clone()).collect();
        // One that is out of the text stays what it is: there is nothing of it for the user's text to be in.
        let stands = |hunk: &&HunkId| ledger.state(hunk).is_some_and(HunkState::is_in_text);
        let conflicts = plan.conflicts.iter().filter(stands);
        moves.extend(conflicts.map(|hunk| (hunk.clone(), HunkState::Conflict)));
        let mut edits = ledger.edits_for(target, &moves);
        match found {
            CurrentText::Text(_) => {}
            CurrentText::NotText(reason) if !edits.is_empty() => return Err(reason.clone()),
            CurrentText::NotText(_) => {}
            CurrentText::Gone if is_made => {}
            CurrentText::Gone => {
                if step.reverts.is_none() && moves.iter().any(|moved| returns(ledger, moved)) {
                    return Err(format!("`{path}` is gone; bring the file back first"));
                }
                edits = Vec::new();
            }
        }
        Ok(SwitchPlan { switched: SwitchOutcome { resolved, conflicts: plan.conflicts }, moves, edits })
    }

    /// Replaces files as a whole, unless they were changed since.
    pub(crate) async fn replace_whole(&self, whole: Vec<FileReplacement>) -> Result<(), String> {
        let shadow = Arc::clone(&self.shadow);
        let replaced = blocking(move || {
            whole.into_iter().try_for_each(|FileReplacement { target, expected, wanted }| {
                match target.file() {
                    Some(path) => shadow.restore_file(path, &expected, &wanted),
                    None => Ok(()),
                }
            })
        });
        replaced.await.map_err(|error| error.to_string())
    }

    fn enter_moves(
        &self,
        book: &mut EditBook,
        target: &Target,
        moves: Vec<(HunkId, HunkState)>,
        step: &ReviewStep,
    ) {
        // An act that takes another one back does so also when nothing is left to move.
        if !moves.is_empty() || step.reverts.is_some() {
            self.enter(book, step.entry(target, moves), None);
        }
    }

    /// The text of a file that one of the hunks made; empty when none did or there is no text.
    async fn made_text(&self, target: &Target, wanted: &[(HunkId, HunkState)]) -> Arc<str> {
        let is_made = {
            let book = self.book();
            wanted.iter().any(|(hunk, _)| book.ledger.kind(hunk) == Some(HunkKind::Created))
        };
        match is_made {
            true => self.workspace.text(target).await.map_or_else(|_| Arc::default(), |file| file.text),
            false => Arc::default(),
        }
    }

    /// Removes the file that a hunk made when the hunk is undone and nothing is left of the text it had, which was `made`.
    async fn remove_if_undone(&self, target: &Target, wanted: &[(HunkId, HunkState)], made: &str) {
        let is_unmade = {
            let book = self.book();
            let is_undone = |hunk: &HunkId| {
                book.ledger.kind(hunk) == Some(HunkKind::Created)
                    && book.ledger.state(hunk) == Some(HunkState::Undone)
            };
            wanted.iter().any(|(hunk, _)| is_undone(hunk))
                && book.ledger.text(target).is_some_and(|text| text.len_bytes() == 0)
        };
        if !is_unmade {
            return;
        }
        self.note_unmade(target).await;
        if let Err(error) = self.workspace.remove_undone(target, made).await
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, %target, "the undone file stays");
        }
    }
}

/// One act of the user's.
#[derive(Clone, Debug)]
pub(crate) struct ReviewStep {
    pub(crate) id: ResolutionId,
    pub(crate) reverts: Option<ResolutionId>,
    /// The name of the undo step in the editor.
    pub(crate) label: String,
    /// Whether hunks that the user has amended are removed as well.
    pub(crate) force: bool,
}

impl ReviewStep {
    fn entry(&self, target: &Target, moves: Vec<(HunkId, HunkState)>) -> LedgerEntry {
        let (resolution, reverts) = (Some(self.id.clone()), self.reverts.clone());
        LedgerEntry::Moved { target: target.clone(), resolution, reverts, moves }
    }
}

/// The outcome of switching hunks.
#[derive(Clone, Debug, Default)]
pub(crate) struct SwitchOutcome {
    pub(crate) resolved: Vec<HunkId>,
    pub(crate) conflicts: Vec<HunkId>,
}

/// The current text of a target whose hunks are switched.
enum CurrentText {
    Text(Box<FileText>),
    Gone,
    /// Why it is no text, for people.
    NotText(String),
}

impl CurrentText {
    fn text(self) -> Option<FileText> {
        match self {
            Self::Text(file) => Some(*file),
            Self::Gone | Self::NotText(_) => None,
        }
    }
}

/// The plan of switching hunks.
struct SwitchPlan {
    switched: SwitchOutcome,
    moves: Vec<(HunkId, HunkState)>,
    edits: Vec<TextEdit>,
}
