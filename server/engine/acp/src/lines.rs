//! The byte layer: one message a line, both ways.
//!
//! Rule: a message has at most [`MAX_MESSAGE`] bytes. A longer line is skipped without being kept, and the caller reports
//! it; the lines after it are read.

use std::io;

use kode_base::task;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The longest message, in bytes, without its line end.
pub const MAX_MESSAGE: usize = 64 << 20;

/// Messages that may wait to be written; a sender waits while there are more.
pub const OUTBOX: usize = 256;

/// One line of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum MessageLine {
    /// A line with something on it.
    Message(Vec<u8>),
    /// A line of more than [`MAX_MESSAGE`] bytes; it was skipped.
    TooLong,
}

/// Reads messages line by line.
pub struct MessageReader<R> {
    input: BufReader<R>,
    limit: usize,
}

impl<R: AsyncRead + Unpin> MessageReader<R> {
    /// Reads from this input.
    pub fn new(input: R) -> Self {
        Self { input: BufReader::with_capacity(64 << 10, input), limit: MAX_MESSAGE }
    }

    /// The next line that is not blank; `None` at the end of the input.
    ///
    /// # Errors
    /// The error of the system.
    pub async fn next(&mut self) -> io::Result<Option<MessageLine>> {
        loop {
            let mut line = Vec::new();
            let Some(is_whole) = read_line(&mut self.input, &mut line, self.limit).await? else {
                return Ok(None);
            };
            if !is_whole {
                return Ok(Some(MessageLine::TooLong));
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some(MessageLine::Message(line)));
            }
        }
    }
}

/// Reads up to the next line end. Returns whether the line was within the limit; `None` at the end of the input.
async fn read_line(
    input: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
    limit: usize,
) -> io::Result<Option<bool>> {
    let (mut is_whole, mut has_read) = (true, false);
    loop {
        let available = input.fill_buf().await?;
        if available.is_empty() {
            return Ok(has_read.then_some(is_whole));
        }
        has_read = true;
        let end = available.iter().position(|byte| *byte == b'\n');
        let part = end.map_or(available, |end| &available[..end]);
        is_whole = is_whole && line.len() + part.len() <= limit;
        if is_whole {
            line.extend_from_slice(part);
        } else {
            *line = Vec::new();
        }
        let used = end.map_or(available.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(Some(is_whole));
        }
    }
}

/// Reads lines in a task of its own, until the input ends or breaks, or nothing takes them any more. At most `waiting` lines wait
/// to be taken. A read that is dropped half-way would lose what it has read, so others wait for the queue instead.
pub fn read_lines<R>(input: R, waiting: usize) -> (mpsc::Receiver<MessageLine>, JoinHandle<()>)
where
    R: AsyncRead + Unpin + Send + 'static,
{
    let (lines, queue) = mpsc::channel(waiting);
    let reading = task::spawn(async move {
        let mut reader = MessageReader::new(input);
        loop {
            match reader.next().await {
                Ok(Some(line)) => {
                    if lines.send(line).await.is_err() {
                        break;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::debug!(%error, "an input broke");
                    break;
                }
            }
        }
    });
    (queue, reading)
}

/// Writes the queued messages until the queue is closed. Messages that wait together are flushed together.
///
/// # Errors
/// The error of the system: the client reads no more.
pub async fn write_lines(
    mut output: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<Vec<u8>>,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    while let Some(message) = queue.recv().await {
        buffer.clear();
        buffer.extend_from_slice(&message);
        buffer.push(b'\n');
        while buffer.len() < 64 << 10 {
            let Ok(message) = queue.try_recv() else { break };
            buffer.extend_from_slice(&message);
            buffer.push(b'\n');
        }
        output.write_all(&buffer).await?;
        output.flush().await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(input: &[u8], limit: usize) -> Vec<MessageLine> {
        let mut reader = MessageReader { input: BufReader::with_capacity(4, input), limit };
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await.unwrap() {
            lines.push(line);
        }
        lines
    }

    fn message(text: &str) -> MessageLine {
        MessageLine::Message(text.into())
    }

    #[tokio::test]
    async fn blank_lines_are_skipped_and_the_last_line_needs_no_end() {
        let lines = read(b"{\"a\":1}\r\n\n  \n{}\nlast", 100).await;
        assert_eq!(lines, [message("{\"a\":1}\r"), message("{}"), message("last")]);
    }

    #[tokio::test]
    async fn a_line_beyond_the_limit_is_reported_once_and_the_next_is_read() {
        let lines = read(b"12345678\n123456789\n1234567890123456789\nok\n", 8).await;
        assert_eq!(lines, [message("12345678"), MessageLine::TooLong, MessageLine::TooLong, message("ok")]);
    }

    #[tokio::test]
    async fn messages_are_written_in_their_order_one_a_line() {
        let (sender, queue) = mpsc::channel(4);
        for text in ["one", "two", "three"] {
            sender.send(text.as_bytes().to_vec()).await.unwrap();
        }
        drop(sender);
        let mut output = Vec::new();
        write_lines(&mut output, queue).await.unwrap();
        assert_eq!(output, b"one\ntwo\nthree\n");
    }
}
