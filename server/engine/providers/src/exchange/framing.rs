//! How the events of an answer are in the bytes of its body.
//!
//! Rule: the events do not depend on where the bytes were split, and every format limits the size of one event.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use kode_net::aws::event_stream::{self, EventMessage};
use kode_net::sse::{MAX_EVENT_BYTES, SseEvent, SseParser};

/// The parser of one body.
#[derive(Debug)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events(SseParser),
    /// JSON values, one a line.
    Lines(Vec<u8>),
    /// Messages of AWS' event stream, each with an event of the model's own format in it.
    Messages(event_stream::Parser),
}

/// An event of the model's own format, as Bedrock packs it.
#[derive(Deserialize)]
struct BedrockEvent {
    bytes: String,
}

impl Framing {
    /// The parser for a content type; that of server-sent events without one. `None` for other types.
    pub(crate) fn of(content_type: Option<&str>) -> Option<Self> {
        match content_type {
            None | Some("text/event-stream") => Some(Self::events()),
            Some("application/x-ndjson" | "application/ndjson" | "application/jsonl") => Some(Self::lines()),
            Some("application/vnd.amazon.eventstream") => Some(Self::messages()),
            Some(_) => None,
        }
    }

    pub(crate) fn events() -> Self {
        Self::Events(SseParser::default())
    }

    pub(crate) fn lines() -> Self {
        Self::Lines(Vec::new())
    }

    pub(crate) fn messages() -> Self {
        Self::Messages(event_stream::Parser::default())
    }

    /// Reads the next bytes and appends the events that they complete to `events`.
    ///
    /// # Errors
    /// The problems of the bytes; the events before it have been appended.
    pub(super) fn feed(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), String> {
        match self {
            Self::Events(parser) => parser.feed(bytes, events).map_err(|error| error.to_string()),
            Self::Lines(pending) => lines(pending, bytes, events),
            Self::Messages(parser) => {
                let mut messages = Vec::new();
                let fed = parser.feed(bytes, &mut messages).map_err(|error| error.to_string());
                for message in &messages {
                    events.extend(unpacked(message)?);
                }
                fed
            }
        }
    }
}

fn lines(pending: &mut Vec<u8>, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), String> {
    // The pending bytes hold no end of a line.
    let mut rest = bytes;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        pending.extend_from_slice(&rest[..end]);
        let data = String::from_utf8_lossy(pending).trim().to_owned();
        pending.clear();
        rest = &rest[end + 1..];
        if !data.is_empty() {
            events.push(SseEvent { event: String::new(), data });
        }
    }
    pending.extend_from_slice(rest);
    if pending.len() > MAX_EVENT_BYTES {
        return Err(format!("a line of the stream is larger than {MAX_EVENT_BYTES} bytes"));
    }
    Ok(())
}

/// The event in a message of AWS; `None` for messages that hold none.
fn unpacked(message: &EventMessage) -> Result<Option<SseEvent>, String> {
    let kind = message.header(":event-type").or(message.header(":exception-type")).unwrap_or_default();
    match message.header(":message-type") {
        Some("event") if kind == "chunk" => {
            let packed: BedrockEvent = serde_json::from_slice(&message.payload)
                .map_err(|error| format!("a chunk of the event stream: {error}"))?;
            let bytes = STANDARD
                .decode(packed.bytes)
                .map_err(|error| format!("a chunk of the event stream: {error}"))?;
            let data =
                String::from_utf8(bytes).map_err(|error| format!("a chunk of the event stream: {error}"))?;
            Ok(Some(SseEvent { event: String::new(), data }))
        }
        Some("event") => Ok(None),
        // Errors get the shape that the Messages format gives them.
        _ => {
            let words: Value = serde_json::from_slice(&message.payload).unwrap_or_default();
            let code = message.header(":error-code").unwrap_or(kind);
            let reported = message.header(":error-message").or(words["message"].as_str()).unwrap_or(code);
            let error =
                json!({"type": "error", "error": {"type": class(code), "code": code, "message": reported}});
            Ok(Some(SseEvent { event: "error".to_owned(), data: error.to_string() }))
        }
    }
}

/// The name of a Bedrock exception in the Messages format.
fn class(exception: &str) -> &'static str {
    match exception {
        "throttlingException" => "rate_limit_error",
        "validationException" => "invalid_request_error",
        "accessDeniedException" => "permission_error",
        "serviceUnavailableException" => "overloaded_error",
        "modelTimeoutException" => "timeout_error",
        _ => "api_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut framing: Framing, pieces: &[&[u8]]) -> Result<Vec<String>, String> {
        let mut events = Vec::new();
        pieces.iter().try_for_each(|piece| framing.feed(piece, &mut events))?;
        Ok(events.into_iter().map(|event| event.data).collect())
    }

    #[test]
    fn lines_are_read_wherever_they_are_cut() {
        let text = "{\"a\": \"é\"}\r\n\n {\"b\": 2}\n{\"cut\"".as_bytes();
        for at in 0..=text.len() {
            let (head, tail) = text.split_at(at);
            let events = read(Framing::lines(), &[head, tail]).unwrap();
            assert_eq!(events, ["{\"a\": \"é\"}", "{\"b\": 2}"], "cut at byte {at}");
        }
        assert!(read(Framing::lines(), &[&vec![b'x'; MAX_EVENT_BYTES + 1]]).is_err());
    }

    #[test]
    fn packed_events_and_exceptions_are_unpacked() {
        let message = |headers: &[(&str, &str)], payload: &str| EventMessage {
            headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            payload: payload.as_bytes().to_vec(),
        };
        let chunk = message(
            &[(":event-type", "chunk"), (":message-type", "event")],
            r#"{"bytes":"eyJhIjoxfQ==","p":"x"}"#,
        );
        assert_eq!(unpacked(&chunk).unwrap().unwrap().data, r#"{"a":1}"#);
        let other = message(&[(":event-type", "new"), (":message-type", "event")], "{}");
        assert_eq!(unpacked(&other).unwrap(), None);
        for (exception, class) in [("throttlingException", "rate_limit_error"), ("new", "api_error")] {
            let headers = [(":exception-type", exception), (":message-type", "exception")];
            let event = unpacked(&message(&headers, r#"{"message":"Too many"}"#)).unwrap().unwrap();
            let data: Value = serde_json::from_str(&event.data).unwrap();
            assert_eq!((event.event.as_str(), &data["error"]["type"]), ("error", &json!(class)));
            assert_eq!(data["error"]["message"], "Too many");
        }
        let broken = message(&[(":event-type", "chunk"), (":message-type", "event")], "{}");
        assert!(unpacked(&broken).is_err());
    }
}
