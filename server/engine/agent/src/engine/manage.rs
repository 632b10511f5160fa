//! Sessions as a list: what there is, and naming, putting away and deleting one.
//!
//! Rule: a session may be live or only stored, and whoever asks need not know; while one is loaded nobody changes the list.

use std::sync::Arc;

use super::{Engine, SessionError};
use crate::session::Session;
use crate::sessions::{BadCursor, Catalogue, ListSessions, Presence, SessionPage, Workspaces};
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
            // One that is ending holds its journal still, and is nobody else's.
            Some(if session.is_closing() {
                Presence::Stored
            } else {
                Presence::Live(session.snapshot(0).state)
            })
        })
    }

    /// Gives a session a title of the user's, whether it is live or not.
    ///
    /// # Errors
    /// [`SessionError`]: a title that cannot be taken, unknown, or open elsewhere.
    pub async fn rename_session(
        &self,
        workspaces: &Workspaces,
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
        workspaces: &Workspaces,
        id: &SessionId,
        archived: bool,
    ) -> Result<(), SessionError> {
        let _one_at_a_time = self.loading.lock().await;
        match self.live_or_gone(id).await {
            Some(session) if session.archive(archived) => {
                // A power cut must not take it out again: what is not put away is cleaned up some day.
                session.sync().await;
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
    pub async fn delete_session(&self, workspaces: &Workspaces, id: &SessionId) -> Result<(), SessionError> {
        let _one_at_a_time = self.loading.lock().await;
        let mut workspaces = workspaces.clone();
        if let Some(session) = self.live_or_gone(id).await {
            if !session.close_if_idle() {
                return Err(SessionError::Running(id.clone()));
            }
            session.closed().await;
            workspaces = Workspaces::These(session.roots());
        }
        self.sessions().remove(id);
        let deleted = id.clone();
        let done =
            self.stored(&workspaces, move |stored, workspaces| stored.delete(workspaces, &deleted)).await;
        if matches!(done, Ok(()) | Err(SessionError::Unknown(_))) {
            // Nobody takes over what is no more.
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
        workspaces: &Workspaces,
        act: impl FnOnce(&Catalogue, &Workspaces) -> T + Send + 'static,
    ) -> T {
        let (catalogue, workspaces) = (Arc::clone(&self.catalogue), workspaces.clone());
        blocking(move || act(&catalogue, &workspaces)).await
    }
}
