//! Why a server cannot be used, and what to do about it.
//!
//! Rule: every failure has a class that says whether trying again can help, and a hint that says what a person can do.

use std::error::Error;

use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpError,
};

use crate::model::http::causes;

/// The longest message of a server that is repeated.
const MAX_MESSAGE: usize = 1_000;

/// Whether trying again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureClass {
    /// It may go away by itself: it is tried again.
    Transient,
    /// Somebody has to change something: it is not tried again by itself.
    Permanent,
    /// The user has to sign in.
    Auth,
}

/// A failure of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Whether trying again can help.
    pub class: FailureClass,
    /// What happened.
    pub message: String,
    /// What to do about it.
    pub hint: String,
    /// The end of what the server wrote to its standard error.
    pub stderr: String,
    /// What the server wants to be signed in for, as its answer said; empty where it said nothing.
    pub challenge: String,
}

impl Failure {
    /// A failure without anything from the server.
    #[must_use]
    pub fn new(class: FailureClass, message: impl Into<String>, hint: impl Into<String>) -> Self {
        let (stderr, challenge) = (String::new(), String::new());
        Self { class, message: bounded(&message.into()), hint: hint.into(), stderr, challenge }
    }

    /// One that may go away by itself.
    pub(crate) fn transient(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(FailureClass::Transient, message, hint)
    }

    /// One that stays until somebody changes something.
    pub(crate) fn permanent(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(FailureClass::Permanent, message, hint)
    }

    /// The server wants the user to sign in.
    pub(crate) fn auth(server: &str, challenge: &str) -> Self {
        let message = "the server wants you to sign in".to_owned();
        let hint = format!(
            "Sign in with `agent/mcp/authenticate` or `/mcp`, or put a token into the `headers` of `{server}`."
        );
        Self { challenge: bounded(challenge), ..Self::new(FailureClass::Auth, message, hint) }
    }

    /// Why a connection over the network could not be begun.
    pub(crate) fn of_initialize(server: &str, error: &ClientInitializeError) -> Self {
        if let Some(challenge) = error.auth_challenge() {
            return Self::auth(server, challenge);
        }
        match error {
            ClientInitializeError::TransportError { error, .. } => {
                Self::of_transport(server, error.error.as_ref())
            }
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
                Self::of_initialize(server, fallback)
            }
            ClientInitializeError::JsonRpcError(error) => Self::permanent(
                format!("the server refused to begin: {}", error.message),
                "Look into the server's own documentation; its entry may lack something.",
            ),
            ClientInitializeError::NoCompatibleProtocolVersion { .. } => Self::permanent(
                "the server speaks no version of the protocol that is known here",
                "Update the server, or kode-ls.",
            ),
            _ => Self::transient(
                format!("the server did not answer as it should: {}", causes(error)),
                "It is tried again. If it stays so, run the server by hand and see what it says.",
            ),
        }
    }

    /// What the network, or what speaks for it, says.
    pub(crate) fn of_transport(server: &str, error: &(dyn Error + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(current) = next {
            if let Some(auth) = current.downcast_ref::<AuthRequiredError>() {
                return Self::auth(server, &auth.www_authenticate_header);
            }
            if let Some(scope) = current.downcast_ref::<InsufficientScopeError>() {
                return Self::auth(server, &scope.www_authenticate_header);
            }
            if let Some(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) =
                current.downcast_ref::<AuthError>()
            {
                return Self::auth(server, "");
            }
            if let Some(status) = current.downcast_ref::<HttpStatusError>() {
                return Self::of_status(server, status.status);
            }
            if let Some(client) = current.downcast_ref::<reqwest::Error>() {
                return match client.status() {
                    Some(status) => Self::of_status(server, status.as_u16()),
                    None if client.is_builder() => Self::permanent(
                        format!("the address cannot be used: {}", causes(client)),
                        "Put `url` and `headers` of its entry right.",
                    ),
                    None => Self::unreachable(&causes(client)),
                };
            }
            if let Some(StreamableHttpError::UnexpectedServerResponse(said)) =
                current.downcast_ref::<StreamableHttpError<reqwest::Error>>()
            {
                return match status_in(said) {
                    Some(status) => Self::of_status(server, status),
                    None => Self::no_server(said),
                };
            }
            if let Some(StreamableHttpError::UnexpectedContentType(kind)) =
                current.downcast_ref::<StreamableHttpError<reqwest::Error>>()
            {
                return Self::no_server(&format!(
                    "it answered with {}",
                    kind.as_deref().unwrap_or("no type")
                ));
            }
            next = current.source();
        }
        Self::unreachable(&causes(error))
    }

    /// What an answer with this status of HTTP means.
    pub(crate) fn of_status(server: &str, status: u16) -> Self {
        match status {
            401 | 403 => Self::auth(server, ""),
            408 | 429 | 500..=599 => Self::transient(
                format!("the server answered with HTTP status {status}"),
                "It is tried again by itself.",
            ),
            _ => Self::permanent(
                format!("the server answered with HTTP status {status}"),
                "Check the `url` of its entry, and whether its `type` is `http` or `sse`.",
            ),
        }
    }

    fn no_server(said: &str) -> Self {
        Self::permanent(
            format!("there is no MCP server at the address: {said}"),
            "Check the `url` of its entry, and whether its `type` is `http` or `sse`.",
        )
    }

    fn unreachable(why: &str) -> Self {
        Self::transient(
            format!("the server cannot be reached: {why}"),
            "It is tried again by itself. Check the address, your network and the proxy.",
        )
    }

    /// Why a request to a connected server failed.
    pub(crate) fn of_request(server: &str, error: &ServiceError) -> Self {
        match error {
            ServiceError::McpError(error) => Self::permanent(
                format!("the server answered with an error: {}", error.message),
                "Look at the arguments.",
            ),
            ServiceError::TransportSend(error) => Self::of_transport(server, error.error.as_ref()),
            ServiceError::TransportClosed => {
                Self::transient("the connection to the server has ended", "It is made again by itself.")
            }
            ServiceError::Timeout { timeout } => Self::transient(
                format!("the server did not answer within {} s", timeout.as_secs_f32()),
                "Ask for less at once, or raise `timeout` in the server's entry.",
            ),
            _ => Self::transient(
                format!("the server did not answer as it should: {}", causes(error)),
                "Try it again.",
            ),
        }
    }
}

/// A text of bounded length in one piece.
pub(crate) fn bounded(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
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

    #[test]
    fn a_status_says_whether_trying_again_can_help() {
        for (status, class) in [
            (401, FailureClass::Auth),
            (403, FailureClass::Auth),
            (404, FailureClass::Permanent),
            (405, FailureClass::Permanent),
            (429, FailureClass::Transient),
            (503, FailureClass::Transient),
        ] {
            let failure = Failure::of_status("s", status);
            assert_eq!(failure.class, class, "{status}");
            assert!(!failure.hint.is_empty());
        }
        assert_eq!(status_in("HTTP 404 Not Found: nothing"), Some(404));
        assert_eq!(status_in("something else"), None);
    }

    #[test]
    fn a_message_of_a_server_is_repeated_only_so_far() {
        let failure = Failure::transient("x".repeat(100_000), "");
        assert!(failure.message.chars().count() <= MAX_MESSAGE + 1);
    }
}
