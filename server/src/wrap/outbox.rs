//! The messages that wait to be written to one side of a relay.
//!
//! Rule: bounded by bytes and by messages. A side that reads nothing fills its own queue and no other.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kode_engine::base::task;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::JoinHandle;

use super::body::OutgoingFrame;

/// The most messages that wait for a server: a minute of typing and scrolling while it does not read.
pub(super) const MAX_MESSAGES: usize = 16_384;
/// The bytes from which on a server that does not read counts as hung. One more message of any size fits.
const MAX_BYTES: usize = 256 << 20;
/// Messages are written together up to this size.
const WRITE_SIZE: usize = 64 << 10;

/// The messages for one side.
#[derive(Clone)]
pub(super) struct Outbox {
    queue: mpsc::Sender<OutgoingFrame>,
    waiting: Arc<AtomicUsize>,
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutboxFailure {
    /// The side does not read.
    Full,
    /// The side has gone.
    Closed,
}

impl Outbox {
    /// Writes to a side all that is put in, until all outboxes of it are dropped; then its input ends.
    pub(super) fn start(
        writer: impl AsyncWrite + Send + Unpin + 'static,
        messages: usize,
    ) -> (Self, JoinHandle<io::Result<()>>) {
        let (queue, frames) = mpsc::channel(messages);
        let waiting = Arc::default();
        let writing = task::spawn(write(writer, frames, Arc::clone(&waiting)));
        (Self { queue, waiting }, writing)
    }

    /// Puts in a message without waiting.
    ///
    /// # Errors
    /// [`OutboxFailure`].
    pub(super) fn put(&self, frame: OutgoingFrame) -> Result<(), OutboxFailure> {
        let size = frame.len();
        if self.waiting.load(Ordering::Relaxed) > MAX_BYTES {
            return Err(OutboxFailure::Full);
        }
        self.waiting.fetch_add(size, Ordering::Relaxed);
        self.queue.try_send(frame).map_err(|error| {
            self.waiting.fetch_sub(size, Ordering::Relaxed);
            match error {
                TrySendError::Full(_) => OutboxFailure::Full,
                TrySendError::Closed(_) => OutboxFailure::Closed,
            }
        })
    }

    /// Puts in a message as soon as there is room.
    ///
    /// # Errors
    /// [`OutboxFailure::Closed`].
    pub(super) async fn put_in_turn(&self, frame: OutgoingFrame) -> Result<(), OutboxFailure> {
        self.waiting.fetch_add(frame.len(), Ordering::Relaxed);
        self.queue.send(frame).await.map_err(|_| OutboxFailure::Closed)
    }
}

async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut frames: mpsc::Receiver<OutgoingFrame>,
    waiting: Arc<AtomicUsize>,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    while let Some(frame) = frames.recv().await {
        let mut size = push(&mut buffer, &frame);
        while buffer.len() < WRITE_SIZE
            && let Ok(frame) = frames.try_recv()
        {
            size += push(&mut buffer, &frame);
        }
        writer.write_all(&buffer).await?;
        writer.flush().await?;
        waiting.fetch_sub(size, Ordering::Relaxed);
        buffer.clear();
        buffer.shrink_to(WRITE_SIZE);
    }
    Ok(())
}

/// Appends a frame with its header, and returns the size of its body.
fn push(buffer: &mut Vec<u8>, frame: &OutgoingFrame) -> usize {
    let size = frame.len();
    buffer.extend_from_slice(format!("Content-Length: {size}\r\n\r\n").as_bytes());
    frame.0.iter().for_each(|part| buffer.extend_from_slice(part));
    size
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn a_side_that_does_not_read_is_noticed_and_costs_no_wait() {
        let (writer, mut reader) = tokio::io::duplex(16);
        let (outbox, writing) = Outbox::start(writer, 8);
        let put = || outbox.put(OutgoingFrame::of("{}"));
        while put().is_ok() {
            tokio::task::yield_now().await;
        }
        assert_eq!(put(), Err(OutboxFailure::Full));
        drop(outbox);
        let mut all = String::new();
        reader.read_to_string(&mut all).await.unwrap();
        assert!(all.starts_with("Content-Length: 2\r\n\r\n{}Content-Length: 2"), "{all}");
        writing.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn the_bytes_that_wait_are_bounded() {
        let (writer, _reader) = tokio::io::duplex(16);
        let (outbox, _writing) = Outbox::start(writer, MAX_MESSAGES);
        let large = || OutgoingFrame::of(bytes::Bytes::from(vec![b' '; MAX_BYTES / 2 + 1]));
        assert_eq!(outbox.put(large()), Ok(()));
        assert_eq!(outbox.put(large()), Ok(()));
        assert_eq!(outbox.put(large()), Err(OutboxFailure::Full));
    }
}
