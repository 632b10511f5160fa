//! The front process: outside the sandbox, it starts the programs that set the sandbox up, waits, looks after guarded files, and reports.
//!
//! Rule: it outlives the command, and ends all of it that the system lets it find. Differences between systems are in
//! [`FrontSystem`]; guarded files and the report are treated alike everywhere.

#![expect(
    clippy::disallowed_methods,
    reason = "it writes files of its own, and it reads variables of the process for its callers"
)]

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod remote;
#[cfg(any(target_os = "macos", all(test, target_os = "linux")))]
pub(super) mod seatbelt;

use std::ffi::{OsStr, OsString};
use std::future::pending;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;
use std::{fs, io};

use tokio::io::{AsyncReadExt, Interest};
use tokio::net::unix::pipe;

use super::places::PolicyPaths;
use super::{EXIT_NOT_FOUND, EXIT_NOT_RUN, EXIT_NOT_STARTED, REPORT, code_of, read_json};
use crate::sandbox::guard::{GuardManifest, GuardSnapshot, GuardSurvey, Quarantine, settle_alone};
use crate::sandbox::policy::HelperRequest;
use crate::sandbox::{Enforcement, HelperReport, InputMode, SandboxPolicy, StartFailure, keeps};
use kode_base::paths::real_path;

#[cfg(target_os = "linux")]
use linux::LinuxSystem as OwnSystem;
#[cfg(target_os = "macos")]
use seatbelt::SeatbeltSystem as OwnSystem;

/// How long a command has that was asked to end. The engine waits a little longer before it kills this process.
const PATIENCE: Duration = Duration::from_millis(1500);
/// The variable for the folder of temporary files.
const TMPDIR: &str = "TMPDIR";
/// Where this process's standard error can be opened.
#[cfg(target_os = "linux")]
const STDERR: &str = "/proc/self/fd/2";
#[cfg(not(target_os = "linux"))]
const STDERR: &str = "/dev/fd/2";

/// The program that the front process belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrontHost {
    /// The helper, started for one command, with the environment of the command.
    Helper,
    /// Another program, with an environment of its own and perhaps threads.
    Program,
}

/// Runs a command under a policy, and gives what became of it.
pub(super) fn run(
    request: &HelperRequest,
    command: &[OsString],
    host: FrontHost,
) -> (HelperReport, ExitCode) {
    let run = || {
        let front = HelperFront::new(request)?;
        if let Some(launcher) = &request.launcher {
            #[cfg(target_os = "linux")]
            {
                let system = remote::RemoteSystem::new(&front, request, launcher)?;
                return Ok(front.run(&system, command));
            }
            #[cfg(not(target_os = "linux"))]
            return Err(io::Error::other(format!("commands do not run {launcher} on this system")));
        }
        let system = OwnSystem::new(&front, request, host)?;
        Ok(front.run(&system, command))
    };
    let report = run().unwrap_or_else(|error: io::Error| failed(error.to_string()));
    let code = code(&report.0, report.1);
    let report = report.0;
    let written = serde_json::to_vec(&report)
        .map_err(io::Error::from)
        .and_then(|json| fs::write(request.control.as_path().join(REPORT), json));
    match written {
        Ok(()) => (report, code),
        Err(error) => (failed(format!("no report could be left: {error}")).0, ExitCode::from(EXIT_NOT_RUN)),
    }
}

fn failed(reason: String) -> (HelperReport, Option<i32>) {
    (HelperReport { failure: Some(StartFailure::Sandbox(reason)), ..HelperReport::default() }, None)
}

fn code(report: &HelperReport, code: Option<i32>) -> ExitCode {
    ExitCode::from(match (&report.failure, report.signal, code) {
        (Some(StartFailure::Sandbox(_)), ..) | (None, None, None) => EXIT_NOT_RUN,
        (Some(StartFailure::NotFound(_)), ..) => EXIT_NOT_FOUND,
        (Some(StartFailure::NotStarted(_)), ..) => EXIT_NOT_STARTED,
        (None, Some(signal), _) => code_of(signal),
        (None, None, Some(code)) => u8::try_from(code & 0xff).unwrap_or(u8::MAX),
    })
}

/// How a system sets up the sandbox of one command.
trait FrontSystem {
    /// The files that are restored afterwards.
    fn kept(&self) -> Option<&GuardSnapshot>;

    /// Runs the command, and ends all that it has started.
    ///
    /// # Errors
    /// When it was not run.
    fn run(&self, front: &HelperFront<'_>, command: &[OsString]) -> io::Result<CommandEnd>;
}

/// The end of a command.
#[derive(Debug, Default)]
struct CommandEnd {
    /// The sandbox that held it; nothing when it was not run.
    enforced: Option<Enforcement>,
    failure: Option<StartFailure>,
    code: Option<i32>,
    signal: Option<i32>,
    /// Whether the process that started this one was gone before it ended.
    is_orphan: bool,
}

/// The state before the command starts.
struct HelperFront<'a> {
    policy: &'a SandboxPolicy,
    handed: GuardManifest,
    /// Whether the process that started this handles new files.
    is_watched: bool,
}

impl<'a> HelperFront<'a> {
    fn new(request: &'a HelperRequest) -> io::Result<Self> {
        let policy = &request.policy;
        let control = real_path(request.control.as_path())?;
        let handed = match &request.guard {
            Some(file) => read_json::<GuardManifest>(file.as_path())?,
            None => {
                let places = PolicyPaths::of(policy)?;
                let survey = GuardSurvey::of(&places.ground())?;
                GuardManifest { places, survey, store: Quarantine::of(&control) }
            }
        };
        if handed.places.is_writable(&control) {
            return Err(io::Error::other("the folder of the helper is one the command may write in"));
        }
        let is_watched = request.guard.is_some();
        Ok(Self { policy, handed, is_watched })
    }

    /// Runs the command; its exit code, if it has one, is beside the report.
    fn run(self, system: &impl FrontSystem, command: &[OsString]) -> (HelperReport, Option<i32>) {
        let over = system.run(&self, command);
        let is_alone = !self.is_watched || over.as_ref().is_ok_and(|end| end.is_orphan);
        let kept = system.kept();
        // The process that watches may be setting new files aside.
        let lock = (kept.is_some() || is_alone).then(|| self.handed.store.lock());
        let mut guarded = kept.map(|kept| kept.restore(&self.handed.store)).unwrap_or_default();
        if is_alone && !self.policy.lasting {
            match settle_alone(&self.handed.places.ground(), &self.handed) {
                Ok(left) => guarded = guarded.and(left),
                Err(error) => {
                    let roots =
                        self.handed.places.writable.iter().map(|root| (root.clone(), error.to_string()));
                    guarded.changed.extend(roots);
                }
            }
        }
        drop(lock);
        match over {
            Ok(CommandEnd { enforced, failure, code, signal, is_orphan: _ }) => {
                (HelperReport { enforced, failure, signal, guarded }, code)
            }
            Err(error) => failed(error.to_string()),
        }
    }
}

/// The environment of the command.
fn environment() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| OsStr::to_str(name).is_some_and(keeps))
}

/// Waits until the process that started this is gone. They hold the other end of standard input while they live; where that
/// is the command's, the other end of standard error.
async fn starter_is_gone(policy: &SandboxPolicy) {
    if policy.lasting {
        return nobody_reads_errors().await;
    }
    let stdin = match policy.input {
        InputMode::None => io::stdin().as_fd().try_clone_to_owned(),
        InputMode::Rest => return pending().await,
    };
    let Ok(mut stdin) = stdin.and_then(pipe::Receiver::from_owned_fd) else { return pending().await };
    let mut byte = [0];
    while stdin.read(&mut byte).await.is_ok_and(|length| length > 0) {}
}

/// Waits until the other end of standard error is gone, if that is a pipe. It is opened again, so that the command's does not
/// become one that never waits.
async fn nobody_reads_errors() {
    let Ok(errors) = pipe::OpenOptions::new().open_sender(STDERR) else { return pending().await };
    while let Ok(ready) = errors.ready(Interest::ERROR).await {
        if ready.is_error() || ready.is_write_closed() {
            return;
        }
    }
    pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_report_a_command_that_ended_from_one_that_was_not_run() {
        let with = |failure, signal, exit| {
            format!("{:?}", code(&HelperReport { failure, signal, ..HelperReport::default() }, exit))
        };
        let is = |code: u8| format!("{:?}", ExitCode::from(code));
        assert_eq!(with(None, None, Some(3)), is(3));
        assert_eq!(with(None, Some(15), None), is(143));
        assert_eq!(with(None, None, None), is(EXIT_NOT_RUN));
        assert_eq!(with(Some(StartFailure::Sandbox(String::new())), None, Some(0)), is(EXIT_NOT_RUN));
        assert_eq!(with(Some(StartFailure::NotFound(String::new())), None, None), is(127));
    }
}
