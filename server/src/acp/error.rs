//! Errors as clients of the protocol get them.
//!
//! Rule: the message is one line that names what failed, why, and what to do next.

use agent_client_protocol_schema::v1::{Error, ErrorCode};
use kode_engine::agent::engine::SessionError;
use kode_engine::agent::session::prompts::SubmitError;
use kode_engine::model::ModelError;

use crate::display::readable;

/// The most characters of a message.
const MAX_MESSAGE: usize = 1_000;

/// Makes an error with a message of one line.
fn failure(code: ErrorCode, message: &str) -> Error {
    Error::new(code.into(), one_line(message))
}

/// A text on one line, cut to the length of a message.
pub(super) fn one_line(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    let line = readable(&line.join(" "));
    match line.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The parameters do not fit the method.
pub(super) fn invalid_params(message: &str) -> Error {
    failure(ErrorCode::InvalidParams, message)
}

/// The message is no valid request.
pub(super) fn invalid_request(message: &str) -> Error {
    failure(ErrorCode::InvalidRequest, message)
}

/// The method is not served.
pub(super) fn unknown_method(method: &str) -> Error {
    failure(ErrorCode::MethodNotFound, &format!("Unknown method `{method}`."))
}

/// The request was cancelled by the client.
pub(super) fn cancelled() -> Error {
    failure(ErrorCode::RequestCancelled, "The request was cancelled.")
}

/// The request failed for a reason that is not in its parameters.
pub(super) fn internal(message: &str) -> Error {
    failure(ErrorCode::InternalError, message)
}

/// No model can be used before the user has set one up.
pub(super) fn auth_required(message: &str) -> Error {
    failure(ErrorCode::AuthRequired, message)
}

/// A model cannot be used: set it up, then authenticate again.
pub(super) fn model(error: &ModelError) -> Error {
    auth_required(&format!("{} {}", error.message, error.hint()))
}

/// No session of that id is open or stored.
pub(super) fn unknown_session(id: &str) -> Error {
    failure(
        ErrorCode::ResourceNotFound,
        &format!("There is no session `{id}`. session/list names the stored sessions."),
    )
}

/// A session cannot be had.
pub(super) fn session(error: &SessionError) -> Error {
    match error {
        SessionError::Unknown(id) => unknown_session(id.as_str()),
        SessionError::Model(error) => model(error),
        SessionError::Mode(error) => invalid_params(&error.to_string()),
        SessionError::Followed { .. } => {
            internal(&format!("{error}. Send the prompt /takeover to continue it here."))
        }
        SessionError::NoFolder
        | SessionError::Running(_)
        | SessionError::Worktree(_)
        | SessionError::Title(_)
        | SessionError::Declined { .. }
        | SessionError::Silent { .. }
        | SessionError::Storage { .. }
        | SessionError::Corrupted { .. } => internal(&error.to_string()),
    }
}

/// A prompt was not accepted.
pub(super) fn submit(error: SubmitError) -> Error {
    match error {
        SubmitError::Empty => invalid_params("The prompt is empty. Add text or an attachment."),
        SubmitError::QueueFull
        | SubmitError::SteeringFull
        | SubmitError::Closed
        | SubmitError::SideQuestion
        | SubmitError::ChatDisabled => internal(&error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_of_bounded_length() {
        let error = internal(&format!("it failed:\n\u{1b}[31m{}", "x".repeat(2 * MAX_MESSAGE)));
        assert!(error.message.starts_with("it failed: \\u{1b}[31mxxx"), "{}", error.message);
        assert!(error.message.ends_with('…') && !error.message.contains('\n'));
        assert_eq!(error.message.chars().count(), MAX_MESSAGE + 1);
    }
}
