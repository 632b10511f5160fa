//! A session folded from the lines of its journal, with the newest events that they tell.
//!
//! Rule: the events are those that were told live, under the same numbers; what was told without a record is gone, and what
//! it changed is in the items of the records.

use crate::event::{Event, Kept};
use crate::journal::{Record, Stamp};
use crate::session::state::SessionState;

/// A session folded from the lines of its journal.
#[derive(Debug)]
pub struct Replay {
    /// What the records add up to.
    pub state: SessionState,
    /// The newest events that they tell.
    pub kept: Kept,
}

impl Replay {
    /// Folds a whole journal; `None` when it has no beginning.
    #[must_use]
    pub fn of(lines: impl IntoIterator<Item = (Stamp, Record)>) -> Option<Self> {
        let mut lines = lines.into_iter();
        let mut replay = lines.find_map(|(stamp, record)| Self::begin(stamp, &record))?;
        lines.for_each(|(stamp, record)| replay.add(stamp, record));
        Some(replay)
    }

    /// A session that begins with this line; `None` when it does not.
    #[must_use]
    pub fn begin(stamp: Stamp, record: &Record) -> Option<Self> {
        let mut kept = Kept::default();
        if stamp.after_damage {
            kept.forget();
        }
        Some(Self { state: SessionState::open(record)?, kept })
    }

    /// Folds one more line.
    pub fn add(&mut self, stamp: Stamp, record: Record) {
        let told = self.state.apply(record);
        self.note(stamp, told);
    }

    /// Notes what a line tells that is folded elsewhere.
    pub fn note(&mut self, stamp: Stamp, told: Vec<Event>) {
        if stamp.after_damage {
            self.kept.forget();
        }
        self.kept.add_line(&self.state.id, stamp.seq, stamp.written, told);
    }
}
