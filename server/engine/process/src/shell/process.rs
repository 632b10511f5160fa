//! One command as a process group: start it, take in its output, and see to it that nothing of it stays behind.
//!
//! Rule: standard output and standard error are one pipe, so the order is the command's own; every wait has a
//! limit, and the group is killed on every way out, also when the future is dropped.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::output::Capture;
use crate::outcome::{CapturedOutput, Exit};

/// How long a command that was asked to end may take before it is killed.
const GRACE: Duration = Duration::from_secs(2);
/// How long what a shell started without waiting for it may still write once the shell has ended. Process
/// substitutions (`> >(tee log)`) need this moment; background jobs do not get more.
const LINGER: Duration = Duration::from_millis(100);
/// How long the end of the output is waited for once everything has been killed. Only a process that left the
/// group can still hold the pipe then.
const DRAIN: Duration = Duration::from_millis(500);
/// How much is read at once.
const READ_SIZE: usize = 64 * 1024;

/// An observer while a command runs.
pub(super) trait RunObserver: Send {
    /// The command was started.
    fn started(&mut self);
    /// It wrote something.
    fn output(&mut self, text: &str);
}

/// Runs a prepared command to its end, without `limit` for as long as it likes, handing on its output as text while it
/// comes; the kept part goes through `capture`.
pub(super) async fn run(
    mut command: Command,
    input: Stdio,
    limit: Option<&TimeLimit>,
    capture: Capture,
    watch: &mut impl RunObserver,
    cancel: &CancellationToken,
) -> io::Result<(Exit, CapturedOutput)> {
    let (reader, writer) = io::pipe()?;
    command.stdin(input).stdout(writer.try_clone()?).stderr(writer).process_group(0);
    let mut child = command.spawn()?;
    let mut group = KillGroup::of(&child)?;
    // The command holds the pipe's writing end; the output would never end while it lives.
    drop(command);
    let mut output = OutputPipe::new(reader.into(), capture, watch)?;
    output.watch.started();

    let exit = match output.take_in_until(ended(&mut child, limit, cancel)).await {
        Ok(status) => {
            let exit = Exit::from(status?);
            let _ = timeout(LINGER, output.take_in_rest()).await;
            group.kill();
            exit
        }
        Err(stopped) => {
            group.signal(Signal::TERM);
            let _ = timeout(GRACE, async {
                let _ = output.take_in_until(child.wait()).await;
                output.take_in_rest().await;
            })
            .await;
            group.kill();
            let _ = timeout(DRAIN, child.wait()).await;
            stopped
        }
    };
    let _ = timeout(DRAIN, output.take_in_rest()).await;
    Ok((exit, output.finish()))
}

/// How long a command may take.
#[derive(Clone, Debug)]
pub(super) struct TimeLimit {
    pub(super) after: Duration,
    /// Once it is cancelled, the command may take as long as it likes.
    pub(super) lifted: CancellationToken,
}

impl TimeLimit {
    /// One that stays.
    pub(super) fn fixed(after: Duration) -> Self {
        Self { after, lifted: CancellationToken::new() }
    }

    /// Waits until the time is over; for ever where the limit is lifted before.
    async fn over(&self) {
        if self.lifted.run_until_cancelled(sleep(self.after)).await.is_none() {
            std::future::pending().await
        }
    }
}

/// Waits until the shell has ended, or until it has to be stopped.
pub(super) async fn ended(
    child: &mut Child,
    limit: Option<&TimeLimit>,
    cancel: &CancellationToken,
) -> Result<io::Result<ExitStatus>, Exit> {
    let over = async {
        match limit {
            Some(limit) => limit.over().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        status = child.wait() => Ok(status),
        () = cancel.cancelled() => Err(Exit::Cancelled),
        () = over => Err(Exit::TimedOut),
    }
}

/// A process group that is killed when this is dropped.
pub(super) struct KillGroup {
    id: Pid,
    killed: bool,
}

impl KillGroup {
    pub(super) fn of(child: &Child) -> io::Result<Self> {
        let id = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let id = id.ok_or_else(|| io::Error::other("the process has no id"))?;
        Ok(Self { id, killed: false })
    }

    /// Sends a signal to all members. An empty group is as good.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.id, signal);
    }

    /// Kills all members, once: later the number may name another group.
    pub(super) fn kill(&mut self) {
        if !std::mem::replace(&mut self.killed, true) {
            self.signal(Signal::KILL);
        }
    }
}

impl Drop for KillGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The reading end of a command's output.
struct OutputPipe<'a, W> {
    pipe: pipe::Receiver,
    open: bool,
    buffer: Vec<u8>,
    capture: Capture,
    watch: &'a mut W,
}

impl<'a, W: RunObserver> OutputPipe<'a, W> {
    fn new(reader: OwnedFd, capture: Capture, watch: &'a mut W) -> io::Result<Self> {
        Ok(Self {
            pipe: pipe::Receiver::from_owned_fd(reader)?,
            open: true,
            buffer: vec![0; READ_SIZE],
            capture,
            watch,
        })
    }

    /// Takes in output while `event` is awaited.
    async fn take_in_until<T>(&mut self, event: impl Future<Output = T>) -> T {
        let mut event = pin!(event);
        loop {
            tokio::select! {
                biased;
                happened = &mut event => return happened,
                () = self.take_in(), if self.open => {}
            }
        }
    }

    /// Takes in output until its end.
    async fn take_in_rest(&mut self) {
        while self.open {
            self.take_in().await;
        }
    }

    /// Takes in what comes next. Safe to drop: nothing is lost between two awaits.
    async fn take_in(&mut self) {
        match self.pipe.read(&mut self.buffer).await {
            Ok(0) | Err(_) => self.open = false,
            Ok(length) => {
                let text = self.capture.push(&self.buffer[..length]);
                if !text.is_empty() {
                    self.watch.output(&text);
                }
            }
        }
    }

    fn finish(self) -> CapturedOutput {
        let watch = self.watch;
        self.capture.finish(|rest| watch.output(rest))
    }
}
