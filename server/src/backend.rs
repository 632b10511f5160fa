//! The object that every method is called on: the connection, and the agent and its sessions by the ids of the wire.
//!
//! Rule: it looks up and decides nothing. A lookup that fails answers the request.

use std::sync::Arc;

use kode_engine::agent::engine::AttachedSession;
use kode_engine::agent::session::Session;
use kode_engine::base::ids::SessionId;
use kode_protocol as wire;
use tower_lsp::Client;

use crate::agent::Agent;
use crate::connection::ClientConnection;
use crate::convert::error::{self, RequestError};
use crate::plain::PlainFrontEnd;
use crate::wrapped::WrappedServer;

/// The server of one client.
pub struct Backend {
    front_end: Arc<PlainFrontEnd>,
}

impl Backend {
    /// The server of a client that has sent nothing yet.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { front_end: Arc::new(PlainFrontEnd::new(Arc::new(ClientConnection::new(client)))) }
    }

    /// The same for an editor that is served together with another language server.
    pub(crate) fn beside(client: Client, wrapped: Arc<WrappedServer>) -> Self {
        let connection = ClientConnection::new(client).beside(wrapped);
        Self { front_end: Arc::new(PlainFrontEnd::new(Arc::new(connection))) }
    }

    /// The connection to the client.
    #[must_use]
    pub fn connection(&self) -> &Arc<ClientConnection> {
        &self.front_end.connection
    }

    /// The front end for plain LSP.
    pub(crate) fn front_end(&self) -> &Arc<PlainFrontEnd> {
        &self.front_end
    }

    /// The agent, started by the first call.
    pub(crate) fn agent(&self) -> Result<&Arc<Agent>, RequestError> {
        self.front_end.agent()
    }

    /// The agent, if a request has started it.
    pub(crate) fn started_agent(&self) -> Option<&Arc<Agent>> {
        self.front_end.live_agent()
    }

    /// The live session of that id.
    pub(crate) fn session(&self, id: &wire::SessionId) -> Result<Arc<Session>, RequestError> {
        self.agent()?.engine.session(&SessionId::from_external(id.as_str())).map_err(error::session)
    }

    /// The session of that id for reading, also while another process writes it.
    pub(crate) fn attached(&self, id: &wire::SessionId) -> Result<AttachedSession, RequestError> {
        self.agent()?.engine.attached(&SessionId::from_external(id.as_str())).map_err(error::session)
    }

    /// The session of that id for a prompt; one without a writer is taken over.
    pub(crate) async fn session_for_prompt(
        &self,
        id: &wire::SessionId,
    ) -> Result<Arc<Session>, RequestError> {
        let id = SessionId::from_external(id.as_str());
        self.agent()?.session_for_prompt(&id).await.map_err(error::session)
    }

    /// The client's name, for reports to other clients.
    pub(crate) fn client_name(&self) -> String {
        let name = self.connection().facts.get().and_then(|facts| facts.name.clone());
        name.unwrap_or_else(|| "the editor".to_owned())
    }
}
