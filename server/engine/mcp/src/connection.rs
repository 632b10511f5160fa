//! One connection to a server: made, used, and taken down with all that belongs to it.
//!
//! Rule: a connection is started within a limit or not at all; what it has started is gone when it is, on every way out.

use std::time::Duration;

use kode_base::task;
use rmcp::model::{ClientRequest, JsonObject, PingRequest, ServerPeerInfo};
use rmcp::serve_client;
use rmcp::service::{
    ClientInitializeError, Peer, QuitReason, RoleClient, RunningService, RunningServiceCancellationToken,
    ServiceError,
};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::client::ServerHandler;
use crate::failure;
use crate::surroundings::ServerSurroundings;
use crate::transport::any::AnyTransport;
use crate::transport::stdio;
use crate::transport::{http, sse};
use kode_config::mcp::config::{
    HEALTH_LIMIT, RemoteServer, RemoteTransport, ServerDefinition, ServerLink, ServerProgram,
};
use kode_config::mcp::fault::{McpFailure, McpFailureClass};
use kode_process::shell::error_output::ErrorOutput;
use kode_process::shell::served::ServedProcess;

/// How long the end of a program is waited for once its connection has ended, to tell how it ended.
const END_LIMIT: Duration = Duration::from_millis(500);
/// How long the end of a connection is waited for.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// The parts of requests of the protocol.
pub(crate) type ProtocolObject = JsonObject;

/// The way to ask a connected server.
#[derive(Clone)]
pub(crate) struct ServerChannel {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) handler: ServerHandler,
}

/// A connection.
pub(crate) struct Connection {
    /// The way to ask.
    pub(crate) way: ServerChannel,
    /// The remark about the way it was made.
    pub(crate) note: Option<String>,
    cancel: Option<RunningServiceCancellationToken>,
    waiting: JoinHandle<()>,
    process: Option<ServedProcess>,
    complaints: ErrorOutput,
    sandboxed: bool,
}

impl Connection {
    /// Connects to a server.
    ///
    /// # Errors
    /// Why that did not work.
    pub(crate) async fn open(
        definition: &ServerDefinition,
        surroundings: &ServerSurroundings,
    ) -> Result<Self, McpFailure> {
        let handler = ServerHandler::new(&definition.name, &surroundings.roots, surroundings.asks_for_pages);
        match &definition.link {
            ServerLink::Stdio(program) => Self::start(definition, program, surroundings, handler).await,
            ServerLink::Network(address) => Self::reach(definition, address, surroundings, handler).await,
        }
    }

    async fn start(
        definition: &ServerDefinition,
        program: &ServerProgram,
        surroundings: &ServerSurroundings,
        handler: ServerHandler,
    ) -> Result<Self, McpFailure> {
        let complaints = ErrorOutput::default();
        let sandboxed = definition.sandboxed && surroundings.sandbox.is_some();
        let (transport, mut process) = stdio::start(definition, program, surroundings, &complaints).await?;
        let begun = tokio::select! {
            begun = begin(definition, surroundings, handler, AnyTransport::new(transport)) => begun,
            ended = process.ended() => {
                complaints.settle().await;
                return Err(stdio::failure(&ended, &complaints, sandboxed));
            }
        };
        match begun {
            Ok(mut connection) => {
                connection.process = Some(process);
                connection.complaints = complaints;
                connection.sandboxed = sandboxed;
                Ok(connection)
            }
            Err(failure) => match timeout(END_LIMIT, process.ended()).await {
                Ok(ended) => {
                    complaints.settle().await;
                    Err(stdio::failure(&ended, &complaints, sandboxed))
                }
                Err(_) => {
                    process.end().await;
                    Err(McpFailure { stderr: complaints.text(), ..failure })
                }
            },
        }
    }

    async fn reach(
        definition: &ServerDefinition,
        address: &RemoteServer,
        surroundings: &ServerSurroundings,
        handler: ServerHandler,
    ) -> Result<Self, McpFailure> {
        let (first, second) = match address.form {
            RemoteTransport::Http => return Self::by_http(definition, address, surroundings, handler).await,
            RemoteTransport::Sse => return Self::by_sse(definition, address, surroundings, handler).await,
            RemoteTransport::Either => (handler.clone(), handler),
        };
        match Self::by_http(definition, address, surroundings, first).await {
            Err(failure) if failure.class == McpFailureClass::Permanent => {
                match Self::by_sse(definition, address, surroundings, second).await {
                    Ok(mut connection) => {
                        let note = "It speaks the older form: write `\"type\": \"sse\"` into its entry.";
                        connection.note = Some(note.to_owned());
                        Ok(connection)
                    }
                    Err(other) if other.class == McpFailureClass::Auth => Err(other),
                    Err(_) => Err(failure),
                }
            }
            other => other,
        }
    }

    async fn by_http(
        definition: &ServerDefinition,
        address: &RemoteServer,
        surroundings: &ServerSurroundings,
        handler: ServerHandler,
    ) -> Result<Self, McpFailure> {
        let transport = http::open(definition, address, surroundings).await?;
        begin(definition, surroundings, handler, AnyTransport::new(transport)).await
    }

    async fn by_sse(
        definition: &ServerDefinition,
        address: &RemoteServer,
        surroundings: &ServerSurroundings,
        handler: ServerHandler,
    ) -> Result<Self, McpFailure> {
        let transport = sse::open(definition, address, surroundings).await?;
        begin(definition, surroundings, handler, AnyTransport::new(transport)).await
    }

    /// The server's description of itself.
    pub(crate) fn info(&self) -> Option<std::sync::Arc<ServerPeerInfo>> {
        self.way.peer.peer_info()
    }

    /// Waits until the connection has ended by itself, and says why. Safe to drop.
    pub(crate) async fn lost(&mut self) -> McpFailure {
        match &mut self.process {
            None => {
                if let Err(error) = (&mut self.waiting).await {
                    tracing::error!(%error, "a connection to a server broke");
                }
                McpFailure::transient("the connection to the server has ended", "It is made again by itself.")
            }
            Some(process) => {
                let ended = tokio::select! {
                    ended = process.ended() => Some(ended),
                    _ = &mut self.waiting => timeout(END_LIMIT, process.ended()).await.ok(),
                };
                match ended {
                    Some(ended) => {
                        self.complaints.settle().await;
                        stdio::failure(&ended, &self.complaints, self.sandboxed)
                    }
                    None => McpFailure {
                        stderr: self.complaints.text(),
                        ..McpFailure::transient(
                            "the server has closed its output",
                            "It is started again by itself.",
                        )
                    },
                }
            }
        }
    }

    /// The end of what the server wrote to its standard error.
    pub(crate) fn complaints(&self) -> String {
        self.complaints.text()
    }

    /// Takes the connection down, and what it has started.
    pub(crate) async fn close(mut self) {
        if let Some(cancel) = self.cancel.take() {
            cancel.cancel();
        }
        if !self.waiting.is_finished() && timeout(CLOSE_LIMIT, &mut self.waiting).await.is_err() {
            self.waiting.abort();
        }
        if let Some(process) = self.process.take() {
            let ended = process.end().await;
            tracing::debug!(?ended, "a server was ended");
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(cancel) = self.cancel.take() {
            cancel.cancel();
        }
    }
}

impl ServerChannel {
    /// Asks whether the server is there, and says how long the answer took.
    ///
    /// # Errors
    /// When it does not answer.
    pub(crate) async fn ping(&self) -> Result<Duration, McpFailure> {
        let began = Instant::now();
        let request =
            ClientRequest::PingRequest(PingRequest { method: Default::default(), ..Default::default() });
        match timeout(HEALTH_LIMIT, self.peer.send_request(request)).await {
            // A server that answers with an error is there.
            Ok(Ok(_) | Err(ServiceError::McpError(_))) => Ok(began.elapsed()),
            Ok(Err(error)) => Err(failure::of_request("", &error)),
            Err(_) => Err(McpFailure::transient(
                format!("the server did not answer within {} s whether it is there", HEALTH_LIMIT.as_secs()),
                "It is started again by itself.",
            )),
        }
    }
}

/// Begins to speak the protocol.
async fn begin(
    definition: &ServerDefinition,
    surroundings: &ServerSurroundings,
    handler: ServerHandler,
    transport: AnyTransport,
) -> Result<Connection, McpFailure> {
    let limit = surroundings.limits.start;
    let served: Result<RunningService<RoleClient, ServerHandler>, ClientInitializeError> = match timeout(
        limit,
        serve_client(handler.clone(), transport),
    )
    .await
    {
        Ok(served) => served,
        Err(_) => {
            return Err(McpFailure::transient(
                format!("the server did not answer within {} s", limit.as_secs_f32()),
                "It is tried again. Set the variable MCP_TIMEOUT, in milliseconds, for a server that is slow to start.",
            ));
        }
    };
    let service = served.map_err(|error| failure::of_initialize(&definition.name, &error))?;
    let peer = service.peer().clone();
    let cancel = Some(service.cancellation_token());
    let waiting = task::spawn(async move {
        match service.waiting().await {
            Ok(QuitReason::Cancelled | QuitReason::Closed) => {}
            Ok(other) => tracing::debug!(?other, "a connection to a server has ended"),
            Err(error) => tracing::error!(%error, "a connection to a server broke"),
        }
    });
    let way = ServerChannel { peer, handler };
    let complaints = ErrorOutput::default();
    Ok(Connection { way, note: None, cancel, waiting, process: None, complaints, sandboxed: false })
}
