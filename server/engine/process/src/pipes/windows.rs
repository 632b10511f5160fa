//! Pipes on Windows.
//!
//! Rule: see the module above. Anonymous pipes have no asynchronous reads there, so these are named ones: the name is random,
//! exists once, refuses other machines, and has its one client before it is given away.

use std::fs::{File, OpenOptions};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::FutureExt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::windows::named_pipe::{NamedPipeServer, ServerOptions};
use uuid::Uuid;

/// The end that a program reads from.
pub type ProgramReader = File;
/// The end that a program writes to.
pub type ProgramWriter = File;

/// The end that the server reads from.
#[derive(Debug)]
pub struct Receiver(NamedPipeServer);

/// The end that the server writes to.
#[derive(Debug)]
pub struct Sender(NamedPipeServer);

pub(super) fn from_program() -> io::Result<(Receiver, ProgramWriter)> {
    let (server, client) = pair(true)?;
    Ok((Receiver(server), client))
}

pub(super) fn to_program() -> io::Result<(ProgramReader, Sender)> {
    let (server, client) = pair(false)?;
    Ok((client, Sender(server)))
}

/// A pipe and its client. `is_inbound` says that the client writes.
fn pair(is_inbound: bool) -> io::Result<(NamedPipeServer, File)> {
    let name = format!(r"\\.\pipe\kode-ls-{}", Uuid::new_v4().simple());
    let mut options = ServerOptions::new();
    options.access_inbound(is_inbound).access_outbound(!is_inbound);
    let server =
        options.first_pipe_instance(true).max_instances(1).reject_remote_clients(true).create(&name)?;
    let client = OpenOptions::new().read(!is_inbound).write(is_inbound).open(&name)?;
    // A pipe that has no client yet refuses the first read, and no later one begins by itself: this begins it. The client is
    // there, so that there is nothing to wait for.
    let connected = server.connect().now_or_never();
    connected.unwrap_or_else(|| Err(io::ErrorKind::NotConnected.into()))?;
    Ok((server, client))
}

impl AsyncRead for Receiver {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.0).poll_read(context, buffer) {
            // The last writer is gone: the end.
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => Poll::Ready(Ok(())),
            read => read,
        }
    }
}

impl AsyncWrite for Sender {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
