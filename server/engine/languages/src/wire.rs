//! Messages of the Language Server Protocol as bytes.
//!
//! Rule: a message and its header are bounded; a peer that exceeds a bound ends its connection and costs no memory beyond it.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// The most bytes of a message: a list of all references or diagnostics of a large workspace fits.
pub(crate) const MAX_MESSAGE: usize = 64 << 20;
/// The most bytes of a line of a header.
const MAX_HEADER_LINE: u64 = 4 << 10;
/// The most lines of a header.
const MAX_HEADER_LINES: usize = 16;

/// Returns the bytes of a message with its header.
pub(crate) fn frame(message: &Value) -> Vec<u8> {
    let body = message.to_string();
    let mut bytes = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body.as_bytes());
    bytes
}

/// Reads the next message; `None` at the end of the stream.
///
/// # Errors
/// The problems of the stream: no header, a message over the bound, or no JSON.
pub(crate) async fn read(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Value>> {
    let Some(length) = read_header(reader).await? else { return Ok(None) };
    if length > MAX_MESSAGE {
        return Err(invalid(format!("a message of {length} bytes exceeds the limit of {MAX_MESSAGE}")));
    }
    // Grows with the bytes that come: an announced length reserves nothing.
    let mut body = Vec::new();
    let wanted = u64::try_from(length).unwrap_or(u64::MAX);
    reader.take(wanted).read_to_end(&mut body).await?;
    if body.len() < length {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the stream ended within a message"));
    }
    serde_json::from_slice(&body)
        .map(Some)
        .map_err(|error| invalid(format!("a message is not JSON: {error}")))
}

/// Reads a header and returns the length of the body.
async fn read_header(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<usize>> {
    let mut length = None;
    for count in 0..MAX_HEADER_LINES {
        let mut line = Vec::new();
        reader.take(MAX_HEADER_LINE).read_until(b'\n', &mut line).await?;
        if line.is_empty() && count == 0 {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&line);
        let Some(text) = text.strip_suffix('\n') else {
            return Err(invalid("a line of a header has no end".to_owned()));
        };
        let text = text.trim();
        if text.is_empty() {
            return length.map(Some).ok_or_else(|| invalid("a header has no `Content-Length`".to_owned()));
        }
        if let Some((name, value)) = text.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            let value = value.trim();
            let parsed = value.parse().map_err(|_| invalid(format!("`{value}` is not a length")))?;
            length = Some(parsed);
        }
    }
    Err(invalid("a header has too many lines".to_owned()))
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use tokio::io::BufReader;

    use super::*;

    async fn all(bytes: &[u8]) -> (Vec<Value>, Option<String>) {
        let mut reader = BufReader::with_capacity(7, bytes);
        let mut messages = Vec::new();
        loop {
            match read(&mut reader).await {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => return (messages, None),
                Err(error) => return (messages, Some(error.to_string())),
            }
        }
    }

    #[tokio::test]
    async fn messages_are_read_one_after_the_other() {
        let mut bytes = frame(&json!({ "a": "ä" }));
        bytes.extend(b"content-length:2\r\nContent-Type: x\r\n\r\n{}");
        assert_eq!(all(&bytes).await, (vec![json!({ "a": "ä" }), json!({})], None));
    }

    #[tokio::test]
    async fn a_stream_that_breaks_the_protocol_ends_with_its_reason() {
        for (bytes, reason) in [
            (b"Content-Length: 99999999999\r\n\r\n".to_vec(), "exceeds the limit"),
            (b"Content-Length: x\r\n\r\n".to_vec(), "not a length"),
            (b"Content-Length: 9\r\n\r\n{}".to_vec(), "ended within a message"),
            (b"Content-Length: 1\r\n\r\n{".to_vec(), "not JSON"),
            (b"\r\n".to_vec(), "no `Content-Length`"),
            (b"warning: npm".to_vec(), "no end"),
            (vec![b'x'; 10_000], "no end"),
            (b"a: b\r\n".repeat(20), "too many lines"),
        ] {
            let (messages, error) = all(&bytes).await;
            let error = error.unwrap_or_default();
            assert!(messages.is_empty() && error.contains(reason), "{reason}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(all(&bytes));
        }
    }
}
