//! The helper above a program that leaves nothing behind.
//!
//! Rule: whatever the program has started falls to this process, in whichever group or session it is, and is killed when the
//! program ends, when it is too slow to obey, or when the process that started the helper ends.

use std::ffi::OsString;
use std::future::pending;
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, set_child_subreaper};

use super::processes::{WaitEnd, collect_all, kill_all_below, supervise};
use super::{EXIT_NOT_STARTED, code_of, not_become};
use crate::sandbox::tied::program_of;

/// How long the program may take to end by itself once it was asked to: less than its starter waits.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// Runs the program of the arguments.
pub(super) fn main(arguments: &[OsString]) -> ExitCode {
    let mut program = match program_of(arguments, Signal::HUP) {
        Ok(program) => program,
        Err(error) => return not_become(&error),
    };
    if let Err(error) = set_child_subreaper(Some(getpid())) {
        return not_become(&error.into());
    }
    // Its group is the one of this process, so that it gets the signals for the group itself. At the end of the starter its
    // input ends, which asks as well.
    let start = || Ok(Pid::from_child(&program.spawn()?));
    let over = supervise(start, |_, _| {}, collect_all, PATIENCE, pending());
    kill_all_below(&[]);
    match over {
        Ok(WaitEnd::Ended(ended)) => match (ended.exit_status(), ended.terminating_signal()) {
            (Some(code), _) => ExitCode::from(u8::try_from(code & 0xff).unwrap_or(u8::MAX)),
            (None, signal) => ExitCode::from(signal.map_or(EXIT_NOT_STARTED, code_of)),
        },
        Ok(WaitEnd::Stopped) => ExitCode::from(code_of(Signal::KILL.as_raw())),
        Err(error) => not_become(&error),
    }
}
