//! The process of the wrapped server, and the messages from it.
//!
//! Rule: it is a process group that is ended on every way out. Its end is reported once, with the reason.

use std::io;

use kode_engine::base::task;
use kode_engine::process::outcome::Exit;
use kode_engine::process::shell::served::{ServedProcess, ServiceEnd};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::body::Body;
use super::outbox::{MAX_MESSAGES, Outbox};
use crate::transport::frame::{FrameError, FrameReader};

/// Messages of one side that wait to be passed on.
const MAX_INCOMING: usize = 64;

/// A server that was started.
pub(super) struct LaunchedChild {
    /// Its standard input.
    pub(super) input: Box<dyn AsyncWrite + Send + Unpin>,
    /// Its standard output.
    pub(super) output: Box<dyn AsyncRead + Send + Unpin>,
    /// Its process; `None` where a test plays the server.
    pub(super) process: Option<ServedProcess>,
}

/// Starts the server.
pub(super) type ChildLauncher = Box<dyn Fn() -> Result<LaunchedChild, ServiceEnd> + Send>;

/// How far a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildPhase {
    /// It has not answered `initialize`.
    Starting,
    /// It serves.
    Serving,
    /// It has closed its output or is being ended.
    Ending,
}

/// The wrapped server.
pub(super) struct Child {
    /// The messages for it.
    pub(super) outbox: Outbox,
    /// The messages from it.
    pub(super) incoming: mpsc::Receiver<IncomingBody>,
    /// How far it is.
    pub(super) phase: ChildPhase,
    /// When the present phase has lasted too long.
    pub(super) deadline: Option<Instant>,
    /// Whether its output has ended.
    pub(super) is_silent: bool,
    /// The reason for which it is ended, where it is not its own.
    pub(super) reason: Option<String>,
    /// The end of its process.
    pub(super) exit: ChildExit,
}

/// The end of a process.
pub(super) struct ChildExit {
    how: Option<String>,
    ended: oneshot::Receiver<String>,
    stop: CancellationToken,
}

/// A message or the end of one side.
#[derive(Debug)]
pub(super) enum IncomingBody {
    /// A message.
    Message(Body),
    /// Bytes that are no message.
    Fault(FrameError),
    /// The end, with its reason.
    End(String),
}

impl Child {
    /// Takes charge of a server that was started. Must be called in a runtime.
    pub(super) fn new(launched: LaunchedChild, deadline: Instant) -> Self {
        let LaunchedChild { input, output, process } = launched;
        // The end of the process is what tells that it cannot be written to.
        let (outbox, _writing) = Outbox::start(input, MAX_MESSAGES);
        let stop = CancellationToken::new();
        let (report, ended) = oneshot::channel();
        let stopped = stop.clone();
        task::spawn(async move {
            let how = match process {
                Some(process) => end_of(process, stopped).await,
                None => {
                    stopped.cancelled().await;
                    "it ended".to_owned()
                }
            };
            // A relay that has gone needs no reason.
            drop(report.send(how));
        });
        let incoming = read_bodies(output);
        Self {
            outbox,
            incoming,
            phase: ChildPhase::Starting,
            deadline: Some(deadline),
            is_silent: false,
            reason: None,
            exit: ChildExit { how: None, ended, stop },
        }
    }
}

impl ChildExit {
    /// How the process ended, once it has.
    pub(super) fn how(&self) -> Option<&str> {
        self.how.as_deref()
    }

    /// Ends the process, if it has not ended by itself.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits until the process has ended. Safe to drop and to call again.
    pub(super) async fn wait(&mut self) {
        if self.how.is_none() {
            let how = (&mut self.ended).await.unwrap_or_else(|_| "it ended".to_owned());
            self.how = Some(how);
        }
    }
}

async fn end_of(mut process: ServedProcess, stop: CancellationToken) -> String {
    let ended = tokio::select! {
        ended = process.ended() => Some(ended),
        () = stop.cancelled() => None,
    };
    match ended {
        Some(ended) => describe(&ended),
        None => describe(&process.end().await),
    }
}

/// The end of a process, in words.
pub(super) fn describe(end: &ServiceEnd) -> String {
    match end {
        ServiceEnd::NotFound(why) | ServiceEnd::NotStarted(why) | ServiceEnd::NoSandbox(why) => {
            format!("it could not be started: {why}")
        }
        ServiceEnd::Ran(Exit::Code(code)) => format!("it ended with exit code {code}"),
        ServiceEnd::Ran(Exit::Signal(signal)) => format!("signal {signal} ended it"),
        ServiceEnd::Ran(Exit::TimedOut | Exit::Cancelled) => "it was ended".to_owned(),
    }
}

/// Reads the messages of one side in a task of its own, until the receiver is dropped.
pub(super) fn read_bodies(reader: impl AsyncRead + Send + Unpin + 'static) -> mpsc::Receiver<IncomingBody> {
    let (sender, incoming) = mpsc::channel(MAX_INCOMING);
    task::spawn(async move {
        let mut frames = FrameReader::new(reader);
        loop {
            let next = match frames.next().await {
                Ok(Some(Ok(bytes))) => IncomingBody::Message(Body::read(bytes)),
                Ok(Some(Err(fault))) => IncomingBody::Fault(fault),
                Ok(None) => IncomingBody::End("the stream ended".to_owned()),
                Err(error) => IncomingBody::End(broken(&error)),
            };
            let is_end = matches!(next, IncomingBody::End(_));
            if sender.send(next).await.is_err() || is_end {
                return;
            }
        }
    });
    incoming
}

fn broken(error: &io::Error) -> String {
    format!("the stream broke: {error}")
}
