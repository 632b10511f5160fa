//! Messages of JSON-RPC as they arrive, one a line.
//!
//! Rule: whatever arrives is one of four: a request, a notification, an answer, or something invalid with the error that answers
//! it.

use agent_client_protocol_schema::v1::{Error, ErrorCode, RequestId};
use kode_base::paths::one_line;
use serde_json::{Map, Value};

use crate::lines::{MAX_MESSAGE, MessageLine};

/// A message of the other side.
#[derive(Debug)]
pub enum RpcMessage {
    /// A request, to be answered under its id.
    Request {
        /// Its id.
        id: RequestId,
        /// The method.
        method: String,
        /// The parameters, an object where there are any.
        params: Option<Value>,
    },
    /// A notification.
    Notification {
        /// The method.
        method: String,
        /// The parameters, an object where there are any.
        params: Option<Value>,
    },
    /// The answer to a request of this side.
    Answer {
        /// The id of the request.
        id: RequestId,
        /// The result, or the error.
        outcome: Result<Value, Error>,
    },
    /// No message of the protocol.
    Invalid {
        /// The id as far as it is known.
        id: RequestId,
        /// The error that answers it.
        error: Error,
    },
}

impl RpcMessage {
    /// Reads a line.
    #[must_use]
    pub fn of(line: &MessageLine) -> Self {
        match line {
            MessageLine::Message(line) => parse(line),
            MessageLine::TooLong => invalid(
                RequestId::Null,
                &format!("A message may have {} MiB; this one is longer and was skipped.", MAX_MESSAGE >> 20),
            ),
        }
    }
}

/// Parses one message.
fn parse(line: &[u8]) -> RpcMessage {
    match serde_json::from_slice(line) {
        Ok(Value::Object(message)) => read(message),
        Ok(Value::Array(_)) => {
            invalid(RequestId::Null, "Batches are not supported. Send one message a line.")
        }
        Ok(_) => invalid(RequestId::Null, "A message is a JSON object."),
        Err(error) => {
            let error = failure(ErrorCode::ParseError, &format!("The line is not valid JSON: {error}."));
            RpcMessage::Invalid { id: RequestId::Null, error }
        }
    }
}

fn read(mut message: Map<String, Value>) -> RpcMessage {
    let id = message.remove("id").map(serde_json::from_value::<RequestId>);
    let id = match id {
        None => None,
        Some(Ok(id)) => Some(id),
        Some(Err(_)) => return invalid(RequestId::Null, "`id` is neither a string nor an integer."),
    };
    let known = id.clone().unwrap_or(RequestId::Null);
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid(known, "`jsonrpc` is not \"2.0\".");
    }
    let params = message.remove("params").filter(|params| !params.is_null());
    match (message.remove("method"), id) {
        (Some(Value::String(_)), _) if params.as_ref().is_some_and(|params| !params.is_object()) => {
            invalid(known, "`params` is not an object.")
        }
        (Some(Value::String(method)), Some(id)) => RpcMessage::Request { id, method, params },
        (Some(Value::String(method)), None) => RpcMessage::Notification { method, params },
        (Some(_), _) => invalid(known, "`method` is not a string."),
        (None, Some(id)) => match (message.remove("result"), message.remove("error")) {
            (_, Some(error)) => RpcMessage::Answer { id, outcome: Err(client_error(error)) },
            (Some(result), None) => RpcMessage::Answer { id, outcome: Ok(result) },
            (None, None) => invalid(id, "The message has neither `method` nor `result` nor `error`."),
        },
        (None, None) => invalid(known, "The message has neither `method` nor `id`."),
    }
}

fn client_error(error: Value) -> Error {
    serde_json::from_value(error.clone())
        .unwrap_or_else(|_| failure(ErrorCode::InternalError, &error.to_string()))
}

fn invalid(id: RequestId, message: &str) -> RpcMessage {
    RpcMessage::Invalid { id, error: failure(ErrorCode::InvalidRequest, message) }
}

/// An error of JSON-RPC.
pub type RpcError = Error;

/// The error of a request that failed for a reason that is not in its parameters.
#[must_use]
pub fn internal(message: &str) -> RpcError {
    failure(ErrorCode::InternalError, message)
}

/// An error with a message of one line.
pub(crate) fn failure(code: ErrorCode, message: &str) -> Error {
    Error::new(code.into(), one_line(message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn code(message: RpcMessage) -> (RequestId, i32) {
        match message {
            RpcMessage::Invalid { id, error } => (id, error.code.into()),
            _ => panic!("the message is valid"),
        }
    }

    #[test]
    fn a_message_that_is_wrong_is_answered_by_what_is_known_of_it() {
        for (line, id, expected) in [
            ("{", RequestId::Null, -32_700),
            ("7", RequestId::Null, -32_600),
            ("[]", RequestId::Null, -32_600),
            (r#"{"id":1,"method":"x"}"#, RequestId::Number(1), -32_600),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, RequestId::Null, -32_600),
            (r#"{"jsonrpc":"2.0","id":"a","method":3}"#, RequestId::Str("a".into()), -32_600),
            (r#"{"jsonrpc":"2.0","id":2,"method":"x","params":[1]}"#, RequestId::Number(2), -32_600),
            (r#"{"jsonrpc":"2.0","id":3}"#, RequestId::Number(3), -32_600),
            (r#"{"jsonrpc":"2.0"}"#, RequestId::Null, -32_600),
        ] {
            assert_eq!(code(parse(line.as_bytes())), (id, expected), "{line}");
        }
    }

    #[test]
    fn requests_notifications_and_answers_are_distinguished() {
        let line = |value: Value| parse(value.to_string().as_bytes());
        let request = line(json!({ "jsonrpc": "2.0", "id": 0, "method": "m", "params": null }));
        assert!(matches!(request, RpcMessage::Request { id: RequestId::Number(0), params: None, .. }));
        let notification = line(json!({ "jsonrpc": "2.0", "method": "m", "params": {} }));
        assert!(matches!(notification, RpcMessage::Notification { params: Some(_), .. }));
        let answer = line(json!({ "jsonrpc": "2.0", "id": 4, "result": null }));
        assert!(matches!(answer, RpcMessage::Answer { outcome: Ok(Value::Null), .. }));
        let failed = line(json!({ "jsonrpc": "2.0", "id": 4, "error": { "code": 1, "message": "no" } }));
        let RpcMessage::Answer { outcome: Err(error), .. } = failed else { panic!("an error") };
        assert_eq!((i32::from(error.code), error.message.as_str()), (1, "no"));
    }
}
