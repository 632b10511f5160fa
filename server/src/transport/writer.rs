//! The one task that writes frames.
//!
//! Rule: frames are whole and leave in an order that keeps causes before effects: what a handler sent to the
//! client before it answered is written before its answer. Memory is bounded by the queue and one write.

use std::io;

use futures::{FutureExt, Stream, StreamExt};
use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tower_lsp::jsonrpc::{Request, Response};

/// Frames are gathered up to this size before they are written at once.
const WRITE_SIZE: usize = 64 << 10;

/// Writes answers, and requests and notifications of ours, until the queue of answers is closed and empty.
///
/// # Errors
/// The error of writing: the client is gone.
pub(super) async fn write_frames<W, M>(
    mut writer: W,
    mut answers: mpsc::Receiver<Response>,
    mut calls: M,
) -> io::Result<()>
where
    W: AsyncWrite + Unpin,
    M: Stream<Item = Request> + Unpin,
{
    let mut buffer = Vec::new();
    let mut calls_open = true;
    let mut answers_open = true;
    while answers_open {
        tokio::select! {
            biased;
            call = calls.next(), if calls_open => match call {
                Some(call) => {
                    push_frame(&mut buffer, &call);
                    gather_more(&mut buffer, &mut calls).await;
                }
                None => calls_open = false,
            },
            answer = answers.recv() => match answer {
                Some(answer) => {
                    gather_calls(&mut buffer, &mut calls);
                    push_frame(&mut buffer, &answer);
                }
                None => answers_open = false,
            },
        }
        while buffer.len() < WRITE_SIZE {
            gather_calls(&mut buffer, &mut calls);
            let Ok(answer) = answers.try_recv() else { break };
            gather_calls(&mut buffer, &mut calls);
            push_frame(&mut buffer, &answer);
        }
        writer.write_all(&buffer).await?;
        writer.flush().await?;
        buffer.clear();
        buffer.shrink_to(WRITE_SIZE);
    }
    Ok(())
}

/// Takes calls as long as their senders have more, one write full at most. The queue holds two: the sender of many
/// waits for each, and runs when this task yields.
async fn gather_more(buffer: &mut Vec<u8>, calls: &mut (impl Stream<Item = Request> + Unpin)) {
    let mut before = 0;
    while before < buffer.len() && buffer.len() < WRITE_SIZE {
        before = buffer.len();
        tokio::task::yield_now().await;
        gather_calls(buffer, calls);
    }
}

/// Takes the calls that are ready, one write full at most.
fn gather_calls(buffer: &mut Vec<u8>, calls: &mut (impl Stream<Item = Request> + Unpin)) {
    let limit = buffer.len() + WRITE_SIZE;
    while buffer.len() < limit
        && let Some(Some(call)) = calls.next().now_or_never()
    {
        push_frame(buffer, &call);
    }
}

fn push_frame(buffer: &mut Vec<u8>, message: &impl Serialize) {
    match serde_json::to_vec(message) {
        Ok(body) => {
            buffer.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
            buffer.extend_from_slice(&body);
        }
        Err(error) => tracing::error!(%error, "a message that is not valid JSON was dropped"),
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use futures::SinkExt;

    use super::*;

    /// Counts the writes that it is given.
    #[derive(Default)]
    struct WriteCounter {
        writes: usize,
        bytes: Vec<u8>,
    }

    impl AsyncWrite for &mut WriteCounter {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.writes += 1;
            self.bytes.extend_from_slice(bytes);
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn notifications_of_one_sender_leave_in_order_and_in_one_write() {
        let (mut calls, received) = futures::channel::mpsc::channel(1);
        let (open, answers) = mpsc::channel(1);
        tokio::spawn(async move {
            for number in 0..50 {
                calls.send(Request::build("m").params(number).finish()).await.unwrap();
            }
            drop(open);
        });
        let mut written = WriteCounter::default();
        write_frames(&mut written, answers, received).await.unwrap();
        let text = String::from_utf8(written.bytes).unwrap();
        let places: Vec<_> =
            (0..50).map(|number| text.find(&format!("\"params\":{number}}}")).unwrap()).collect();
        assert!(places.is_sorted());
        assert_eq!(written.writes, 1);
    }
}
