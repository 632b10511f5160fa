//! The news for the model that go with the next prompt: the user's actions on its changes, undone, restored, amended.
//!
//! Rule: a conversation gets each of them once, and only those of turns it knows: as a diff from the text the model knows to
//! the text there is, and bounded.

use std::fmt::Write as _;

use crate::core::lock;
use crate::edits::Edits;
use kode_base::ids::{HunkId, TurnId};
use kode_base::reminder;
use kode_text::edit::diff::Patch;
use kode_text::edit::ledger::review::HunkState;
use kode_text::edit::ledger::{HunkNews, LedgerEntry};

/// The most hunks in one prompt; the others are only counted.
const MAX_TOLD: usize = 20;

/// The most lines of one hunk.
const MAX_LINES: usize = 40;

/// The most remarks of the user before one prompt.
const MAX_REMARKS: usize = 50;

/// The most characters of one remark.
const MAX_REMARK_CHARS: usize = 4_000;

/// The news that wait for the next prompt.
#[derive(Debug, Default)]
pub(super) struct PendingNews {
    text: Option<String>,
    hunks: Vec<HunkId>,
    /// The user's remarks on changes, oldest first.
    remarks: Vec<String>,
    /// Hunks that a prompt carried and that the journal does not know yet.
    given: Vec<HunkId>,
}

impl Edits {
    /// Prepares the news for the next prompt.
    pub(crate) fn gather_news(&self) {
        let forgotten = self.core.state().forgotten_turns();
        let book = self.synced();
        let given = lock(&self.news).given.clone();
        let news = book.ledger.news(&forgotten).into_iter().filter(|news| !given.contains(&news.hunk));
        let news: Vec<HunkNews> = news.collect();
        let text = (!news.is_empty()).then(|| self.describe(&news));
        drop(book);
        let mut pending = lock(&self.news);
        let remarks = (!pending.remarks.is_empty()).then(|| {
            let lines = pending.remarks.iter().map(|remark| format!("- {}", remark.replace('\n', "\n  ")));
            reminder(&format!(
                "Comments of the user on your changes:\n{}",
                lines.collect::<Vec<_>>().join("\n")
            ))
        });
        pending.text = match (text, remarks) {
            (Some(text), Some(remarks)) => Some(format!("{text}\n{remarks}")),
            (text, remarks) => text.or(remarks),
        };
        pending.hunks = news.into_iter().map(|news| news.hunk).collect();
    }

    /// Takes the news that the next prompt begins with.
    pub(crate) fn take_news(&self) -> Option<String> {
        let mut news = lock(&self.news);
        let hunks = std::mem::take(&mut news.hunks);
        news.given.extend(hunks);
        news.remarks.clear();
        news.text.take()
    }

    /// Enters the news that the prompt of a turn carried.
    pub(crate) fn enter_given_news(&self, turn: &TurnId) {
        let hunks = std::mem::take(&mut lock(&self.news).given);
        if !hunks.is_empty() {
            self.enter(&mut self.synced(), LedgerEntry::Told { turn: Some(turn.clone()), hunks }, None);
        }
    }

    /// Adds a remark of the user's to the news for the next prompt.
    pub(super) fn remark_with_next_prompt(&self, remark: &str) {
        let remark: String = remark.trim().chars().take(MAX_REMARK_CHARS).collect();
        let remarks = &mut lock(&self.news).remarks;
        if remarks.len() < MAX_REMARKS && !remark.is_empty() {
            remarks.push(remark);
        }
    }

    fn describe(&self, news: &[HunkNews]) -> String {
        let mut text =
            "The user has edited or undone some of your changes. Do not make them again unless asked to:"
                .to_owned();
        for one in news.iter().take(MAX_TOLD) {
            // A name is data: it must not be able to begin a line of its own.
            let path = self.workspace.display(&one.target).replace(char::is_control, "\u{fffd}");
            let what = match one.state {
                HunkState::Undone => "undone",
                HunkState::Applied | HunkState::Kept | HunkState::Conflict | HunkState::Proposed => "changed",
            };
            let _ = write!(text, "\n- `{path}` at line {}: {what}", one.line);
            for line in
                Patch::between(&one.known, &one.now).hunks.iter().flat_map(|hunk| &hunk.lines).take(MAX_LINES)
            {
                let _ = write!(text, "\n  {line}");
            }
        }
        if news.len() > MAX_TOLD {
            let _ = write!(text, "\n- and {} more places", news.len() - MAX_TOLD);
        }
        reminder(&text)
    }
}
