//! The helper that runs a command in the sandbox, as processes of its own: the front one outside, the inner one
//! inside, the command below that. They are started from the program that [`HelperProgram`](super::HelperProgram) names.
//!
//! Rule: it fails closed. Whatever cannot be set up as the policy says ends in a report that says why, exit code
//! [`EXIT_NOT_RUN`], and no command. Each process has one thread, and nothing of theirs is inherited.
//!
//! ```text
//! engine ─ front (outside: guards, forwards signals, reports) ─ [bwrap ─ init] ─ inner (limits, filters) ─ command
//! proxy of the engine ······················ socket ······················· bridge ┘  (where hosts are listed)
//! ```

#[cfg(target_os = "linux")]
mod bridge;
#[cfg(target_os = "linux")]
mod bubblewrap;
mod front;
#[cfg(target_os = "linux")]
mod held;
#[cfg(target_os = "linux")]
mod inner;
#[cfg(target_os = "linux")]
pub(crate) mod landlock;
mod limits;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod mounts;
pub(crate) mod places;
mod processes;
#[cfg(target_os = "linux")]
pub(crate) mod seccomp;

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
#[cfg(target_os = "linux")]
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::{fs, io};

use serde::Deserialize;
#[cfg(target_os = "linux")]
use serde::Serialize;

use self::front::FrontHost;
use super::policy::{HelperReport, HelperRequest};
use super::program::{BUILD, BUILD_PREFIX};
use super::{ARGUMENT, REPORT};
#[cfg(target_os = "linux")]
use super::{
    policy::{Enforcement, SandboxPolicy, StartFailure},
    tied::{HELD, TIED, become_program},
};

#[cfg(target_os = "linux")]
pub(crate) use bubblewrap::namespaces;
#[cfg(target_os = "macos")]
pub(super) use front::seatbelt::{NOTHING, SANDBOX_EXEC};

/// The argument of the inner process.
#[cfg(target_os = "linux")]
const INNER: &str = "--inner";
/// The argument of the bridge to the proxy.
#[cfg(target_os = "linux")]
const BRIDGE: &str = "--bridge";
/// The refusal of arguments that no program gives.
const NOT_FOR_PEOPLE: &str = "this is no command for people; use `kode-ls sandbox`";
/// The exit code when the command was not run; the report says why.
pub const EXIT_NOT_RUN: u8 = 125;
/// The exit codes of shells for a program that cannot be started, and for one that is not there.
const EXIT_NOT_STARTED: u8 = 126;
const EXIT_NOT_FOUND: u8 = 127;
/// The offset that is added to the number of a signal that ended a command.
const EXIT_SIGNAL: i32 = 128;
/// The files in the control folder.
#[cfg(target_os = "linux")]
const PLAN: &str = "plan.json";
#[cfg(target_os = "linux")]
const STATUS: &str = "status.json";
/// The placeholders for hidden files and folders, in the control folder: empty ones, and those that cannot be opened.
#[cfg(target_os = "linux")]
const EMPTY: &str = "empty";
#[cfg(target_os = "linux")]
const VOID: &str = "void";
#[cfg(target_os = "linux")]
const SHUT: &str = "shut";
#[cfg(target_os = "linux")]
const LOCKED: &str = "locked";

/// The input of the process inside.
#[cfg(target_os = "linux")]
#[derive(Debug, Serialize, Deserialize)]
struct HelperPlan {
    policy: SandboxPolicy,
    /// The folders that may be written, resolved, with the one for temporary files.
    writable: Vec<PathBuf>,
    /// The hidden paths, resolved; without covered ones.
    hidden: Vec<PathBuf>,
    /// The paths in it that stay visible.
    shown: Vec<PathBuf>,
    /// The process outside, where both can see each other.
    front: Option<i32>,
    /// The mounts inside.
    mounts: mounts::Mounts,
    /// Whether there is a proxy for the network, on a socket inside.
    has_proxy: bool,
    weaker: Vec<String>,
}

/// The answer of the inner process.
#[cfg(target_os = "linux")]
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct HelperStatus {
    enforced: Option<Enforcement>,
    failure: Option<StartFailure>,
    /// Whether the system refuses all mounts inside.
    cannot_mount: bool,
    code: Option<i32>,
    signal: Option<i32>,
}

/// Runs the helper on the arguments that follow [`ARGUMENT`].
#[must_use]
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<_> = arguments.collect();
    match arguments.split_first() {
        #[cfg(target_os = "linux")]
        Some((first, rest)) if first == INNER => match rest.split_first() {
            Some((control, command)) => inner::main(Path::new(control), command),
            None => not_run("the helper inside was started without its folder"),
        },
        #[cfg(target_os = "linux")]
        Some((first, rest)) if first == BRIDGE => match rest {
            [socket] => bridge::main(PathBuf::from(socket)),
            _ => not_run("the bridge was started without its socket"),
        },
        #[cfg(target_os = "linux")]
        Some((first, rest)) if first == TIED => not_become(&become_program(rest)),
        #[cfg(target_os = "linux")]
        Some((first, rest)) if first == HELD => held::main(rest),
        Some((first, command)) if first == "--" => match receive() {
            Ok(request) => front::run(&request, command, FrontHost::Helper).1,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => not_run("no policy was sent"),
            Err(error) => not_run(&format!("no policy could be read: {error}")),
        },
        Some(_) | None => not_run(NOT_FOR_PEOPLE),
    }
}

/// Runs the helper as a program of its own: in the role that the arguments give, or, where they come from a program of another
/// build, as that program.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "it becomes the program that started it, which gave its own path"
)]
pub fn program_main(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let first = arguments.next();
    match first.as_deref().and_then(OsStr::to_str) {
        Some(ARGUMENT) => main(arguments),
        Some(build) if build.starts_with(BUILD_PREFIX) => match arguments.next() {
            Some(_) if build == BUILD => main(arguments),
            Some(starter) => {
                let error = Command::new(&starter).arg(ARGUMENT).args(arguments).exec();
                not_run(&format!("{} could not be started: {error}", starter.display()))
            }
            None => not_run(NOT_FOR_PEOPLE),
        },
        Some(_) | None => not_run(NOT_FOR_PEOPLE),
    }
}

/// Reads the request. Nothing is read ahead: what follows it may be the command's own input.
fn receive() -> io::Result<HelperRequest> {
    HelperRequest::receive(fs::File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// Runs the command of a request from this process and gives what became of it. It has to be called on the first
/// thread, and no other may start processes.
#[must_use]
pub fn run(request: &HelperRequest, command: &[OsString]) -> (HelperReport, ExitCode) {
    front::run(request, command, FrontHost::Program)
}

#[expect(clippy::print_stderr, reason = "there is no report to say it in")]
fn not_run(reason: &str) -> ExitCode {
    eprintln!("kode-ls: the sandbox could not be set up: {reason}");
    ExitCode::from(EXIT_NOT_RUN)
}

/// Says why a program was not started that ends with its starter.
#[cfg(target_os = "linux")]
#[expect(clippy::print_stderr, reason = "its standard error is the program's, and read by the starter")]
fn not_become(error: &io::Error) -> ExitCode {
    eprintln!("kode-ls: the program could not be started: {error}");
    ExitCode::from(match error.kind() {
        io::ErrorKind::NotFound => EXIT_NOT_FOUND,
        _ => EXIT_NOT_STARTED,
    })
}

/// The exit code for a command that a signal ended.
fn code_of(signal: i32) -> u8 {
    u8::try_from(EXIT_SIGNAL + signal).unwrap_or(u8::MAX)
}

fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> io::Result<T> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}
