//! The connection as a method sees it, so that both protocols share the handlers.
//!
//! Rule: a source looks up and decides nothing. Its errors are those of its protocol.

use std::sync::Arc;

use kode_engine::agent::engine::{AttachedSession, Engine, ForkError, SessionError};
use kode_engine::agent::session::Session;
use kode_engine::agent::transfer::ForkPoint;
use kode_engine::base::ids::SessionId;
use kode_protocol as wire;

use crate::backend::Backend;
use crate::convert::UriNames;
use crate::convert::error::{self, RequestError};
use crate::documents::Documents;
use crate::lsp::position::PositionEncoding;

/// The connection of a method on sessions.
pub(crate) trait SessionSource: Sync {
    /// The errors of its protocol.
    type Error: From<RequestError>;

    /// The engine.
    fn engine(&self) -> Result<&Engine, Self::Error>;

    /// The live session of that id.
    fn session(&self, id: &wire::SessionId) -> Result<Arc<Session>, Self::Error>;

    /// The session of that id for reading.
    fn attached(&self, id: &wire::SessionId) -> Result<AttachedSession, Self::Error>;

    /// Begins a session with the conversation of another one.
    fn fork(
        &self,
        id: &SessionId,
        at: ForkPoint,
    ) -> impl Future<Output = Result<Arc<Session>, ForkError>> + Send;

    /// Why a session cannot be had.
    fn refusal(error: SessionError) -> Self::Error;

    /// The open documents of the client, where it has any.
    fn documents(&self) -> Option<&Documents>;

    /// The names of files.
    fn names(&self) -> UriNames<'_> {
        self.documents().map_or(UriNames::standard(), UriNames::of)
    }

    /// The unit of positions.
    fn encoding(&self) -> PositionEncoding {
        self.documents().map(Documents::encoding).unwrap_or_default()
    }
}

impl SessionSource for Backend {
    type Error = RequestError;

    fn engine(&self) -> Result<&Engine, RequestError> {
        Ok(&self.agent()?.engine)
    }

    fn session(&self, id: &wire::SessionId) -> Result<Arc<Session>, RequestError> {
        Self::session(self, id)
    }

    fn attached(&self, id: &wire::SessionId) -> Result<AttachedSession, RequestError> {
        Self::attached(self, id)
    }

    async fn fork(&self, id: &SessionId, at: ForkPoint) -> Result<Arc<Session>, ForkError> {
        match self.agent() {
            Ok(agent) => agent.fork_session(id, at).await,
            Err(_) => Err(ForkError::Session(SessionError::Unknown(id.clone()))),
        }
    }

    fn refusal(error: SessionError) -> RequestError {
        error::session(error)
    }

    fn documents(&self) -> Option<&Documents> {
        Some(&self.connection().documents)
    }
}
