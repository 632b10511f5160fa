//! The agent's hunks, and its permission prompts, for editors without a plugin: code actions, lenses, hover, diagnostics,
//! commands.
//!
//! Rule: looking is a pure function of [`FileReview`]s and answers from their text, whatever the editor shows by now;
//! deciding is a command, because what a decision does is the engine's to say.

pub(crate) mod actions;
pub(crate) mod diagnostics;
pub(crate) mod hover;
pub(crate) mod lenses;
pub(crate) mod list;
mod place;
pub(crate) mod prompts;
pub(crate) mod publish;
pub(crate) mod questions;
pub(crate) mod resolve;
pub(crate) mod restore;
#[cfg(test)]
mod testing;
mod words;

use std::collections::HashMap;
use std::sync::Arc;

use kode_engine::agent::session::Session;
use kode_engine::base::ids::{CallId, SessionId};
use kode_engine::text::edit::ledger::review::{FileReview, HunkState, HunkView, ReviewAction};
use lsp_types::Url;

use crate::agent::Agent;
use crate::documents;
pub(crate) use words::{outcome, path};

/// Maximum number of hunks of one file as lenses, diagnostics or in a list; commands reach all of them.
pub(crate) const SHOWN_HUNKS: usize = 1_000;

/// The hunks of one session in one document.
#[derive(Clone, Debug)]
pub(crate) struct SessionReview {
    /// The session.
    pub(crate) session: SessionId,
    /// The title of the session.
    pub(crate) title: String,
    /// The hunks.
    pub(crate) file: FileReview,
}

/// The data of a session beyond one document.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReviewSummary {
    /// The undecided changes in all files of the session.
    pub(crate) waiting: PendingHunks,
    /// The titles of the calls that wait for an answer of the user.
    pub(crate) calls: HashMap<CallId, String>,
}

/// How many hunks wait for a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PendingHunks {
    proposed: usize,
    applied: usize,
    conflicts: usize,
}

impl PendingHunks {
    /// Counts the hunks of some files.
    pub(crate) fn of<'a>(files: impl IntoIterator<Item = &'a FileReview>) -> Self {
        let mut waiting = Self::default();
        for file in files {
            for hunk in &file.hunks {
                match hunk.state {
                    HunkState::Proposed => waiting.proposed += 1,
                    HunkState::Applied => waiting.applied += 1,
                    HunkState::Conflict => waiting.conflicts += 1,
                    HunkState::Kept | HunkState::Undone => {}
                }
            }
        }
        waiting
    }

    /// How many of them an action is meant for when no hunk is named.
    pub(crate) fn for_action(self, action: ReviewAction) -> usize {
        match action {
            ReviewAction::Accept | ReviewAction::Reject => self.proposed,
            ReviewAction::Keep => self.applied + self.conflicts,
            ReviewAction::Undo => self.applied,
        }
    }

    /// All of them.
    pub(crate) fn total(self) -> usize {
        self.proposed + self.applied + self.conflicts
    }
}

/// Whether an action is meant for a hunk when the hunk is not named. Earlier decisions stay.
fn waits_for(action: ReviewAction, hunk: &HunkView) -> bool {
    match (action, hunk.state) {
        (ReviewAction::Accept | ReviewAction::Reject, HunkState::Proposed)
        | (ReviewAction::Keep, HunkState::Applied | HunkState::Conflict)
        | (ReviewAction::Undo, HunkState::Applied) => true,
        (
            ReviewAction::Accept | ReviewAction::Reject | ReviewAction::Keep | ReviewAction::Undo,
            HunkState::Proposed
            | HunkState::Applied
            | HunkState::Kept
            | HunkState::Undone
            | HunkState::Conflict,
        ) => false,
    }
}

/// Whether a hunk waits for any decision.
fn waits(hunk: &HunkView) -> bool {
    match hunk.state {
        HunkState::Proposed | HunkState::Applied | HunkState::Conflict => true,
        HunkState::Kept | HunkState::Undone => false,
    }
}

/// The undecided changes in a document, session by session, the oldest session first.
pub(crate) fn gather(agent: &Agent, uri: &Url) -> Vec<SessionReview> {
    let target = documents::target(uri);
    let mut sessions = agent.engine.live_sessions();
    sessions.sort_by(|a, b| a.id().cmp(b.id()));
    let review = |session: &Arc<Session>| {
        let file = session.edits().review_of(&target).filter(|file| file.hunks.iter().any(waits))?;
        Some(SessionReview { session: session.id().clone(), title: session.snapshot(0).title, file })
    };
    sessions.iter().filter_map(review).collect()
}

/// The data of these reviews' sessions beyond the document, in the same order.
pub(crate) fn around(agent: &Agent, reviews: Vec<SessionReview>) -> Vec<(SessionReview, ReviewSummary)> {
    let around = |review: &SessionReview| {
        let Ok(session) = agent.engine.session(&review.session) else { return ReviewSummary::default() };
        let calls =
            session.requests().permissions().into_iter().map(|prompt| (prompt.call, prompt.title)).collect();
        ReviewSummary { waiting: PendingHunks::of(&session.edits().review()), calls }
    };
    let with = |review| {
        let around = around(&review);
        (review, around)
    };
    reviews.into_iter().map(with).collect()
}
