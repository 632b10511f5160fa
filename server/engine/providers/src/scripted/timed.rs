//! When requests arrive and answers leave, measured where the bytes pass.
//!
//! Rule: an answer's time is that of its last write to the socket, which no buffer comes after.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A clock that begins with the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerClock(Instant);

impl ServerClock {
    /// Starts a clock.
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// Nanoseconds since the start.
    pub(super) fn nanoseconds(self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Nanoseconds since the server's start at which a request had arrived as a whole, and at which the last byte of its
/// answer was written; 0 before that.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// The request's last byte.
    pub(super) received: u64,
    /// The answer's last byte so far.
    pub(super) sent: AtomicU64,
}

/// The session of the answer a connection writes.
pub(super) type CurrentTimes = Arc<Mutex<Option<Arc<Times>>>>;

/// Counts bytes on a connection for an answer from now on.
pub(super) fn write_for(current: &CurrentTimes, times: &Arc<Times>) {
    *current.lock() = Some(Arc::clone(times));
}

/// A stream that notes when it was written to.
pub(super) struct TimedStream<S> {
    stream: S,
    clock: ServerClock,
    current: CurrentTimes,
}

impl<S> TimedStream<S> {
    /// Notes the writes to `stream` at the current answer then.
    pub(super) fn new(stream: S, clock: ServerClock, current: CurrentTimes) -> Self {
        Self { stream, clock, current }
    }

    fn note(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(written, Poll::Ready(Ok(1..)))
            && let Some(times) = &*self.current.lock()
        {
            times.sent.store(self.clock.nanoseconds(), Ordering::Relaxed);
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
