//! Servers in the network, in the older form: their messages come as one stream of events, ours are posted.
//!
//! Rule: messages are posted only to where the stream came from: the place that the server names has to be of the same
//! origin, for the headers go there as well.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use futures::StreamExt;
use kode_base::task;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use url::Url;

use super::{MAX_MESSAGE_BYTES, http};
use crate::surroundings::ServerSurroundings;
use crate::{auth, failure};
use kode_config::mcp::config::{RemoteServer, ServerDefinition};
use kode_config::mcp::fault::McpFailure;
use kode_net::http::causes;
use kode_net::sse::SseParser;

/// How long the server may take to say where messages are posted.
const ENDPOINT_LIMIT: Duration = Duration::from_secs(20);
/// How long posting a message may take.
const POST_LIMIT: Duration = Duration::from_secs(60);
/// Maximum number of messages that wait to be read.
const WAITING: usize = 256;

/// The messages of a stream.
enum SseMessage {
    /// Where messages are posted.
    Endpoint(Url),
    /// A message.
    Message(Box<ServerJsonRpcMessage>),
}

/// The way to such a server.
pub(crate) struct SseTransport {
    client: Client,
    headers: HeaderMap,
    endpoint: Url,
    incoming: mpsc::Receiver<SseMessage>,
    reader: JoinHandle<()>,
}

impl Drop for SseTransport {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// Opens the way to a server.
///
/// # Errors
/// The reason of the failure.
pub(crate) async fn open(
    definition: &ServerDefinition,
    address: &RemoteServer,
    surroundings: &ServerSurroundings,
) -> Result<SseTransport, McpFailure> {
    let client = http::client(address)?;
    let mut headers = header_map(http::headers(definition, address, surroundings).await?);
    if let Some(token) = auth::token(definition, address, &surroundings.state).await?
        && !headers.contains_key("authorization")
    {
        let value = HeaderValue::from_str(&format!("Bearer {token}"));
        let mut value = value.map_err(|_| McpFailure::auth(&definition.name, ""))?;
        value.set_sensitive(true);
        headers.insert("authorization", value);
    }
    let asked =
        client.get(address.url.clone()).headers(headers.clone()).header(ACCEPT, "text/event-stream").send();
    let response = asked.await.map_err(|error| failure::of_transport(&definition.name, &error))?;
    let response = events(&definition.name, response)?;
    let (sender, mut incoming) = mpsc::channel(WAITING);
    let reader = task::spawn(read(response, address.url.clone(), sender));
    let first = timeout(ENDPOINT_LIMIT, incoming.recv()).await;
    let Ok(Some(SseMessage::Endpoint(endpoint))) = first else {
        reader.abort();
        return Err(McpFailure::permanent(
            "the server does not say where messages are posted",
            "It may speak the newer form: write `\"type\": \"http\"` into its entry.",
        ));
    };
    Ok(SseTransport { client, headers, endpoint, incoming, reader })
}

fn header_map(headers: HashMap<HeaderName, HeaderValue>) -> HeaderMap {
    headers.into_iter().collect()
}

fn events(server: &str, response: Response) -> Result<Response, McpFailure> {
    let status = response.status();
    if !status.is_success() {
        let challenge = response.headers().get("www-authenticate").and_then(|value| value.to_str().ok());
        return Err(match (status, challenge) {
            (StatusCode::UNAUTHORIZED, Some(challenge)) => McpFailure::auth(server, challenge),
            _ => failure::of_status(server, status.as_u16()),
        });
    }
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if kind.starts_with("text/event-stream") {
        return Ok(response);
    }
    Err(McpFailure::permanent(
        format!("the server sends `{kind}` and no stream of events"),
        "Check the `url` of its entry, and whether its `type` is `http` or `sse`.",
    ))
}

/// Reads the stream to its end.
async fn read(response: Response, origin: Url, incoming: mpsc::Sender<SseMessage>) {
    let mut stream = response.bytes_stream();
    let mut parser = SseParser::with_limit(MAX_MESSAGE_BYTES);
    let mut events = Vec::new();
    while let Some(piece) = stream.next().await {
        let fed = match piece {
            Ok(piece) => parser.feed(&piece, &mut events).map_err(|error| error.to_string()),
            Err(error) => Err(causes(&error)),
        };
        for event in events.drain(..) {
            let next = match event.event.as_str() {
                "endpoint" => match origin.join(event.data.trim()) {
                    Ok(endpoint) if endpoint.origin() == origin.origin() => SseMessage::Endpoint(endpoint),
                    Ok(_) | Err(_) => {
                        tracing::warn!(
                            "a server wants its messages posted to another place; it is not spoken to"
                        );
                        return;
                    }
                },
                "" | "message" => match serde_json::from_str(&event.data) {
                    Ok(message) => SseMessage::Message(Box::new(message)),
                    Err(error) => {
                        tracing::debug!(%error, "an event of a server is no message");
                        continue;
                    }
                },
                _ => continue,
            };
            if incoming.send(next).await.is_err() {
                return;
            }
        }
        if let Err(error) = fed {
            tracing::info!(error, "the stream of a server has ended early");
            return;
        }
    }
}

impl Transport<RoleClient> for SseTransport {
    type Error = io::Error;

    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let request = self.client.post(self.endpoint.clone()).headers(self.headers.clone());
        let request = request.timeout(POST_LIMIT).json(&item);
        async move {
            let response = request.send().await.map_err(|error| io::Error::other(causes(&error)))?;
            match response.status() {
                status if status.is_success() => Ok(()),
                status => Err(io::Error::other(format!("the server answered with HTTP status {status}"))),
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            match self.incoming.recv().await? {
                SseMessage::Message(message) => return Some(*message),
                // It was sent once, and that counts.
                SseMessage::Endpoint(_) => {}
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.reader.abort();
        Ok(())
    }
}
