//! Job objects on Windows.
//!
//! Rule: see the module above. The program is suspended until it belongs to its job, so that nothing it starts is missed; the
//! system ends the job with its last handle, also when this process is killed. It opens no console window.

use std::io;
use std::process::ExitStatus;

use process_wrap::tokio::{ChildWrapper, CommandWrap, CreationFlags, JobObject, KillOnDrop};
use tokio::process::Command;
use windows::Win32::System::Threading::CREATE_NO_WINDOW;

/// A running program with the processes that it has started.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    job: Box<dyn ChildWrapper>,
}

impl ProcessTree {
    /// Starts a program as a job of its own.
    ///
    /// # Errors
    /// Why it could not be started.
    pub(crate) fn spawn(command: Command) -> io::Result<Self> {
        let mut command = CommandWrap::from(command);
        let job = command.wrap(CreationFlags(CREATE_NO_WINDOW)).wrap(KillOnDrop).wrap(JobObject).spawn()?;
        Ok(Self { job })
    }

    /// Waits until the program itself has ended. Safe to drop and to call again.
    ///
    /// # Errors
    /// The error of the system.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        // The job itself would wait for all members.
        self.job.inner_mut().wait().await
    }

    /// Does nothing: a program without a console cannot be asked there. Its members are killed after the time that a program
    /// has to end.
    #[expect(clippy::unused_self, reason = "the same call has an effect on other systems")]
    pub(crate) fn ask_to_end(&self) {}

    /// Kills all members.
    pub(crate) fn kill(&mut self) {
        if let Err(error) = self.job.start_kill() {
            tracing::warn!(%error, "a job could not be ended");
        }
    }
}
