//! Servers in the network, in the form called Streamable HTTP.
//!
//! Rule: they are reached by the clients that models are reached by: no redirect is followed, so that no header goes where
//! it was not meant to, and this machine is never reached through a proxy. A command of the workspace that prints headers runs
//! as the workspace's servers do; one of the user's with the user's rights.

use std::collections::HashMap;
use std::time::Duration;

use reqwest::Client;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::AuthClient;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::Value;

use super::MAX_MESSAGE_BYTES;
use crate::auth;
use crate::surroundings::ServerSurroundings;
use kode_config::mcp::config::{RemoteServer, ServerDefinition, header};
use kode_config::mcp::fault::McpFailure;
use kode_net::http;
use kode_process::shell::helper;
use kode_process::shell::served::ServedSpec;

/// How long the command that prints headers may take.
const HELPER_LIMIT: Duration = Duration::from_secs(10);
/// The most bytes it may print.
const HELPER_BYTES: usize = 64 << 10;

/// The client for a server's address.
///
/// # Errors
/// When none can be built.
pub(crate) fn client(address: &RemoteServer) -> Result<Client, McpFailure> {
    http::client(&address.url).map_err(|error| {
        McpFailure::permanent(error.to_string(), "Check the certificates and the proxy of your machine.")
    })
}

/// All headers of an address, those that a command prints among them.
///
/// # Errors
/// The reason of the failure, without their values.
pub(crate) async fn headers(
    definition: &ServerDefinition,
    address: &RemoteServer,
    surroundings: &ServerSurroundings,
) -> Result<HashMap<HeaderName, HeaderValue>, McpFailure> {
    let mut headers: HashMap<_, _> = address.headers.iter().cloned().collect();
    let Some(command) = &address.headers_helper else { return Ok(headers) };
    let wrong = |why: String| {
        McpFailure::transient(
            format!("the command in `headersHelper` {why}"),
            "It has to print one JSON object of headers, such as {\"Authorization\": \"Bearer …\"}, and nothing else.",
        )
    };
    let printed = match definition.is_of_project {
        true => {
            let spec = helper_of_project(command, definition, surroundings);
            helper::output_of_program(spec, HELPER_LIMIT, HELPER_BYTES).await
        }
        false => helper::output_of(command, HELPER_LIMIT, HELPER_BYTES).await,
    };
    let printed = printed.map_err(|failure| wrong(failure.to_string()))?;
    let Ok(Value::Object(printed)) = serde_json::from_str(&printed) else {
        return Err(wrong("printed something else than a JSON object".to_owned()));
    };
    for (name, value) in printed {
        let Value::String(value) = value else { return Err(wrong(format!("printed no text for `{name}`"))) };
        let (name, value) = header(&name, &value).map_err(|why| wrong(format!("printed this: {why}")))?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// The command of an entry of the workspace, to be run as servers of the workspace are.
fn helper_of_project(
    command: &str,
    definition: &ServerDefinition,
    surroundings: &ServerSurroundings,
) -> ServedSpec {
    ServedSpec {
        program: "sh".to_owned(),
        arguments: vec!["-c".to_owned(), command.to_owned()],
        directory: surroundings.project.clone(),
        variables: surroundings.variables_of_programs(definition),
        secrets: surroundings.secrets.clone(),
        sandbox: surroundings.sandbox_of(definition),
        network: definition.network,
        writable: Vec::new(),
        readable: Vec::new(),
        holds: false,
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
) -> Result<StreamableHttpClientTransport<AuthClient<Client>>, McpFailure> {
    let (client, headers) = (client(address)?, headers(definition, address, surroundings).await?);
    let manager = auth::manager(definition, address, &surroundings.state).await?;
    let config = StreamableHttpClientTransportConfig::with_uri(address.url.as_str())
        .custom_headers(headers)
        .max_sse_event_size(MAX_MESSAGE_BYTES);
    Ok(StreamableHttpClientTransport::with_client(AuthClient::new(client, manager), config))
}
