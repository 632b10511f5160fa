//! SKELETON
use tokio_util::sync::CancellationToken;

use crate::edit::{AppliedFile, ChangeSet};
use crate::workspace::Workspace;

/// Why a change set was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The user's typing and the change overlap.
    #[error("{0}")]
    Conflict(String),
}

impl Workspace {
    /// Applies a change set: open documents through the host, closed files by guarded atomic writes.
    pub async fn apply(
        &self,
        change: ChangeSet,
        cancel: &CancellationToken,
    ) -> Result<Vec<AppliedFile>, ApplyError> {
        let _ = (change, cancel);
        unimplemented!()
    }
}

impl From<ApplyError> for crate::tools::ToolError {
    fn from(_: ApplyError) -> Self {
        unimplemented!()
    }
}
