//! Messages of `application/vnd.amazon.eventstream`, read from bytes as they arrive.
//!
//! Rule: the messages do not depend on where the bytes were split; a message with a wrong checksum or length ends the
//! stream with an error; no message grows past [`MAX_MESSAGE_BYTES`]. Source: "Amazon event stream encoding", Smithy.

/// The most bytes of one message, as the specification has it.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Two lengths and their checksum.
const PRELUDE_BYTES: usize = 12;

/// A checksum ends the prelude and the message.
const CHECKSUM_BYTES: usize = 4;

/// Type number of a header value that is text.
const STRING: u8 = 7;

/// One message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventMessage {
    /// Headers whose value is text, in order. Headers of other types are skipped.
    pub headers: Vec<(String, String)>,
    /// The payload.
    pub payload: Vec<u8>,
}

impl EventMessage {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Why a stream cannot be read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventFrameError {
    /// A message is larger than [`MAX_MESSAGE_BYTES`].
    #[error("a message of the event stream is larger than {MAX_MESSAGE_BYTES} bytes")]
    TooLarge,
    /// The lengths of a message contradict each other.
    #[error("a message of the event stream has impossible lengths")]
    BadLength,
    /// A checksum is wrong.
    #[error("a message of the event stream has a wrong checksum")]
    BadChecksum,
    /// The headers cannot be read.
    #[error("a message of the event stream has headers that cannot be read")]
    BadHeaders,
}

/// The parser of one stream.
#[derive(Debug, Default)]
pub struct Parser {
    pending: Vec<u8>,
}

impl Parser {
    /// Reads the next bytes of the stream and appends the messages they complete to `messages`.
    ///
    /// # Errors
    /// [`EventFrameError`]; the messages before the fault have been appended, and the stream cannot be read further.
    pub fn feed(&mut self, bytes: &[u8], messages: &mut Vec<EventMessage>) -> Result<(), EventFrameError> {
        self.pending.extend_from_slice(bytes);
        let mut begun = 0;
        let read = loop {
            match message(&self.pending[begun..]) {
                Ok(Some((message, length))) => {
                    messages.push(message);
                    begun += length;
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.pending.drain(..begun);
        read
    }
}

/// A message as it is sent. Headers longer than the format allows are left out.
#[must_use]
pub fn write(message: &EventMessage) -> Vec<u8> {
    let mut headers = Vec::new();
    for (name, value) in &message.headers {
        if let (Ok(name_length), Ok(value_length)) = (u8::try_from(name.len()), u16::try_from(value.len())) {
            headers.push(name_length);
            headers.extend_from_slice(name.as_bytes());
            headers.push(STRING);
            headers.extend_from_slice(&value_length.to_be_bytes());
            headers.extend_from_slice(value.as_bytes());
        }
    }
    let total = PRELUDE_BYTES + headers.len() + message.payload.len() + CHECKSUM_BYTES;
    let length = |length: usize| u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    let mut bytes = [length(total), length(headers.len())].concat();
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    bytes.extend(headers);
    bytes.extend_from_slice(&message.payload);
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    bytes
}

/// The message that `bytes` begin with and its length; `None` while it is incomplete.
fn message(bytes: &[u8]) -> Result<Option<(EventMessage, usize)>, EventFrameError> {
    let Some(prelude) = bytes.get(..PRELUDE_BYTES) else { return Ok(None) };
    let (total, headers) = (number(prelude, 0), number(prelude, 4));
    if crc32fast::hash(&prelude[..8]) != number32(prelude, 8) {
        return Err(EventFrameError::BadChecksum);
    }
    if total > MAX_MESSAGE_BYTES {
        return Err(EventFrameError::TooLarge);
    }
    if headers > total || PRELUDE_BYTES + headers + CHECKSUM_BYTES > total {
        return Err(EventFrameError::BadLength);
    }
    let headers_end = PRELUDE_BYTES + headers;
    let Some(whole) = bytes.get(..total) else { return Ok(None) };
    let payload_end = total - CHECKSUM_BYTES;
    if crc32fast::hash(&whole[..payload_end]) != number32(whole, payload_end) {
        return Err(EventFrameError::BadChecksum);
    }
    let headers = read_headers(&whole[PRELUDE_BYTES..headers_end]).ok_or(EventFrameError::BadHeaders)?;
    Ok(Some((EventMessage { headers, payload: whole[headers_end..payload_end].to_vec() }, total)))
}

fn read_headers(mut bytes: &[u8]) -> Option<Vec<(String, String)>> {
    let mut headers = Vec::new();
    while !bytes.is_empty() {
        let name_length = usize::from(take(&mut bytes, 1)?[0]);
        let name = std::str::from_utf8(take(&mut bytes, name_length)?).ok()?;
        let kind = take(&mut bytes, 1)?[0];
        let length = match kind {
            0 | 1 => 0,
            2 => 1,
            3 => 2,
            4 => 4,
            5 | 8 => 8,
            6 | STRING => usize::from(u16::from_be_bytes(take(&mut bytes, 2)?.try_into().ok()?)),
            9 => 16,
            _ => return None,
        };
        let value = take(&mut bytes, length)?;
        if kind == STRING {
            headers.push((name.to_owned(), std::str::from_utf8(value).ok()?.to_owned()));
        }
    }
    Some(headers)
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

fn number32(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).unwrap_or_default();
    u32::from_be_bytes(four)
}

fn number(bytes: &[u8], at: usize) -> usize {
    usize::try_from(number32(bytes, at)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use aws_smithy_eventstream::frame::write_message_to;
    use aws_smithy_types::event_stream::{Header, HeaderValue, Message as AwsMessage};
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = HeaderValue> {
        prop_oneof![
            any::<bool>().prop_map(HeaderValue::Bool),
            any::<i8>().prop_map(HeaderValue::Byte),
            any::<i16>().prop_map(HeaderValue::Int16),
            any::<i32>().prop_map(HeaderValue::Int32),
            any::<i64>().prop_map(HeaderValue::Int64),
            prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| HeaderValue::ByteArray(bytes.into())),
            "\\PC{0,20}".prop_map(|text| HeaderValue::String(text.into())),
            any::<u128>().prop_map(HeaderValue::Uuid),
        ]
    }

    fn theirs() -> impl Strategy<Value = AwsMessage> {
        let header = ("[a-z:-]{1,20}", value()).prop_map(|(name, value)| Header::new(name, value));
        let headers = prop::collection::vec(header, 0..5);
        (headers, prop::collection::vec(any::<u8>(), 0..200)).prop_map(|(headers, payload)| {
            headers.into_iter().fold(AwsMessage::new(payload), AwsMessage::add_header)
        })
    }

    fn ours(message: &AwsMessage) -> EventMessage {
        let text = |header: &Header| match header.value() {
            HeaderValue::String(text) => Some((header.name().as_str().to_owned(), text.as_str().to_owned())),
            _ => None,
        };
        let headers = message.headers().iter().filter_map(text).collect();
        EventMessage { headers, payload: message.payload().to_vec() }
    }

    fn written(messages: &[AwsMessage]) -> Vec<u8> {
        let mut bytes = Vec::new();
        messages.iter().for_each(|message| write_message_to(message, &mut bytes).unwrap());
        bytes
    }

    proptest! {
        /// The AWS crate writes, this parser reads, wherever the bytes are cut.
        #[test]
        fn messages_of_the_aws_crate_are_read(
            messages in prop::collection::vec(theirs(), 0..4),
            piece in 1..64usize,
        ) {
            let (mut parser, mut read) = (Parser::default(), Vec::new());
            for bytes in written(&messages).chunks(piece) {
                parser.feed(bytes, &mut read).unwrap();
            }
            prop_assert_eq!(read, messages.iter().map(ours).collect::<Vec<_>>());
        }

        /// This module writes, the AWS crate reads.
        #[test]
        fn messages_are_written_as_the_aws_crate_reads_them(
            headers in prop::collection::vec(("[a-z:-]{1,20}", "\\PC{0,20}"), 0..5),
            payload in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let message = EventMessage { headers, payload };
            let read = aws_smithy_eventstream::frame::read_message_from(write(&message).as_slice()).unwrap();
            prop_assert_eq!(ours(&read), message);
        }

        #[test]
        fn any_bytes_are_survived_and_any_changed_byte_is_noticed(
            noise in prop::collection::vec(any::<u8>(), 0..100),
            at in any::<prop::sample::Index>(),
            flip in 1..=255u8,
        ) {
            let _ = Parser::default().feed(&noise, &mut Vec::new());
            let message = AwsMessage::new("payload").add_header(Header::new("a", HeaderValue::Bool(true)));
            let mut bytes = written(&[message]);
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            let mut read = Vec::new();
            let fed = Parser::default().feed(&bytes, &mut read);
            prop_assert!(fed.is_err() && read.is_empty(), "{:?} {:?}", fed, read);
        }
    }

    #[test]
    fn lengths_that_cannot_be_are_refused_at_once() {
        let prelude = |total: u32, headers: u32| {
            let mut bytes = [total.to_be_bytes(), headers.to_be_bytes()].concat();
            bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
            Parser::default().feed(&bytes, &mut Vec::new())
        };
        assert_eq!(prelude(u32::MAX, 0), Err(EventFrameError::TooLarge));
        assert_eq!(prelude(15, 0), Err(EventFrameError::BadLength));
        assert_eq!(prelude(16, 1), Err(EventFrameError::BadLength));
        assert_eq!(prelude(100, u32::MAX), Err(EventFrameError::BadLength));
        assert_eq!(prelude(16, 0), Ok(()), "the rest may still come");
    }
}
