//! Process groups on Unix.
//!
//! Rule: see the module above. The id of the group is used until the group was killed and not afterwards: it may name another
//! group then.

use std::io;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

/// A running program with the processes that it has started.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    child: Child,
    id: Pid,
    is_killed: bool,
}

impl ProcessTree {
    /// Starts a program as a group of its own.
    ///
    /// # Errors
    /// Why it could not be started.
    pub(crate) fn spawn(mut command: Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        let id = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let id = id.ok_or_else(|| io::Error::other("the process has no id"))?;
        Ok(Self { child, id, is_killed: false })
    }

    /// Waits until the program itself has ended. Safe to drop and to call again.
    ///
    /// # Errors
    /// The error of the system.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Asks all members to end.
    pub(crate) fn ask_to_end(&self) {
        self.signal(Signal::TERM);
    }

    /// Kills all members, once.
    pub(crate) fn kill(&mut self) {
        if !std::mem::replace(&mut self.is_killed, true) {
            self.signal(Signal::KILL);
        }
    }

    fn signal(&self, signal: Signal) {
        // An empty group is as good.
        let _ = kill_process_group(self.id, signal);
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        self.kill();
    }
}
