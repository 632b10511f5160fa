//! The refusals of the scripted model, in the form of each wire.
//!
//! Rule: status, type and code are those of the API that is imitated, for clients decide by them.

use serde_json::{Value, json};

use kode_model::Wire;

/// A request that is not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The HTTP status.
    pub(super) status: u16,
    /// The problem.
    pub(super) message: String,
    /// The part of the request that is wrong, in the OpenAI formats.
    pub(super) param: Option<String>,
    /// A name for the problem, in the OpenAI formats.
    pub(super) code: Option<&'static str>,
}

impl Refusal {
    /// A request that is wrong in itself.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    /// A request refused with a status.
    pub(super) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), param: None, code: None }
    }

    /// Says which part of the request is wrong.
    #[must_use]
    pub(super) fn param(self, param: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..self }
    }

    /// Names the problem.
    #[must_use]
    pub(super) fn code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    /// The body of the response.
    pub(super) fn body(&self, wire: Wire) -> Value {
        let message = &self.message;
        match wire {
            Wire::AnthropicMessages => {
                json!({"type": "error", "error": {"type": anthropic_type(self.status), "message": message}})
            }
            Wire::Gemini => {
                let status = google_status(self.status);
                json!({"error": {"code": self.status, "message": message, "status": status}})
            }
            Wire::Ollama => json!({"error": message}),
            Wire::ChatCompletions | Wire::Responses => {
                let (kind, code) = openai_type(self.status);
                let code = self.code.or(code);
                json!({"error": {"message": message, "type": kind, "param": self.param, "code": code}})
            }
        }
    }
}

/// For checks that name the problem and no more.
impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self::invalid(message)
    }
}

fn anthropic_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500..=599 => "api_error",
        _ => "invalid_request_error",
    }
}

fn google_status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        500..=599 => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    }
}

/// The type, and the code where the status alone has one.
fn openai_type(status: u16) -> (&'static str, Option<&'static str>) {
    match status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        429 => ("requests", Some("rate_limit_exceeded")),
        500..=599 => ("server_error", None),
        _ => ("invalid_request_error", None),
    }
}
