//! The kind of a body: a call of ours, the answer to a request we sent, or neither.
//!
//! Rule: every body gets a verdict and nothing here fails for good; an invalid message gets an error with
//! the standard JSON-RPC codes.

use serde_json::{Map, Value, json};
use tower_lsp::jsonrpc::{Error, ErrorCode, Id, Request, Response};

use super::frame::FrameError;

/// The notification of a document whose text is over [`MAX_BODY`](super::frame::MAX_BODY). The transport makes it in the
/// place of the client's own, so that it is handled in the order of notifications.
pub const TOO_LARGE: &str = "$/kode/documentTooLarge";

/// A body, read.
#[derive(Debug)]
pub enum IncomingMessage {
    /// A request or notification for the service.
    Call(Request),
    /// The client's answer to a request of ours.
    Answer(Response),
    /// Neither; the response to send instead.
    Invalid(Response),
}

/// Reads a body.
#[must_use]
pub fn parse(body: &[u8]) -> IncomingMessage {
    match parse_json(body) {
        Ok(Value::Object(fields)) => classify(fields),
        Ok(Value::Array(_)) => {
            invalid_request(Id::Null, "batches are not part of the language server protocol")
        }
        Ok(_) => invalid_request(Id::Null, "a message must be a JSON object"),
        Err(fault) => IncomingMessage::Invalid(Response::from_error(
            Id::Null,
            error(ErrorCode::ParseError, fault.to_string()),
        )),
    }
}

/// The notification that represents bytes that are no frame, when they are a document that is too large to be followed;
/// else the response to them.
#[must_use]
pub fn skipped(fault: &FrameError) -> IncomingMessage {
    if let FrameError::BodyTooLarge { bytes, head } = fault
        && let Some(uri) = uri_of_document(head)
    {
        return IncomingMessage::Call(call(
            TOO_LARGE.to_owned(),
            None,
            Some(json!({ "uri": uri, "bytes": bytes })),
        ));
    }
    IncomingMessage::Invalid(frame_error(fault))
}

/// The URI of the document whose text a message brings, by the beginning of the message. Clients write it before the text.
fn uri_of_document(head: &[u8]) -> Option<String> {
    let after = |text: &[u8], key: &str| {
        let at = text.windows(key.len()).position(|part| part == key.as_bytes())?;
        let rest = text[at + key.len()..].trim_ascii_start().strip_prefix(b":")?;
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<String>();
        values.next()?.ok().map(|value| (value, at))
    };
    let (method, _) = after(head, "\"method\"")?;
    if !["textDocument/didOpen", "textDocument/didChange"].contains(&method.as_str()) {
        return None;
    }
    let (uri, at) = after(head, "\"uri\"")?;
    // A quoted key within a text has its quotes escaped, and so is not a key.
    let is_before_text = after(head, "\"text\"").is_none_or(|(_, text)| at < text);
    is_before_text.then_some(uri)
}

/// The response to bytes that are no frame, or none that is taken.
#[must_use]
pub fn frame_error(fault: &FrameError) -> Response {
    let code = match fault {
        FrameError::BodyTooLarge { .. } => ErrorCode::InvalidRequest,
        FrameError::NotAHeader
        | FrameError::HeaderTooLong
        | FrameError::NoLength
        | FrameError::BadLength(_) => ErrorCode::ParseError,
    };
    Response::from_error(Id::Null, error(code, fault.to_string()))
}

/// An error with a text of our own.
#[must_use]
pub fn error(code: ErrorCode, message: String) -> Error {
    Error { code, message: message.into(), data: None }
}

/// Editors written in JavaScript hold text in UTF-16 and may send half a surrogate pair as an escape, which no
/// Rust string can hold. Each half becomes U+FFFD, one UTF-16 unit like itself, so that positions stay true;
/// without this the whole change would be lost and the document with it.
fn parse_json(body: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(body).or_else(|error| match replace_lone_surrogates(body) {
        Some(repaired) => serde_json::from_slice(&repaired),
        None => Err(error),
    })
}

fn classify(mut fields: Map<String, Value>) -> IncomingMessage {
    let id = fields.remove("id").map(|id| parse_id(&id));
    let readable_id = || id.clone().flatten().unwrap_or(Id::Null);
    let method = match fields.remove("method") {
        Some(Value::String(method)) => Some(method),
        Some(_) => return invalid_request(readable_id(), "`method` must be a string"),
        None => None,
    };
    if fields.remove("jsonrpc").as_ref().and_then(Value::as_str) != Some("2.0") {
        let id = if method.is_some() { readable_id() } else { Id::Null };
        return invalid_request(id, "`jsonrpc` must be \"2.0\"");
    }
    match (method, id) {
        (Some(method), None) => IncomingMessage::Call(call(method, None, fields.remove("params"))),
        (Some(method), Some(Some(id))) => {
            IncomingMessage::Call(call(method, Some(id), fields.remove("params")))
        }
        (None, Some(Some(id))) => match (fields.remove("result"), fields.remove("error")) {
            (_, Some(error)) if !error.is_null() => {
                IncomingMessage::Answer(Response::from_error(id, foreign_error(error)))
            }
            (Some(result), _) => IncomingMessage::Answer(Response::from_ok(id, result)),
            // Some clients leave out a result that is undefined to them; the caller must not wait for ever.
            (None, _) => IncomingMessage::Answer(Response::from_ok(id, Value::Null)),
        },
        (_, Some(None)) => invalid_request(Id::Null, "`id` must be an integer or a string"),
        (None, None) => invalid_request(Id::Null, "a message needs a `method` or an `id`"),
    }
}

/// Builds the call. Clients write "no parameters" as `null` and as nothing at all, and some send parameters with
/// `shutdown` and `exit`, which have none; the router takes only the plain form.
fn call(method: String, id: Option<Id>, params: Option<Value>) -> Request {
    let without = matches!(method.as_str(), "shutdown" | "exit");
    let request_takes_object = method.starts_with("agent/");
    let request = Request::build(method);
    let request = match params {
        Some(params) if !params.is_null() && !without => request.params(params),
        // All fields of these may be left out, and then so may the object.
        None | Some(Value::Null) if request_takes_object => request.params(json!({})),
        Some(_) | None => request,
    };
    match id {
        Some(id) => request.id(id).finish(),
        None => request.finish(),
    }
}

/// An id; `Some(Id::Null)` is never given, since a request with a null id could not be answered.
fn parse_id(id: &Value) -> Option<Id> {
    match id {
        Value::Number(number) => number.as_i64().map(Id::Number),
        Value::String(text) => Some(Id::String(text.clone())),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn foreign_error(mut value: Value) -> Error {
    let code = value.get("code").and_then(Value::as_i64).map_or(ErrorCode::InternalError, ErrorCode::from);
    let message =
        value.get("message").and_then(Value::as_str).unwrap_or("the client gave no reason").to_owned();
    let data = value.get_mut("data").map(Value::take);
    Error { code, message: message.into(), data }
}

fn invalid_request(id: Id, reason: &str) -> IncomingMessage {
    IncomingMessage::Invalid(Response::from_error(id, error(ErrorCode::InvalidRequest, reason.to_owned())))
}

/// The body with every escaped lone surrogate replaced; `None` if absent.
fn replace_lone_surrogates(body: &[u8]) -> Option<Vec<u8>> {
    let mut repaired: Option<Vec<u8>> = None;
    let mut index = 0;
    while index < body.len() {
        if body[index] != b'\\' {
            index += 1;
            continue;
        }
        index += match (escaped_unit(body, index), escaped_unit(body, index + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                repaired.get_or_insert_with(|| body.to_vec())[index..index + 6].copy_from_slice(b"\\ufffd");
                6
            }
            (Some(_), _) => 6,
            (None, _) => 2,
        };
    }
    repaired
}

/// The value of a `\uXXXX` escape at `index`.
fn escaped_unit(body: &[u8], index: usize) -> Option<u16> {
    let digits = body.get(index..index + 6)?.strip_prefix(b"\\u")?;
    let digits = str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(body: &str) -> String {
        match parse(body.as_bytes()) {
            IncomingMessage::Call(request) => format!("call {request}"),
            IncomingMessage::Answer(response) => {
                format!("answer {}", serde_json::to_string(&response).unwrap())
            }
            IncomingMessage::Invalid(response) => {
                format!("invalid {} id {}", response.error().unwrap().code, response.id())
            }
        }
    }

    #[test]
    fn the_document_of_a_skipped_message_is_named_by_its_beginning() {
        let named = |head: &str| uri_of_document(head.as_bytes());
        let open = r#"{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri" : "file:///%C3%A4\u0062","text":"a"#;
        assert_eq!(named(open).as_deref(), Some("file:///%C3%A4b"));
        let change = r#"{"method": "textDocument/didChange", "params": {"textDocument": {"version": 2, "uri": "file:///a"}, "conte"#;
        assert_eq!(named(change).as_deref(), Some("file:///a"));
        for other in [
            "",
            r#"{"method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///half"#,
            r#"{"method":"agent/turn/start","params":{"uri":"file:///a"}}"#,
            r#"{"method":"textDocument/didOpen","params":{"textDocument":{"text":"x","uri":"file:///a"}}}"#,
        ] {
            assert_eq!(named(other), None, "{other}");
        }
    }

    #[test]
    fn every_body_gets_its_verdict() {
        for (body, expected) in [
            (r#"{"jsonrpc":"2.0","method":"m"}"#, r#"call {"jsonrpc":"2.0","method":"m"}"#),
            (
                r#"{"jsonrpc":"2.0","method":"m","id":"a","params":[1]}"#,
                r#"call {"jsonrpc":"2.0","method":"m","params":[1],"id":"a"}"#,
            ),
            (r#"{"jsonrpc":"2.0","method":"m","params":null}"#, r#"call {"jsonrpc":"2.0","method":"m"}"#),
            (
                r#"{"jsonrpc":"2.0","method":"shutdown","id":1,"params":{}}"#,
                r#"call {"jsonrpc":"2.0","method":"shutdown","id":1}"#,
            ),
            (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, r#"answer {"jsonrpc":"2.0","result":null,"id":1}"#),
            (
                r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":-1,"message":"no","extra":true}}"#,
                r#"answer {"jsonrpc":"2.0","error":{"code":-1,"message":"no"},"id":1}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#,
                r#"answer {"jsonrpc":"2.0","error":{"code":-32603,"message":"the client gave no reason"},"id":1}"#,
            ),
            ("", "invalid -32700 id null"),
            ("{", "invalid -32700 id null"),
            ("[]", "invalid -32600 id null"),
            (r#"[{"jsonrpc":"2.0","method":"m","id":1}]"#, "invalid -32600 id null"),
            ("7", "invalid -32600 id null"),
            ("{}", "invalid -32600 id null"),
            (r#"{"jsonrpc":"2.0","id":1}"#, r#"answer {"jsonrpc":"2.0","result":null,"id":1}"#),
            (r#"{"jsonrpc":"2.0","method":1,"id":1}"#, "invalid -32600 id 1"),
            (r#"{"jsonrpc":"1.0","method":"m","id":1}"#, "invalid -32600 id 1"),
            (r#"{"method":"m","id":1}"#, "invalid -32600 id 1"),
            (r#"{"jsonrpc":"2.0","method":"m","id":null}"#, "invalid -32600 id null"),
            (r#"{"jsonrpc":"2.0","method":"m","id":1.5}"#, "invalid -32600 id null"),
        ] {
            assert_eq!(verdict(body), expected, "{body}");
        }
    }

    #[test]
    fn bytes_that_are_no_utf8_are_a_parse_error() {
        let IncomingMessage::Invalid(response) = parse(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\xfe\"}")
        else {
            panic!("taken for a message")
        };
        assert_eq!(response.error().unwrap().code, ErrorCode::ParseError);
    }

    #[test]
    fn half_a_surrogate_pair_does_not_lose_the_message() {
        for (text, expected) in [
            (r"a\ud83db", "a\u{fffd}b"),
            (r"\ude00\ud83d\ude00\ud83d", "\u{fffd}😀\u{fffd}"),
            (r"\ud83d\ud83d\ude00", "\u{fffd}😀"),
            (r"\\ud83d\ud83d", "\\ud83d\u{fffd}"),
        ] {
            let body = format!(r#"{{"jsonrpc":"2.0","method":"m","params":["{text}"]}}"#);
            let IncomingMessage::Call(request) = parse(body.as_bytes()) else { panic!("{text} was lost") };
            assert_eq!(request.params().unwrap()[0], expected, "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_a_parse_error_and_no_overflow() {
        assert_eq!(verdict(&"[".repeat(1 << 20)), "invalid -32700 id null");
    }
}
