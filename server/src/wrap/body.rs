//! A message as its bytes, and what a relay has to know of it.
//!
//! Rule: nothing but the id is ever changed in a message that passes; it is not serialized again.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A message that has arrived.
#[derive(Clone, Debug)]
pub(super) struct Body {
    bytes: Bytes,
    kind: BodyKind,
    id: Option<Range<usize>>,
    content: Option<Range<usize>>,
}

/// The kind of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BodyKind {
    /// A request with this method.
    Request(String),
    /// A notification with this method.
    Notification(String),
    /// The answer to a request: a result, or an error.
    Answer { is_error: bool },
    /// Not a message of the protocol.
    Unreadable,
}

/// A message on its way, in pieces that are written one behind the other.
#[derive(Clone, Debug)]
pub(super) struct OutgoingFrame(pub(super) [Bytes; 3]);

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl OutgoingFrame {
    /// A frame of these bytes.
    pub(super) fn of(bytes: impl Into<Bytes>) -> Self {
        Self([bytes.into(), Bytes::new(), Bytes::new()])
    }

    /// A frame of a value.
    pub(super) fn json(value: &Value) -> Self {
        Self::of(value.to_string())
    }

    /// A notification.
    pub(super) fn notification(method: &str, params: &Value) -> Self {
        Self::json(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }

    /// A request.
    pub(super) fn request(id: u64, method: &str, params: &Value) -> Self {
        Self::json(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
    }

    /// The answer to the request with this id, which is JSON.
    pub(super) fn result(id: &Bytes, result: &Value) -> Self {
        Self::answer(id, format!("\"result\":{result}"))
    }

    /// The refusal of the request with this id, which is JSON.
    pub(super) fn error(id: &Bytes, code: i64, message: &str) -> Self {
        let error = json!({ "code": code, "message": message });
        Self::answer(id, format!("\"error\":{error}"))
    }

    fn answer(id: &Bytes, rest: String) -> Self {
        let head = Bytes::from_static(b"{\"jsonrpc\":\"2.0\",\"id\":");
        Self([head, id.clone(), format!(",{rest}}}").into()])
    }

    /// How many bytes it has.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }
}

impl Body {
    /// Reads what has to be known of a message.
    pub(super) fn read(bytes: Bytes) -> Self {
        let unreadable = Self { bytes: bytes.clone(), kind: BodyKind::Unreadable, id: None, content: None };
        let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(&bytes) else { return unreadable };
        let place = |raw: &RawValue| {
            let start = raw.get().as_ptr().addr() - bytes.as_ptr().addr();
            start..start + raw.get().len()
        };
        let (id, is_error) = (envelope.id.map(place), envelope.error.is_some());
        let (kind, content) = match (envelope.method, &id) {
            (Some(method), Some(_)) => (BodyKind::Request(method.into_owned()), envelope.params),
            (Some(method), None) => (BodyKind::Notification(method.into_owned()), envelope.params),
            (None, Some(_)) if is_error => (BodyKind::Answer { is_error }, envelope.error),
            (None, Some(_)) => (BodyKind::Answer { is_error }, envelope.result),
            (None, None) => return unreadable,
        };
        let content = content.map(place);
        Self { bytes, kind, id, content }
    }

    /// The message as it is.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The kind of the message.
    pub(super) fn kind(&self) -> &BodyKind {
        &self.kind
    }

    /// The bytes of the id in the message; empty without one.
    pub(super) fn id(&self) -> Bytes {
        self.id.clone().map(|place| self.bytes.slice(place)).unwrap_or_default()
    }

    /// The id where it is one of ours.
    pub(super) fn own_id(&self) -> Option<u64> {
        serde_json::from_slice(&self.id()).ok()
    }

    /// The parameters, the result or the error; `Null` where they cannot be read.
    pub(super) fn value(&self) -> Value {
        self.parse().unwrap_or_default()
    }

    /// The parts of the parameters, the result or the error that a type has.
    pub(super) fn parse<'a, T: Deserialize<'a>>(&'a self) -> Option<T> {
        let text = match self.content.clone() {
            Some(place) => &self.bytes[place],
            None => b"null".as_slice(),
        };
        serde_json::from_slice(text).ok()
    }

    /// The message as it is.
    pub(super) fn frame(&self) -> OutgoingFrame {
        OutgoingFrame::of(self.bytes.clone())
    }

    /// The message with another id, which is JSON.
    pub(super) fn with_id(&self, id: impl Into<Bytes>) -> OutgoingFrame {
        let Some(place) = self.id.clone() else { return self.frame() };
        OutgoingFrame([self.bytes.slice(..place.start), id.into(), self.bytes.slice(place.end..)])
    }

    /// The message with other parameters, result or error.
    pub(super) fn with_content(&self, content: &impl Serialize) -> Self {
        let Some(place) = self.content.clone() else { return self.clone() };
        let Ok(content) = serde_json::to_vec(content) else { return self.clone() };
        let bytes = [&self.bytes[..place.start], &content, &self.bytes[place.end..]].concat();
        Self::read(bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Body {
        Body::read(Bytes::copy_from_slice(text.as_bytes()))
    }

    fn text(frame: &OutgoingFrame) -> String {
        String::from_utf8(frame.0.concat()).unwrap()
    }

    #[test]
    fn a_message_with_another_id_is_the_same_but_for_it() {
        let body =
            read(r#" {"params" : {"id": 3, "b":"\ud83d"} , "id" :"a" ,"method":"m", "jsonrpc":"2.0"} "#);
        assert_eq!(*body.kind(), BodyKind::Request("m".to_owned()));
        assert_eq!(body.id(), "\"a\"".as_bytes());
        let expected = r#" {"params" : {"id": 3, "b":"\ud83d"} , "id" :17 ,"method":"m", "jsonrpc":"2.0"} "#;
        assert_eq!(text(&body.with_id("17")), expected);
    }

    #[test]
    fn every_kind_of_message_is_known() {
        for (message, expected) in [
            (r#"{"method":"m","params":1}"#, BodyKind::Notification("m".to_owned())),
            (r#"{"id":1,"result":null}"#, BodyKind::Answer { is_error: false }),
            (r#"{"id":1,"error":{"code":1}}"#, BodyKind::Answer { is_error: true }),
            (r#"{"id":1,"error":null,"result":2}"#, BodyKind::Answer { is_error: false }),
            (r#"{"id":null,"error":{}}"#, BodyKind::Unreadable),
            ("[]", BodyKind::Unreadable),
            ("{", BodyKind::Unreadable),
            ("", BodyKind::Unreadable),
            (r#"{"id":1,"id":2,"method":"m"}"#, BodyKind::Unreadable),
        ] {
            assert_eq!(*read(message).kind(), expected, "{message}");
        }
        assert_eq!(*Body::read(Bytes::from_static(b"{\"method\":\"\xff\"}")).kind(), BodyKind::Unreadable);
    }

    #[test]
    fn content_is_replaced_where_it_is() {
        let body = read(r#"{"id":1,"params":{"a":1},"method":"m"}"#);
        let changed = body.with_content(&json!([2]));
        assert_eq!(text(&changed.frame()), r#"{"id":1,"params":[2],"method":"m"}"#);
        assert_eq!((body.value(), changed.value()), (json!({ "a": 1 }), json!([2])));
    }
}
