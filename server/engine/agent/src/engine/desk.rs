//! What a command of one session wants of all others: a new one, a copy, the list.
//!
//! Rule: a session knows the others through this alone, and only while its own task runs.

use async_trait::async_trait;

use crate::engine::{Engine, NewSession};
use crate::hooks::StartSource;
use crate::session::{Configuration, Session};
use crate::sessions::{ListSessions, SessionSummary, Workspaces};
use crate::transfer::ForkPoint;
use kode_base::blocking;
use kode_base::ids::SessionId;

/// So many sessions are looked through at most.
const MAX_LISTED: usize = 200;

/// The other sessions.
#[async_trait]
pub(crate) trait Desk: Send + Sync {
    /// Begins a session in the place of one that is cleared: in the same folders, with the same mode, model and style.
    ///
    /// # Errors
    /// Why there is none, for people.
    async fn begin_like(&self, session: &Session) -> Result<SessionId, String>;

    /// Begins a session with all that this one has said.
    ///
    /// # Errors
    /// Why there is none, for people.
    async fn copy(&self, session: &Session, title: &str) -> Result<SessionId, String>;

    /// The newest sessions of the same folders, but for this one.
    ///
    /// # Errors
    /// Why they are not known, for people.
    async fn others(&self, session: &Session) -> Result<Vec<SessionSummary>, String>;

    /// The whole session as a Markdown document.
    ///
    /// # Errors
    /// Why there is none, for people.
    async fn document(&self, session: &Session) -> Result<String, String>;
}

#[async_trait]
impl Desk for Engine {
    async fn begin_like(&self, session: &Session) -> Result<SessionId, String> {
        let (mode, model, effort, output_style) = {
            let state = session.state();
            (state.mode, state.model.clone(), state.effort, state.output_style.clone())
        };
        let new = NewSession { roots: session.roots(), mode: Some(mode), model: Some(model) };
        let begun = self.new_session(new).map_err(|error| error.to_string())?;
        let effort = Some(effort);
        begun.configure_all(Configuration {
            effort,
            output_style: Some(output_style),
            ..Configuration::default()
        });
        begun.begin_as(StartSource::Clear);
        Ok(begun.id().clone())
    }

    async fn copy(&self, session: &Session, title: &str) -> Result<SessionId, String> {
        session.sync().await;
        let copied = self.fork_session(&session.roots(), session.id(), ForkPoint::End).await;
        let copied = copied.map_err(|error| error.to_string())?;
        if !title.is_empty() {
            copied.rename(title).map_err(|error| error.to_string())?;
        }
        Ok(copied.id().clone())
    }

    async fn others(&self, session: &Session) -> Result<Vec<SessionSummary>, String> {
        let query = ListSessions::newest(Workspaces::These(session.roots()), MAX_LISTED);
        let (engine, own) = (self.clone(), session.id().clone());
        let listed =
            blocking(move || engine.list_sessions(&query)).await.map_err(|error| error.to_string())?;
        Ok(listed.sessions.into_iter().filter(|other| other.id != own).collect())
    }

    async fn document(&self, session: &Session) -> Result<String, String> {
        session.sync().await;
        let exported = self.export_session(&session.roots(), session.id()).await;
        Ok(exported.map_err(|error| error.to_string())?.markdown())
    }
}
