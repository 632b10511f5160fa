//! A session folded from the lines of its journal, with their newest events.
//!
//! Rule: the events equal the live ones, under the same numbers; events without a record are gone, and their
//! effect is in the items of the records.

use crate::state::SessionState;
use kode_journal::LineStamp;
use kode_record::event::{Event, RecentEvents};
use kode_record::record::Record;

/// A session folded from the lines of its journal.
#[derive(Debug)]
pub struct Replay {
    /// The fold of the records.
    pub state: SessionState,
    /// Their newest events.
    pub kept: RecentEvents,
}

impl Replay {
    /// Folds a whole journal; `None` where none of its lines is a beginning.
    #[must_use]
    pub fn of(lines: impl IntoIterator<Item = (LineStamp, Record)>) -> Option<Self> {
        let mut lines = lines.into_iter();
        let mut before = Vec::new();
        let state = lines.find_map(|line| {
            let state = SessionState::open(&line.1);
            before.push(line);
            state
        })?;
        let mut replay = Self { state, kept: RecentEvents::default() };
        before.into_iter().chain(lines).for_each(|(stamp, record)| replay.add(stamp, record));
        Some(replay)
    }

    /// Folds one more line.
    pub fn add(&mut self, stamp: LineStamp, record: Record) {
        let reported = self.state.apply(record);
        self.note(stamp, reported);
    }

    /// Adds the events of a line that is folded elsewhere.
    pub fn note(&mut self, stamp: LineStamp, reported: Vec<Event>) {
        if stamp.after_damage {
            self.kept.forget();
        }
        self.kept.add_line(stamp.seq, stamp.written, reported);
    }
}
