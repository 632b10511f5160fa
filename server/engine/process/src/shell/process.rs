//! One command as a process group: start it, take in its output, and see to it that nothing of it stays behind.
//!
//! Rule: standard output and standard error are one pipe, so the order is the command's own; every wait has a
//! limit, and the group is killed on every way out, also when the future is dropped.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::output::Capture;
use crate::outcome::{CapturedOutput, Exit};
use crate::pipes::{self, Receiver};
use crate::process_group::ProcessTree;

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
    let (receiver, writer) = pipes::from_program()?;
    command.stdin(input).stdout(writer.try_clone()?).stderr(writer);
    // The command holds the pipe's writing end; the output would never end while it lives.
    let mut group = ProcessTree::spawn(command)?;
    let mut output = OutputPipe::new(receiver, capture, watch);
    output.watch.started();

    let exit = match output.take_in_until(ended(&mut group, limit, cancel)).await {
        Ok(status) => {
            let exit = Exit::from(status?);
            let _ = timeout(LINGER, output.take_in_rest()).await;
            group.kill();
            exit
        }
        Err(stopped) => {
            group.ask_to_end();
            let _ = timeout(GRACE, async {
                let _ = output.take_in_until(group.wait()).await;
                output.take_in_rest().await;
            })
            .await;
            group.kill();
            let _ = timeout(DRAIN, group.wait()).await;
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
    pub(super) async fn over(&self) {
        if self.lifted.run_until_cancelled(sleep(self.after)).await.is_none() {
            std::future::pending().await
        }
    }
}

/// Waits until the shell has ended, or until it has to be stopped.
pub(super) async fn ended(
    group: &mut ProcessTree,
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
        status = group.wait() => Ok(status),
        () = cancel.cancelled() => Err(Exit::Cancelled),
        () = over => Err(Exit::TimedOut),
    }
}

/// The reading end of a command's output.
struct OutputPipe<'a, W> {
    pipe: Receiver,
    open: bool,
    buffer: Vec<u8>,
    capture: Capture,
    watch: &'a mut W,
}

impl<'a, W: RunObserver> OutputPipe<'a, W> {
    fn new(pipe: Receiver, capture: Capture, watch: &'a mut W) -> Self {
        Self { pipe, open: true, buffer: vec![0; READ_SIZE], capture, watch }
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
