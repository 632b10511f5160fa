//! Why a server cannot be used, and what to do about it.
//!
//! Rule: every failure has a class that says whether trying again can help, and a hint that says what a person can do.

use std::error::Error;
use std::fmt;

use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpError,
};

use kode_config::mcp::fault::McpFailure;
use kode_net::http::causes;

/// The fault of a transport of any kind.
#[derive(Debug)]
pub(crate) struct TransportFault(Box<dyn Error + Send + Sync>);

impl TransportFault {
    pub(crate) fn new(error: impl Error + Send + Sync + 'static) -> Self {
        Self(Box::new(error))
    }

    /// The fault as its transport reported it.
    fn reported(&self) -> &(dyn Error + 'static) {
        self.0.as_ref()
    }
}

impl fmt::Display for TransportFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl Error for TransportFault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.reported())
    }
}

/// Returns the failure of a connection that could not be initialized.
pub(crate) fn of_initialize(server: &str, error: &ClientInitializeError) -> McpFailure {
    if let Some(challenge) = error.auth_challenge() {
        return McpFailure::auth(server, challenge);
    }
    match error {
        ClientInitializeError::TransportError { error, .. } => of_transport(server, error.error.as_ref()),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => of_initialize(server, fallback),
        ClientInitializeError::JsonRpcError(error) => McpFailure::permanent(
            format!("the server refused to start: {}", error.message),
            "Look into the server's own documentation; its entry may lack something.",
        ),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => McpFailure::permanent(
            "the server speaks no version of the protocol that is known here",
            "Update the server, or kode-ls.",
        ),
        _ => McpFailure::transient(
            format!("the server did not answer as it should: {}", causes(error)),
            "It is tried again. If it stays so, run the server by hand and see what it says.",
        ),
    }
}

/// The error of the network, or of its library.
pub(crate) fn of_transport(server: &str, error: &(dyn Error + 'static)) -> McpFailure {
    let error = error.downcast_ref::<TransportFault>().map_or(error, TransportFault::reported);
    let mut next = Some(error);
    while let Some(current) = next {
        if let Some(auth) = current.downcast_ref::<AuthRequiredError>() {
            return McpFailure::auth(server, &auth.www_authenticate_header);
        }
        if let Some(scope) = current.downcast_ref::<InsufficientScopeError>() {
            return McpFailure::auth(server, &scope.www_authenticate_header);
        }
        if let Some(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) =
            current.downcast_ref::<AuthError>()
        {
            return McpFailure::auth(server, "");
        }
        if let Some(status) = current.downcast_ref::<HttpStatusError>() {
            return of_status(server, status.status);
        }
        if let Some(client) = current.downcast_ref::<reqwest::Error>() {
            return match client.status() {
                Some(status) => of_status(server, status.as_u16()),
                None if client.is_builder() => McpFailure::permanent(
                    format!("the address cannot be used: {}", causes(client)),
                    "Put `url` and `headers` of its entry right.",
                ),
                None => unreachable(&causes(client)),
            };
        }
        if let Some(StreamableHttpError::UnexpectedServerResponse(said)) =
            current.downcast_ref::<StreamableHttpError<reqwest::Error>>()
        {
            return match status_in(said) {
                Some(status) => of_status(server, status),
                None => no_server(said),
            };
        }
        if let Some(StreamableHttpError::UnexpectedContentType(kind)) =
            current.downcast_ref::<StreamableHttpError<reqwest::Error>>()
        {
            return no_server(&format!("it answered with {}", kind.as_deref().unwrap_or("no type")));
        }
        next = current.source();
    }
    unreachable(&causes(error))
}

/// The meaning of an answer with this status of HTTP.
pub(crate) fn of_status(server: &str, status: u16) -> McpFailure {
    match status {
        401 | 403 => McpFailure::auth(server, ""),
        408 | 429 | 500..=599 => McpFailure::transient(
            format!("the server answered with HTTP status {status}"),
            "It is tried again by itself.",
        ),
        _ => McpFailure::permanent(
            format!("the server answered with HTTP status {status}"),
            "Check the `url` of its entry, and whether its `type` is `http` or `sse`.",
        ),
    }
}

fn no_server(said: &str) -> McpFailure {
    McpFailure::permanent(
        format!("there is no MCP server at the address: {said}"),
        "Check the `url` of its entry, and whether its `type` is `http` or `sse`.",
    )
}

fn unreachable(why: &str) -> McpFailure {
    McpFailure::transient(
        format!("the server cannot be reached: {why}"),
        "It is tried again by itself. Check the address, your network and the proxy.",
    )
}

/// Why a request to a connected server failed.
pub(crate) fn of_request(server: &str, error: &ServiceError) -> McpFailure {
    match error {
        ServiceError::McpError(error) => McpFailure::permanent(
            format!("the server answered with an error: {}", error.message),
            "Check the arguments.",
        ),
        ServiceError::TransportSend(error) => of_transport(server, error.error.as_ref()),
        ServiceError::TransportClosed => {
            McpFailure::transient("the connection to the server has ended", "It is made again by itself.")
        }
        ServiceError::Timeout { timeout } => McpFailure::transient(
            format!("the server did not answer within {} s", timeout.as_secs_f32()),
            "Ask for less at once, or raise `timeout` in the server's entry.",
        ),
        _ => McpFailure::transient(
            format!("the server did not answer as it should: {}", causes(error)),
            "Try it again.",
        ),
    }
}

/// The status in a message of the form `HTTP 404 Not Found: …`.
fn status_in(said: &str) -> Option<u16> {
    let rest = said.split("HTTP ").nth(1)?;
    rest.get(..3)?.parse().ok().filter(|status| (400..600).contains(status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kode_config::mcp::fault::McpFailureClass;

    #[test]
    fn a_status_says_whether_trying_again_can_help() {
        for (status, class) in [
            (401, McpFailureClass::Auth),
            (403, McpFailureClass::Auth),
            (404, McpFailureClass::Permanent),
            (405, McpFailureClass::Permanent),
            (429, McpFailureClass::Transient),
            (503, McpFailureClass::Transient),
        ] {
            let failure = of_status("s", status);
            assert_eq!(failure.class, class, "{status}");
            assert!(!failure.hint.is_empty());
        }
        assert_eq!(status_in("HTTP 404 Not Found: nothing"), Some(404));
        assert_eq!(status_in("something else"), None);
    }
}
