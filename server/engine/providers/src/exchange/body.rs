//! The body of a request in pieces.
//!
//! Rule: messages that an earlier request of the turn wrote are sent from where they are. The cost of a body follows its new
//! messages and not its length.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use kode_model::WrittenMessage;
use serde::Serialize;
use serde_json::value::RawValue;

/// Shorter messages are copied: a piece of its own costs as much.
const MIN_SHARED: usize = 2_048;

/// Room for the system prompt and the tools of most requests.
const FIRST_PIECE: usize = 64 << 10;

/// The content of a request, as its wire format writes it.
pub(crate) trait BodyContent: Serialize {
    /// The messages in it that were written before, in the order in which they are written.
    fn written(&self) -> &[WrittenMessage] {
        &[]
    }
}

/// A body of a known length, which is that of the pieces that are left.
#[derive(Debug)]
pub(super) struct RequestBody {
    pieces: VecDeque<Bytes>,
    length: u64,
}

impl RequestBody {
    /// Writes a request as JSON.
    ///
    /// # Errors
    /// When it has no form as JSON.
    pub(super) fn of(content: &impl BodyContent) -> serde_json::Result<Self> {
        let last = Vec::with_capacity(FIRST_PIECE);
        let mut writer = PieceWriter { pieces: VecDeque::new(), last, written: content.written() };
        serde_json::to_writer(&mut writer, content)?;
        writer.end_piece();
        Ok(writer.pieces.into())
    }

    /// All of it in one piece.
    pub(super) fn whole(mut self) -> Bytes {
        if self.pieces.len() < 2 {
            return self.pieces.pop_front().unwrap_or_default();
        }
        Vec::from(self.pieces).concat().into()
    }

    /// The body for the HTTP client. One of a single piece can be sent again where a server asks for it.
    pub(super) fn into_http(self) -> reqwest::Body {
        if self.pieces.len() < 2 { self.whole().into() } else { reqwest::Body::wrap(self) }
    }
}

impl From<VecDeque<Bytes>> for RequestBody {
    fn from(pieces: VecDeque<Bytes>) -> Self {
        let length = pieces.iter().map(|piece| piece.len() as u64).sum();
        Self { pieces, length }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.pop_front();
        self.length -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}

/// Collects the pieces of a body.
struct PieceWriter<'a> {
    pieces: VecDeque<Bytes>,
    /// The piece that grows.
    last: Vec<u8>,
    /// The messages that are still to come, of those that were written before.
    written: &'a [WrittenMessage],
}

impl PieceWriter<'_> {
    fn end_piece(&mut self) {
        if !self.last.is_empty() {
            self.pieces.push_back(std::mem::take(&mut self.last).into());
        }
    }

    /// Recognizes a message that was written before by its address. One that is written in parts is copied.
    fn add(&mut self, bytes: &[u8]) {
        if let [next, rest @ ..] = self.written
            && std::ptr::eq(next.json.get().as_bytes(), bytes)
        {
            self.written = rest;
            if bytes.len() >= MIN_SHARED {
                let shared = Bytes::from_owner(SharedJson(Arc::clone(&next.json)));
                self.end_piece();
                self.pieces.push_back(shared);
                return;
            }
        }
        self.last.extend_from_slice(bytes);
    }
}

impl io::Write for PieceWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.add(bytes);
        Ok(bytes.len())
    }

    /// Most calls are for the text between two escaped characters.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.add(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// JSON as the bytes of a piece.
struct SharedJson(Arc<RawValue>);

impl AsRef<[u8]> for SharedJson {
    fn as_ref(&self) -> &[u8] {
        self.0.get().as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use kode_model::Role;
    use serde_json::json;

    use super::*;

    #[derive(Serialize)]
    struct Content {
        head: &'static str,
        messages: Vec<Arc<RawValue>>,
        #[serde(skip)]
        written: Vec<WrittenMessage>,
    }

    impl BodyContent for Content {
        fn written(&self) -> &[WrittenMessage] {
            &self.written
        }
    }

    fn message(text: &str) -> Arc<RawValue> {
        serde_json::value::to_raw_value(&json!({ "text": text })).unwrap().into()
    }

    /// A request of messages of which the first `kept` were written before.
    fn content(messages: &[Arc<RawValue>], kept: usize) -> Content {
        let written = messages[..kept].iter().enumerate().map(|(at, json)| WrittenMessage {
            end: at + 1,
            role: Role::User,
            note: false,
            json: Arc::clone(json),
        });
        Content { head: "h", messages: messages.to_vec(), written: written.collect() }
    }

    #[test]
    fn messages_that_were_written_before_are_not_copied_and_the_text_is_the_same() {
        let long = "long ".repeat(MIN_SHARED);
        let messages: Vec<_> = ["short", &long, "short", &long, &long].map(message).into();
        for kept in 0..=messages.len() {
            let content = content(&messages, kept);
            let body = RequestBody::of(&content).unwrap();
            let shared = |json: &Arc<RawValue>| {
                body.pieces.iter().any(|piece| std::ptr::eq(&**piece, json.get().as_bytes()))
            };
            for (at, json) in messages.iter().enumerate() {
                let is_long = json.get().len() >= MIN_SHARED;
                assert_eq!(shared(json), at < kept && is_long, "message {at} of {kept} kept");
            }
            let whole = serde_json::to_vec(&content).unwrap();
            assert_eq!(body.size_hint().exact(), Some(whole.len() as u64));
            assert_eq!(body.whole(), whole);
        }
    }

    #[tokio::test]
    async fn the_pieces_are_the_body_and_its_length_is_what_is_left() {
        use http_body_util::BodyExt;

        let long = "long ".repeat(MIN_SHARED);
        let messages: Vec<_> = ["short", &long, &long].map(message).into();
        let content = content(&messages, 3);
        let mut body = RequestBody::of(&content).unwrap();
        let mut sent = Vec::new();
        let whole = serde_json::to_vec(&content).unwrap();
        while let Some(Ok(frame)) = body.frame().await {
            sent.extend(frame.into_data().unwrap());
            assert_eq!(body.size_hint().exact(), Some((whole.len() - sent.len()) as u64));
        }
        assert!(body.is_end_stream());
        assert_eq!(sent, whole);
    }
}
