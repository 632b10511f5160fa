//! The outcome of a decision about hunks, as events carry it.
//!
//! Rule: plain data.

use kode_base::ids::{HunkId, ResolutionId};
use kode_base::paths::Target;
use kode_text::edit::ledger::review::ReviewAction;

/// How a resolution went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolutionOutcome {
    /// The resolution.
    pub id: ResolutionId,
    /// What was done; `None` when an earlier resolution was taken back.
    pub action: Option<ReviewAction>,
    /// The hunks whose state is now what was asked for.
    pub resolved: Vec<HunkId>,
    /// The hunks that the user's own text stands in; they are [`HunkState::Conflict`] now.
    pub conflicts: Vec<HunkId>,
    /// The files that could not be changed, and why.
    pub failed: Vec<(Target, String)>,
}
