//! Why an MCP server cannot be used, by class.
//!
//! Rule: every failure names what happened and what to do next.

/// The longest message of a server that is repeated.
const MAX_MESSAGE: usize = 1_000;

/// Whether trying again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpFailureClass {
    /// It may go away by itself: it is tried again.
    Transient,
    /// The user has to change something: it is not tried again by itself.
    Permanent,
    /// The user has to sign in.
    Auth,
}

/// A failure of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct McpFailure {
    /// Whether trying again can help.
    pub class: McpFailureClass,
    /// The event.
    pub message: String,
    /// The next step.
    pub hint: String,
    /// The end of what the server wrote to its standard error.
    pub stderr: String,
    /// The scopes of the server's answer for a sign-in; may be empty.
    pub challenge: String,
}

impl McpFailure {
    /// A failure without anything from the server.
    #[must_use]
    pub fn new(class: McpFailureClass, message: impl Into<String>, hint: impl Into<String>) -> Self {
        let (stderr, challenge) = (String::new(), String::new());
        Self { class, message: bounded(&message.into()), hint: hint.into(), stderr, challenge }
    }

    /// One that may go away by itself.
    pub fn transient(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(McpFailureClass::Transient, message, hint)
    }

    /// One that stays until the user changes something.
    pub fn permanent(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(McpFailureClass::Permanent, message, hint)
    }

    /// The server wants the user to sign in.
    pub fn auth(server: &str, challenge: &str) -> Self {
        let message = "the server wants you to sign in".to_owned();
        let hint = format!(
            "Sign in with `agent/mcp/authenticate` or `/mcp login {server}`, or put a token into the `headers` of `{server}`."
        );
        Self { challenge: bounded(challenge), ..Self::new(McpFailureClass::Auth, message, hint) }
    }
}

/// A text of bounded length in one piece.
pub fn bounded(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_a_server_is_repeated_only_so_far() {
        let failure = McpFailure::transient("x".repeat(100_000), "");
        assert!(failure.message.chars().count() <= MAX_MESSAGE + 1);
    }
}
