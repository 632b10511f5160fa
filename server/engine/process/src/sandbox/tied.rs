//! Programs that end with this process, however it ends.
//!
//! Rule: on Linux. The program is started as a helper, which asks the kernel for the signal
//! and then becomes the other program, or stays above it and ends all that it has started. Elsewhere, and without a known
//! helper, the program is started directly.

#![expect(
    clippy::disallowed_methods,
    reason = "it starts programs that were found outside of writable folders"
)]

use std::ffi::OsStr;
use std::sync::OnceLock;

use tokio::process::Command;

use super::HelperProgram;

/// The argument of the helper that becomes another program.
#[cfg(target_os = "linux")]
pub(super) const TIED: &str = "--tied";

/// The argument of the helper that stays above another program.
#[cfg(target_os = "linux")]
pub(super) const HELD: &str = "--held";

static HELPER: OnceLock<HelperProgram> = OnceLock::new();

/// Names the program that is the helper. Only the first name counts.
pub fn start_by(helper: HelperProgram) {
    HELPER.get_or_init(|| helper);
}

/// The command that starts a program; its arguments are added behind.
///
/// The kernel sends the signal at the end of the thread that starts the helper. That is a thread of the runtime, which lives as
/// long as the process; a thread for blocking work would end before.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    #[cfg(target_os = "linux")]
    return by_helper(TIED, program);
    #[cfg(not(target_os = "linux"))]
    Command::new(program)
}

/// As [`command`], for a program that leaves nothing behind when it ends: no process in a group of its own either.
pub(crate) fn holding(program: impl AsRef<OsStr>) -> Command {
    #[cfg(target_os = "linux")]
    return by_helper(HELD, program);
    #[cfg(not(target_os = "linux"))]
    Command::new(program)
}

#[cfg(target_os = "linux")]
fn by_helper(role: &str, program: impl AsRef<OsStr>) -> Command {
    let Some(helper) = HELPER.get() else { return Command::new(program) };
    let mut command = Command::new(helper.file());
    command.args(helper.arguments()).args([role, &std::process::id().to_string()]).arg(program);
    command
}

/// Becomes the program of the arguments behind [`TIED`]; returns only with the reason why not.
#[cfg(target_os = "linux")]
pub(super) fn become_program(arguments: &[std::ffi::OsString]) -> std::io::Error {
    use std::os::unix::process::CommandExt;

    match program_of(arguments, rustix::process::Signal::KILL) {
        Ok(mut program) => program.exec(),
        Err(error) => error,
    }
}

/// The program of the arguments behind a role. This process gets a signal at the end of its starter from now on.
///
/// # Errors
/// Why it must not be started.
#[cfg(target_os = "linux")]
pub(super) fn program_of(
    arguments: &[std::ffi::OsString],
    at_the_end: rustix::process::Signal,
) -> std::io::Result<std::process::Command> {
    use std::io::Error;

    use rustix::process::{Pid, getppid, set_parent_process_death_signal};

    let [starter, program, rest @ ..] = arguments else {
        return Err(Error::other("the helper was started without a program"));
    };
    set_parent_process_death_signal(Some(at_the_end))?;
    // A starter that ended before sends no signal any more.
    let is_there = getppid().map(Pid::as_raw_pid).is_some_and(|id| *starter == *id.to_string());
    if !is_there {
        return Err(Error::other("the process that started this one is gone"));
    }
    let mut command = std::process::Command::new(program);
    command.args(rest);
    Ok(command)
}
