//! The sessions of an engine, for the commands of one of them.

use async_trait::async_trait;

use crate::engine::{Engine, NewSession};
use crate::hooks::StartSource;
use crate::session::Session;
use crate::session::directory::SessionDirectory;
use crate::sessions::{ListSessions, SessionSummary, WorkspaceFilter};
use crate::state::config::{ConfigChange, SessionConfig};
use crate::transfer::ForkPoint;
use kode_base::blocking;
use kode_base::ids::SessionId;

/// The most sessions that are listed.
const MAX_LISTED: usize = 200;

#[async_trait]
impl SessionDirectory for Engine {
    async fn begin_like(&self, session: &Session) -> Result<SessionId, String> {
        let (config, worktree) = {
            let state = session.core().state();
            (state.config.clone(), state.worktree.clone())
        };
        let (mode, model) = (Some(config.mode), Some(config.model.clone()));
        let begun = self.begin_session(
            SessionId::generate(),
            NewSession { roots: session.roots(), mode, model },
            worktree,
        );
        let begun = begun.map_err(|error| error.to_string())?;
        configure_like(&begun, config);
        begun.hooks().begin_as(StartSource::Clear);
        Ok(begun.id().clone())
    }

    async fn begin_in_worktree(&self, session: &Session) -> Result<SessionId, String> {
        let config = session.core().state().config.clone();
        let (mode, model) = (Some(config.mode), Some(config.model.clone()));
        let new = NewSession { roots: session.roots(), mode, model };
        let begun = self.new_session_in_worktree(new, &session.core().cancel_token()).await;
        let begun = begun.map_err(|error| error.to_string())?;
        configure_like(&begun, config);
        Ok(begun.id().clone())
    }

    async fn copy(&self, session: &Session, title: &str) -> Result<SessionId, String> {
        session.core().sync().await;
        let copied = self.fork_session(&session.roots(), session.id(), ForkPoint::End).await;
        let copied = copied.map_err(|error| error.to_string())?;
        if !title.is_empty() {
            copied.rename(title).map_err(|error| error.to_string())?;
        }
        Ok(copied.id().clone())
    }

    async fn others(&self, session: &Session) -> Result<Vec<SessionSummary>, String> {
        let query = ListSessions::newest(WorkspaceFilter::These(session.roots()), MAX_LISTED);
        let (engine, own) = (self.clone(), session.id().clone());
        let listed =
            blocking(move || engine.list_sessions(&query)).await.map_err(|error| error.to_string())?;
        Ok(listed.sessions.into_iter().filter(|other| other.id != own).collect())
    }

    async fn document(&self, session: &Session) -> Result<String, String> {
        session.core().sync().await;
        let exported = self.export_session(&session.roots(), session.id()).await;
        Ok(exported.map_err(|error| error.to_string())?.markdown())
    }
}

/// Gives a session the effort, the style and the sandbox profile of another; it has begun with the other's mode and model.
fn configure_like(begun: &Session, config: SessionConfig) {
    let SessionConfig { effort, output_style, sandbox, .. } = config;
    let (effort, output_style, sandbox) = (Some(effort), Some(output_style), Some(sandbox));
    begun.configure(ConfigChange { effort, output_style, sandbox, ..ConfigChange::default() });
}
