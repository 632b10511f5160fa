//! What the model is told, with the next prompt, of what the user did to its changes: undone, brought back, amended.
//!
//! Rule: a thing is told once in a conversation, and only of what that conversation knows, as a diff from what the model knows to what stands there now, and bounded.

use std::fmt::Write as _;

use crate::session::{Changes, Session, lock};
use kode_base::ids::{HunkId, TurnId};
use kode_base::reminder;
use kode_text::edit::diff::Patch;
use kode_text::edit::ledger::review::HunkState;
use kode_text::edit::ledger::{HunkNews, LedgerEntry};

/// Hunks that one prompt tells of; the others are only counted.
const MAX_TOLD: usize = 20;

/// Lines of one hunk that are shown.
const MAX_LINES: usize = 40;

/// So often the user can say something about changes before one prompt.
const MAX_SAID: usize = 50;

/// Characters of what the user says about one change.
const MAX_SAID_CHARS: usize = 4_000;

/// What waits for the next prompt.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    text: Option<String>,
    hunks: Vec<HunkId>,
    /// What the user has said about changes, oldest first.
    said: Vec<String>,
    /// Hunks that a prompt has told of, and that the journal does not know yet.
    told: Vec<HunkId>,
}

impl Changes {
    /// What the next prompt has to say first. It counts as told from now on.
    pub(super) fn news_for_prompt(&self) -> Option<String> {
        let mut news = lock(&self.news);
        let hunks = std::mem::take(&mut news.hunks);
        news.told.extend(hunks);
        news.said.clear();
        news.text.take()
    }
}

impl Session {
    /// Prepares what the next prompt tells of the user's acts.
    pub(super) fn gather_news(&self) {
        let forgotten = self.state().forgotten_turns();
        let book = self.sync_changes();
        let told = lock(&self.changes.news).told.clone();
        let news = book.ledger.news(&forgotten).into_iter().filter(|news| !told.contains(&news.hunk));
        let news: Vec<HunkNews> = news.collect();
        let text = (!news.is_empty()).then(|| self.describe(&news));
        drop(book);
        let mut waiting = lock(&self.changes.news);
        let said = (!waiting.said.is_empty()).then(|| {
            let lines = waiting.said.iter().map(|said| format!("- {}", said.replace('\n', "\n  ")));
            reminder(&format!(
                "What the user said when deciding about your changes:\n{}",
                lines.collect::<Vec<_>>().join("\n")
            ))
        });
        waiting.text = match (text, said) {
            (Some(text), Some(said)) => Some(format!("{text}\n{said}")),
            (text, said) => text.or(said),
        };
        waiting.hunks = news.into_iter().map(|news| news.hunk).collect();
    }

    /// Keeps what the user says about changes for the next prompt.
    pub(super) fn say_with_next_prompt(&self, words: &str) {
        let words: String = words.trim().chars().take(MAX_SAID_CHARS).collect();
        let said = &mut lock(&self.changes.news).said;
        if said.len() < MAX_SAID && !words.is_empty() {
            said.push(words);
        }
    }

    /// Enters what the prompt of a turn has told.
    pub(super) fn note_told(&self, turn: &TurnId) {
        let hunks = std::mem::take(&mut lock(&self.changes.news).told);
        if !hunks.is_empty() {
            self.enter(&mut self.sync_changes(), LedgerEntry::Told { turn: Some(turn.clone()), hunks }, None);
        }
    }

    fn describe(&self, news: &[HunkNews]) -> String {
        let mut text =
            "What the user did to your changes since. Do not make them again unless asked to:".to_owned();
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
