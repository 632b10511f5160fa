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
                Some(call) => push_frame(&mut buffer, &call),
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
