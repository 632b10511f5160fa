//! Programs that end with this process, however it ends.
//!
//! Rule: on Linux. The program is started as this same program in the role of its helper, which asks the kernel for the signal
//! and then becomes the other program. Elsewhere, and without a known helper, the program is started directly.

#![expect(
    clippy::disallowed_methods,
    reason = "it starts programs that were found outside of writable folders"
)]

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::OnceLock;

use tokio::process::Command;

/// The argument of the helper that becomes another program.
#[cfg(target_os = "linux")]
pub(super) const TIED: &str = "--tied";

static HELPER: OnceLock<PathBuf> = OnceLock::new();

/// Names the program that is the helper. Only the first name counts.
pub fn start_by(helper: PathBuf) {
    HELPER.get_or_init(|| helper);
}

/// The command that starts a program; its arguments are added behind.
///
/// The kernel sends the signal at the end of the thread that starts the helper. That is a thread of the runtime, which lives as
/// long as the process; a thread for blocking work would end before.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    #[cfg(target_os = "linux")]
    if let Some(helper) = HELPER.get() {
        let mut command = Command::new(helper);
        command.args([super::ARGUMENT, TIED, &std::process::id().to_string()]).arg(program);
        return command;
    }
    Command::new(program)
}

/// Becomes the program of the arguments behind [`TIED`]; returns only with the reason why not.
#[cfg(target_os = "linux")]
pub(super) fn become_program(arguments: &[std::ffi::OsString]) -> std::io::Error {
    use std::io::Error;
    use std::os::unix::process::CommandExt;

    use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

    let [starter, program, rest @ ..] = arguments else {
        return Error::other("the helper was started without a program");
    };
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return error.into();
    }
    // A starter that ended before sends no signal any more.
    let is_there = getppid().map(Pid::as_raw_pid).is_some_and(|id| *starter == *id.to_string());
    if !is_there {
        return Error::other("the process that started this one is gone");
    }
    std::process::Command::new(program).args(rest).exec()
}
