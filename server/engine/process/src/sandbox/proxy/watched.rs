//! A stream that knows when something last went through it.
//!
//! Rule: only bytes count, in either direction; asking for some and getting none does not.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep_until};

/// A stream with the time of its last byte.
#[derive(Debug)]
pub(super) struct WatchedStream<S> {
    stream: S,
    activity: Activity,
}

/// When something last went through a stream.
#[derive(Clone, Debug)]
pub(super) struct Activity(Arc<Mutex<Instant>>);

impl<S> WatchedStream<S> {
    pub(super) fn new(stream: S) -> (Self, Activity) {
        let activity = Activity(Arc::new(Mutex::new(Instant::now())));
        (Self { stream, activity: activity.clone() }, activity)
    }
}

impl Activity {
    /// Waits until nothing has gone through for so long.
    pub(super) async fn idle_for(&self, limit: Duration) {
        loop {
            let end = self.last() + limit;
            if end <= Instant::now() {
                return;
            }
            sleep_until(end).await;
        }
    }

    fn last(&self) -> Instant {
        *self.0.lock()
    }

    fn note(&self) {
        *self.0.lock() = Instant::now();
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.activity.note();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        if matches!(polled, Poll::Ready(Ok(written)) if written > 0) {
            self.activity.note();
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
