//! The other sessions of the user, as the commands of one session see them.
//!
//! Rule: a session knows the others through this trait alone, and only while its own task runs.

use async_trait::async_trait;

use crate::session::Session;
use crate::sessions::SessionSummary;
use kode_base::ids::SessionId;

/// The other sessions of the user.
#[async_trait]
pub(crate) trait SessionDirectory: Send + Sync {
    /// Begins a session that replaces a cleared one: in the same folders, with the same mode, model and style.
    ///
    /// # Errors
    /// The reason of the failure, for people.
    async fn begin_like(&self, session: &Session) -> Result<SessionId, String>;

    /// Begins a session in a new git worktree of the same folders, with the same mode, model and style.
    ///
    /// # Errors
    /// The reason of the failure, for people.
    async fn begin_in_worktree(&self, session: &Session) -> Result<SessionId, String>;

    /// Begins a session with the whole conversation of this one.
    ///
    /// # Errors
    /// The reason of the failure, for people.
    async fn copy(&self, session: &Session, title: &str) -> Result<SessionId, String>;

    /// The newest sessions of the same folders, except this one.
    ///
    /// # Errors
    /// Why they cannot be listed, for people.
    async fn others(&self, session: &Session) -> Result<Vec<SessionSummary>, String>;

    /// The whole session as a Markdown document.
    ///
    /// # Errors
    /// The reason of the failure, for people.
    async fn document(&self, session: &Session) -> Result<String, String>;
}
