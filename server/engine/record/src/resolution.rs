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
    /// The action; `None` when an earlier resolution was taken back.
    pub action: Option<ReviewAction>,
    /// The hunks that have the requested state now.
    pub resolved: Vec<HunkId>,
    /// The hunks that the user's own text is in; they are [`HunkState::Conflict`] now.
    pub conflicts: Vec<HunkId>,
    /// The files that could not be changed, and why.
    pub failed: Vec<(Target, String)>,
}
