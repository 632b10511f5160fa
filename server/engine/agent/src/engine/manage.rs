//! Sessions as a list: listing, renaming, archiving and deleting.
//!
//! Rule: a session may be live or only stored; callers need not know. The list does not change while a session is loaded.

use std::sync::Arc;

use super::Engine;
use crate::session::Session;
use crate::sessions::{
    BadCursor, Catalogue, ListSessions, SessionError, SessionPage, SessionPresence, WorkspaceFilter,
};
use kode_base::blocking;
use kode_base::ids::SessionId;

impl Engine {
    /// A page of the list of sessions. Reads the disk: call it from a thread that may wait.
    ///
    /// # Errors
    /// [`BadCursor`].
    pub fn list_sessions(&self, query: &ListSessions) -> Result<SessionPage, BadCursor> {
        self.catalogue.list(query, &|id| {
            let session = self.sessions().get(id).cloned()?;
            // A closing session still has its journal, and no other process does.
            Some(if session.is_closing() {
                SessionPresence::Stored
            } else {
                SessionPresence::Live(session.snapshot(0).state)
            })
        })
    }

    /// Gives a session a title of the user's, whether it is live or not.
    ///
    /// # Errors
    /// [`SessionError`]: a title that cannot be taken, unknown, or open elsewhere.
    pub async fn rename_session(
        &self,
        workspaces: &WorkspaceFilter,
        id: &SessionId,
        title: &str,
    ) -> Result<(), SessionError> {
        let _one_at_a_time = self.loading.lock().await;
        match self.live_or_gone(id).await {
            Some(session) => Ok(session.rename(title)?),
            None => {
                let (id, title) = (id.clone(), title.to_owned());
                self.stored(workspaces, move |stored, workspaces| stored.rename(workspaces, &id, &title))
                    .await
            }
        }
    }

    /// Puts a session away, or takes it out again, whether it is live or not.
    ///
    /// # Errors
    /// [`SessionError`]: unknown, or open elsewhere.
    pub async fn archive_session(
        &self,
        workspaces: &WorkspaceFilter,
        id: &SessionId,
        archived: bool,
    ) -> Result<(), SessionError> {
        let _one_at_a_time = self.loading.lock().await;
        match self.live_or_gone(id).await {
            Some(session) if session.archive(archived) => {
                // Survives a power cut: a session that is not archived is cleaned up some day.
                session.core().sync().await;
                Ok(())
            }
            Some(_) => Err(SessionError::Unknown(id.clone())),
            None => {
                let id = id.clone();
                self.stored(workspaces, move |stored, workspaces| stored.archive(workspaces, &id, archived))
                    .await
            }
        }
    }

    /// Deletes a session with all that was kept for it; a live one in which no turn runs is closed first.
    ///
    /// # Errors
    /// [`SessionError`]: a turn runs, unknown, or open elsewhere.
    pub async fn delete_session(
        &self,
        workspaces: &WorkspaceFilter,
        id: &SessionId,
    ) -> Result<(), SessionError> {
        let _one_at_a_time = self.loading.lock().await;
        let mut workspaces = workspaces.clone();
        if let Some(session) = self.live_or_gone(id).await {
            if !session.close_if_idle() {
                return Err(SessionError::Running(id.clone()));
            }
            session.closed().await;
            workspaces = WorkspaceFilter::These(session.roots());
        }
        self.sessions().remove(id);
        let deleted = id.clone();
        let done =
            self.stored(&workspaces, move |stored, workspaces| stored.delete(workspaces, &deleted)).await;
        if matches!(done, Ok(()) | Err(SessionError::Unknown(_))) {
            // A deleted session cannot be taken over.
            self.end_following(id);
        }
        done
    }

    /// The live session of that id; one that is being closed is waited for.
    async fn live_or_gone(&self, id: &SessionId) -> Option<Arc<Session>> {
        let session = self.sessions().get(id).cloned()?;
        if session.is_closing() {
            session.closed().await;
            return None;
        }
        Some(session)
    }

    /// Does something with stored sessions on a thread that may wait.
    async fn stored<T: Send + 'static>(
        &self,
        workspaces: &WorkspaceFilter,
        act: impl FnOnce(&Catalogue, &WorkspaceFilter) -> T + Send + 'static,
    ) -> T {
        let (catalogue, workspaces) = (Arc::clone(&self.catalogue), workspaces.clone());
        blocking(move || act(&catalogue, &workspaces)).await
    }
}
