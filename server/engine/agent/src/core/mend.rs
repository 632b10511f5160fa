//! Rebuilding the shelf from the journal, when old items or messages cannot be read back.
//!
//! Rule: a damaged shelf costs time and nothing else. Unwritten changes stay.

use std::io;
use std::sync::{Arc, MutexGuard};

use crate::core::{Core, lock};
use crate::state::SessionState;
use kode_base::file_moves;
use kode_journal::base::BASE;
use kode_journal::{JournalLines, SHELF, Shelf};
use kode_record::record::Record;

/// The suffix of a shelf that is being made.
const NEW: &str = ".new";

impl Core {
    /// Keeps the shelf from being replaced as long as the guard lives.
    pub(crate) fn keep_shelf(&self) -> MutexGuard<'_, ()> {
        lock(&self.mending)
    }

    /// A first record for a journal that has lost it.
    pub(crate) fn opened(&self) -> Record {
        let state = self.state();
        Record::Opened {
            session: state.id.clone(),
            roots: state.roots.clone(),
            cwd: state.cwd.clone(),
            mode: state.config.mode.into(),
            model: state.config.model.clone(),
            forked_from: state.forked_from.clone(),
            worktree: state.worktree.clone(),
        }
    }

    /// Rebuilds a damaged shelf from the journal.
    ///
    /// # Errors
    /// The system's error, or that the session is being closed: another process may write its folder then.
    pub(crate) fn mend(&self) -> io::Result<()> {
        // The second of two callers finds that all is well.
        let _one_at_a_time = self.keep_shelf();
        if !self.state().shelf().is_some_and(|shelf| shelf.is_damaged()) {
            return Ok(());
        }
        self.refuse_when_closing()?;
        let path = self.journal.path().with_file_name(SHELF);
        let new = path.with_file_name(format!("{SHELF}{NEW}"));
        let shelf = Arc::new(Shelf::create(&new)?);
        let mut fresh = self.beginning()?;
        fresh.attach(&shelf);
        let mut lines = JournalLines::open(self.journal.path(), 0)?;
        lines.read_to(self.journal.whole_length()?);
        fold_on(&mut fresh, &mut lines)?;
        let mut state = self.state();
        lines.read_to(self.journal.whole_length()?);
        fold_on(&mut fresh, &mut lines)?;
        self.refuse_when_closing()?;
        // It names places on the shelf that is replaced.
        match file_moves::remove_file(&path.with_file_name(BASE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        if let Some(damaged) = state.shelf() {
            damaged.retire();
        }
        shelf.move_to(&path)?;
        fresh.take_over(&state);
        *state = fresh;
        Ok(())
    }

    /// The state that the session began with.
    fn beginning(&self) -> io::Result<SessionState> {
        for line in JournalLines::open(self.journal.path(), 0)? {
            if let Some(state) = SessionState::open(&line?.1) {
                return Ok(state);
            }
        }
        SessionState::open(&self.opened()).ok_or_else(|| io::Error::other("the session has no beginning"))
    }

    fn refuse_when_closing(&self) -> io::Result<()> {
        match self.is_closing() {
            true => Err(io::Error::other("the session is being closed: load it again")),
            false => Ok(()),
        }
    }
}

/// Folds lines into a state. Their events were published before.
fn fold_on(state: &mut SessionState, lines: &mut JournalLines<Record>) -> io::Result<()> {
    for line in lines {
        let (_, record) = line?;
        drop(state.apply(record));
    }
    Ok(())
}
