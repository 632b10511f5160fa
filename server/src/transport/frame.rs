//! The framing of the base protocol: header lines, an empty line, a body.
//!
//! Rule: memory is bounded by named limits whatever a header claims, and nothing in the bytes ends the reading:
//! after a fault everything is skipped up to the next line that ends in a Content-Length header.

use std::{io, mem};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest header line, its line ending included.
pub const MAX_HEADER_LINE: usize = 8 << 10;

/// The largest body: a document of 100 MB fits, however its characters have to be escaped.
pub const MAX_BODY: usize = 192 << 20;

/// How much of the beginning of a larger body is kept, so that a document in it can be named.
const HEAD: usize = 8 << 10;

/// How much is read at once, and the step in which the buffer grows, so that a body takes memory as it arrives
/// and not as its header claims.
const READ_STEP: usize = 64 << 10;

/// An idle buffer larger than this is given back.
const KEPT_CAPACITY: usize = 1 << 20;

const CONTENT_LENGTH: &str = "content-length";

/// An unreadable frame. Each is reported once, however many bytes are skipped because of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Bytes that are no header where one must begin.
    #[error("expected a header line and found something else; skipped to the next Content-Length header")]
    NotAHeader,
    /// A header line over [`MAX_HEADER_LINE`].
    #[error(
        "a header line is longer than {MAX_HEADER_LINE} bytes; skipped to the next Content-Length header"
    )]
    HeaderTooLong,
    /// A header block without a length.
    #[error("a header block has no Content-Length; skipped to the next one")]
    NoLength,
    /// A length that is no number.
    #[error("the Content-Length `{0}` is not a number; skipped to the next Content-Length header")]
    BadLength(String),
    /// A body over [`MAX_BODY`].
    #[error("a message of {bytes} bytes is over the limit of {MAX_BODY} bytes and was skipped")]
    BodyTooLarge {
        /// The length that its header claims.
        bytes: u64,
        /// Its beginning, as far as it came at once.
        head: Bytes,
    },
}

/// Reads frames from bytes.
#[derive(Debug)]
pub struct FrameReader<R> {
    reader: R,
    buffer: BytesMut,
    position: StreamPosition,
}

/// The place of the next byte in the stream.
#[derive(Debug)]
enum StreamPosition {
    /// At the start of a header block.
    Aligned,
    /// Anywhere: all is skipped up to the next Content-Length header.
    Lost,
    /// Behind the line of a Content-Length header with this value.
    InHeaders(u64),
}

/// One header line.
enum FrameHeader {
    End,
    Length(u64),
    Other,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Reads from the start of a stream.
    pub fn new(reader: R) -> Self {
        Self { reader, buffer: BytesMut::new(), position: StreamPosition::Aligned }
    }

    /// The next body, or the error instead of one; `None` at the end of the stream.
    ///
    /// # Errors
    /// The errors of reading the stream itself.
    pub async fn next(&mut self) -> io::Result<Option<Result<Bytes, FrameError>>> {
        let length = match self.header_block().await? {
            Some(Ok(length)) => length,
            Some(Err(error)) => return Ok(Some(Err(error))),
            None => return Ok(None),
        };
        while self.buffer.len() < length {
            if !self.fill().await? {
                return Ok(None);
            }
        }
        let body = self.buffer.split_to(length).freeze();
        if self.buffer.is_empty() && body.len() > KEPT_CAPACITY {
            self.buffer = BytesMut::new();
        }
        Ok(Some(Ok(body)))
    }

    /// Reads header lines up to the empty one and gives the length they announce.
    async fn header_block(&mut self) -> io::Result<Option<Result<usize, FrameError>>> {
        let mut other_headers = false;
        let mut length = match mem::replace(&mut self.position, StreamPosition::Lost) {
            StreamPosition::Aligned => None,
            StreamPosition::InHeaders(length) => Some(length),
            StreamPosition::Lost => match self.skip_to_length().await? {
                Some(length) => Some(length),
                None => return Ok(None),
            },
        };
        // Lost until the block turns out to be whole.
        loop {
            let line = match self.line().await? {
                Some(Ok(line)) => line,
                Some(Err(error)) => return Ok(Some(Err(error))),
                None => return Ok(None),
            };
            match parse_header(&line) {
                Ok(FrameHeader::Length(bytes)) => length = Some(bytes),
                Ok(FrameHeader::Other) => other_headers = true,
                Ok(FrameHeader::End) => match length {
                    Some(bytes) if bytes > MAX_BODY as u64 => {
                        let head = self.head().await?;
                        return Ok(Some(Err(FrameError::BodyTooLarge { bytes, head })));
                    }
                    Some(bytes) => {
                        self.position = StreamPosition::Aligned;
                        return Ok(Some(Ok(usize::try_from(bytes).unwrap_or(MAX_BODY))));
                    }
                    None if other_headers => return Ok(Some(Err(FrameError::NoLength))),
                    // Stray empty lines between messages are harmless.
                    None => {}
                },
                Err(error) => {
                    if let Some(length) = trailing_length(&line) {
                        self.position = StreamPosition::InHeaders(length);
                    }
                    return Ok(Some(Err(error)));
                }
            }
        }
    }

    /// The beginning of a body that is skipped. It stays in the buffer, because a claimed length may be wrong and another
    /// message begin in it.
    async fn head(&mut self) -> io::Result<Bytes> {
        // After a wrong length a short message may be all that comes.
        let is_over = |buffer: &BytesMut| buffer.ends_with(b"}") || buffer.ends_with(b"\n");
        while self.buffer.len() < HEAD && !is_over(&self.buffer) && self.fill().await? {}
        Ok(Bytes::copy_from_slice(&self.buffer[..self.buffer.len().min(HEAD)]))
    }

    /// Skips to the next line that ends in a Content-Length header and gives its value.
    ///
    /// Bodies end without a newline, so after a wrong length the next header follows the rest of a body on
    /// one line: the header is looked for at the end of each line, not only at its start. No JSON text has such a
    /// line inside, since a string holds no raw newline, so bodies that are too large are skipped the same way.
    async fn skip_to_length(&mut self) -> io::Result<Option<u64>> {
        loop {
            match self.line().await? {
                Some(Ok(line)) => {
                    if let Some(length) = trailing_length(&line) {
                        return Ok(Some(length));
                    }
                }
                Some(Err(_)) => {}
                None => return Ok(None),
            }
        }
    }

    /// The next line without its ending. Of a line over [`MAX_HEADER_LINE`] the head is dropped, and the tail is
    /// read as the next line.
    async fn line(&mut self) -> io::Result<Option<Result<BytesMut, FrameError>>> {
        let mut searched = 0;
        loop {
            if let Some(found) = self.buffer[searched..].iter().position(|byte| *byte == b'\n') {
                let end = searched + found;
                if end >= MAX_HEADER_LINE {
                    self.buffer.advance(end + 1 - MAX_HEADER_LINE);
                    return Ok(Some(Err(FrameError::HeaderTooLong)));
                }
                let mut line = self.buffer.split_to(end + 1);
                let ending = if line.ends_with(b"\r\n") { 2 } else { 1 };
                line.truncate(line.len() - ending);
                return Ok(Some(Ok(line)));
            }
            if self.buffer.len() >= 2 * MAX_HEADER_LINE {
                self.buffer.advance(self.buffer.len() - MAX_HEADER_LINE);
                return Ok(Some(Err(FrameError::HeaderTooLong)));
            }
            searched = self.buffer.len();
            if !self.fill().await? {
                return Ok(None);
            }
        }
    }

    async fn fill(&mut self) -> io::Result<bool> {
        self.buffer.reserve(READ_STEP);
        Ok(self.reader.read_buf(&mut self.buffer).await? > 0)
    }
}

fn parse_header(line: &[u8]) -> Result<FrameHeader, FrameError> {
    if line.is_empty() {
        return Ok(FrameHeader::End);
    }
    let line = str::from_utf8(line).map_err(|_| FrameError::NotAHeader)?;
    let (name, value) = line.split_once(':').ok_or(FrameError::NotAHeader)?;
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(FrameError::NotAHeader);
    }
    if !name.eq_ignore_ascii_case(CONTENT_LENGTH) {
        return Ok(FrameHeader::Other);
    }
    parse_length(value).map(FrameHeader::Length).ok_or_else(|| FrameError::BadLength(value.trim().to_owned()))
}

/// The characters of a header name (RFC 9110, `token`).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn trailing_length(line: &[u8]) -> Option<u64> {
    let colon = line.iter().rposition(|byte| *byte == b':')?;
    let name = line[..colon].get(colon.checked_sub(CONTENT_LENGTH.len())?..)?;
    if !name.eq_ignore_ascii_case(CONTENT_LENGTH.as_bytes()) {
        return None;
    }
    parse_length(str::from_utf8(&line[colon + 1..]).ok()?)
}

fn parse_length(value: &str) -> Option<u64> {
    let value = value.trim();
    // `parse` alone would take a sign.
    if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // More digits than fit are a length over every limit, not a fault of their own.
    Some(value.parse().unwrap_or(u64::MAX))
}
