//! The front process: outside the sandbox, it starts the inner process, waits, looks after guarded files, and reports.
//!
//! Rule: it outlives everything below it, and nothing below it outlives it, except when it is killed at once: then
//! the kernel ends the inner processes.

#![expect(
    clippy::disallowed_methods,
    reason = "it starts programs that were found outside of writable folders, and it writes files of its own, or those that a call was allowed, and it reads variables of the process for its callers"
)]

use std::ffi::{OsStr, OsString};
use std::future::pending;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use std::{fs, io};

use rustix::process::{Pid, Signal, WaitStatus, geteuid, getpid, kill_process, set_child_subreaper};
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::unix::pipe;

use super::bubblewrap::InsidePaths;
use super::limits::ProcessGroup;
use super::memory;
use super::mounts::{self, MountStandIns, Mounts};
use super::places::PolicyPaths;
use super::processes::{WaitEnd, children, kill_all_below, supervise};
use super::{
    EXIT_NOT_FOUND, EXIT_NOT_RUN, EXIT_NOT_STARTED, HelperPlan, HelperStatus, INNER, PLAN, REPORT, STATUS,
    bubblewrap, code_of, read_json,
};
use crate::sandbox::guard::{GuardManifest, GuardSnapshot, GuardSurvey, Quarantine, settle_alone};
use crate::sandbox::policy::HelperRequest;
use crate::sandbox::{GuardReport, HelperReport, InputMode, SandboxKind, SandboxPolicy, StartFailure, keeps};
use kode_base::paths::{AbsPath, real_path};

/// How long a command has that was asked to end. The engine waits a little longer before it kills this process.
const PATIENCE: Duration = Duration::from_millis(1500);
/// The variable for the folder of temporary files.
const TMPDIR: &str = "TMPDIR";
/// Where this process's standard error can be opened.
const STDERR: &str = "/proc/self/fd/2";
/// The file beside the control folder that says that mounts cannot be made inside.
const MOUNTED_OUTSIDE: &str = "mounted-outside";
/// Where POSIX shared memory, semaphores and message queues of all programs appear as files.
const SHARED_MEMORY: [&str; 2] = ["/dev/shm", "/dev/mqueue"];

/// Runs a command under a policy, and gives what became of it.
pub(super) fn run(request: &HelperRequest, command: &[OsString]) -> (HelperReport, ExitCode) {
    let report = match HelperFront::new(request) {
        Ok(front) => front.run(command),
        Err(error) => failed(error.to_string()),
    };
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

/// The state before the command starts.
struct HelperFront<'a> {
    policy: &'a SandboxPolicy,
    control: PathBuf,
    /// The socket of the proxy, where one is needed and can be shown inside.
    proxy: Option<&'a Path>,
    places: PolicyPaths,
    handed: GuardManifest,
    /// Whether the process that started this handles new files.
    is_watched: bool,
    mounts: Mounts,
    /// The files that are restored afterwards.
    kept: Option<GuardSnapshot>,
}

impl<'a> HelperFront<'a> {
    fn new(request: &'a HelperRequest) -> io::Result<Self> {
        let policy = &request.policy;
        let control = real_path(request.control.as_path())?;
        let places = PolicyPaths::of(policy)?;
        if places.is_writable(&control) {
            return Err(io::Error::other("the folder of the helper is one the command may write in"));
        }
        let handed = match &request.guard {
            Some(file) => read_json::<GuardManifest>(file.as_path())?,
            None => {
                GuardManifest { survey: GuardSurvey::of(&places.ground())?, store: Quarantine::of(&control) }
            }
        };
        let (mounts, kept) = match policy.kind {
            SandboxKind::Bubblewrap { .. } => (mounts::of(&places, &handed.survey), None),
            // A file that is restored when such a one ends might be the user's own work.
            SandboxKind::Landlock if policy.lasting => (Mounts::new(), None),
            SandboxKind::Landlock => {
                let targets = places.link_targets(&handed.survey);
                (Mounts::new(), Some(GuardSnapshot::contents(&handed.survey, &targets)?))
            }
        };
        let is_wanted = policy.network.needs_proxy() && matches!(policy.kind, SandboxKind::Bubblewrap { .. });
        let proxy = request.proxy.as_ref().filter(|_| is_wanted).map(AbsPath::as_path);
        let is_watched = request.guard.is_some();
        Ok(Self { policy, control, proxy, places, handed, is_watched, mounts, kept })
    }

    /// The command, and its exit code if it has one.
    fn run(self, command: &[OsString]) -> (HelperReport, Option<i32>) {
        let group = ProcessGroup::enter(self.policy.limits.processes);
        let over = self.start_and_wait(command, group.is_some());
        kill_all_below(&[]);
        drop(group);
        let is_alone = !self.is_watched || over.as_ref().is_ok_and(|(_, is_orphan)| *is_orphan);
        // The process that watches may be setting new files aside.
        let lock = (self.kept.is_some() || is_alone).then(|| self.handed.store.lock());
        let mut guarded = self.kept.as_ref().map(|kept| kept.restore(&self.handed.store)).unwrap_or_default();
        if is_alone && !self.policy.lasting {
            match settle_alone(&self.places.ground(), &self.handed) {
                Ok(left) => guarded = guarded.and(left),
                Err(error) => {
                    let roots = self.places.writable.iter().map(|root| (root.clone(), error.to_string()));
                    guarded.changed.extend(roots);
                }
            }
        }
        drop(lock);
        match over {
            Ok((over, _)) => self.report(over, guarded),
            Err(error) => failed(error.to_string()),
        }
    }

    /// Runs the command; whether the process that started this was gone before it ended.
    fn start_and_wait(&self, command: &[OsString], is_grouped: bool) -> io::Result<(WaitEnd, bool)> {
        // Orphans come here, so that they can be ended.
        set_child_subreaper(Some(getpid()))?;
        let is_bubblewrap = matches!(self.policy.kind, SandboxKind::Bubblewrap { .. });
        // The findings of an earlier command of the session.
        let outside = self.control.with_file_name(MOUNTED_OUTSIDE);
        if is_bubblewrap && outside.exists() {
            return self.try_to_run(command, is_grouped, false);
        }
        let (over, is_orphan) = self.try_to_run(command, is_grouped, true)?;
        let status = read_json::<HelperStatus>(&self.control.join(STATUS)).unwrap_or_default();
        let was_not_run = status.enforced.is_none() && (status.failure.is_none() || status.cannot_mount);
        if is_bubblewrap && was_not_run && !is_orphan && matches!(over, WaitEnd::Ended(_)) {
            fs::write(outside, "")?;
            return self.try_to_run(command, is_grouped, false);
        }
        Ok((over, is_orphan))
    }

    /// Runs the command, with the mounts made inside or by bubblewrap.
    fn try_to_run(
        &self,
        command: &[OsString],
        is_grouped: bool,
        mounts_inside: bool,
    ) -> io::Result<(WaitEnd, bool)> {
        self.write_plan(is_grouped, mounts_inside)?;
        let mut prepared = self.prepare(command, mounts_inside)?;
        let is_bubblewrap = matches!(self.policy.kind, SandboxKind::Bubblewrap { .. });
        let forward = |child: Pid, signal: Signal| {
            let inner = if is_bubblewrap { inner_of(child) } else { Some(child) };
            if let Some(inner) = inner {
                // It may be ending by itself.
                let _ = kill_process(inner, signal);
            }
        };
        let start = || {
            let child = prepared.spawn()?;
            Ok(Pid::from_child(&child))
        };
        let stop = async {
            tokio::select! {
                () = starter_is_gone(self.policy) => {}
                () = memory::is_exhausted() => out_of_memory(),
            }
        };
        let over = supervise(start, forward, PATIENCE, stop)?;
        Ok((over, matches!(over, WaitEnd::Stopped)))
    }

    fn write_plan(&self, is_grouped: bool, mounts_inside: bool) -> io::Result<()> {
        let (hidden, front) = match self.policy.kind {
            SandboxKind::Bubblewrap { .. } => (Vec::new(), None),
            SandboxKind::Landlock => {
                let shared = SHARED_MEMORY.iter().map(PathBuf::from).filter(|folder| folder.is_dir());
                let hidden = self.places.hidden.iter().chain(&self.handed.survey.hidden).cloned();
                (hidden.chain(shared).collect(), Some(getpid().as_raw_pid()))
            }
        };
        let writable = self.places.writable.iter().chain([&self.places.scratch]).cloned().collect();
        let weaker = self.weaker(is_grouped);
        let has_proxy = self.proxy.is_some();
        let mounts = if mounts_inside { self.mounts.clone() } else { Mounts::new() };
        let (policy, shown) = (self.policy.clone(), self.places.shown.clone());
        let plan = HelperPlan { policy, writable, hidden, shown, front, mounts, has_proxy, weaker };
        fs::write(self.control.join(PLAN), serde_json::to_vec(&plan)?)?;
        MountStandIns::in_folder(&self.control).create()?;
        fs::write(self.control.join(STATUS), "")
    }

    fn weaker(&self, is_grouped: bool) -> Vec<String> {
        let mut weaker = Vec::new();
        if geteuid().is_root() && !is_grouped {
            weaker.push("the number of processes is not limited: root is not bound by that limit".to_owned());
        }
        if self.policy.network.needs_proxy() && self.proxy.is_none() {
            weaker.push(
                match self.policy.kind {
                    SandboxKind::Bubblewrap { .. } => {
                        "there is no proxy to reach single hosts through; the network is off"
                    }
                    SandboxKind::Landlock => {
                        "single hosts can be reached only out of bubblewrap; the network is off"
                    }
                }
                .to_owned(),
            );
        }
        if self.policy.kind == SandboxKind::Landlock {
            weaker.push(
                "guarded files can be changed while the command runs; they are put back after".to_owned(),
            );
            weaker.push("modes, owners and times of the user's files everywhere can be changed".to_owned());
            weaker.push("other processes can be listed".to_owned());
            let mut hidden = self.places.hidden.iter().chain(&self.handed.survey.hidden);
            if hidden.any(|path| self.places.is_writable(path)) {
                weaker.push(
                    "in folders with hidden files, a command cannot read what it makes, remove or rename"
                        .to_owned(),
                );
            }
        }
        weaker
    }

    fn prepare(&self, command: &[OsString], mounts_inside: bool) -> io::Result<Command> {
        let helper = std::env::current_exe()?;
        let mut prepared = match &self.policy.kind {
            SandboxKind::Bubblewrap { program } => {
                let cwd = std::env::current_dir()?;
                let stand_ins = MountStandIns::in_folder(&self.control);
                let outside = (!mounts_inside).then_some((&self.mounts, &stand_ins));
                let shown = InsidePaths { helper: &helper, control: &self.control, proxy: self.proxy };
                let mut prepared = Command::new(program.as_path());
                let network = &self.policy.network;
                prepared.args(bubblewrap::arguments(&self.places, network, &cwd, shown, outside));
                prepared.arg(bubblewrap::inside("helper")).args([super::ARGUMENT, INNER]);
                // A group of its own: signals for this one are handed on, not shared.
                prepared.arg(bubblewrap::inside("control")).process_group(0);
                prepared
            }
            SandboxKind::Landlock => {
                // It leaves this one's group itself, for a session of its own.
                let mut prepared = Command::new(helper);
                prepared.args([super::ARGUMENT, INNER]).arg(&self.control);
                prepared
            }
        };
        prepared.args(command).env_clear().envs(environment());
        prepared.envs(&self.policy.variables).env(TMPDIR, &self.places.scratch);
        if self.policy.input == InputMode::None {
            prepared.stdin(Stdio::null());
        }
        Ok(prepared)
    }

    fn report(&self, over: WaitEnd, guarded: GuardReport) -> (HelperReport, Option<i32>) {
        let status = read_json::<HelperStatus>(&self.control.join(STATUS)).ok().unwrap_or_default();
        let HelperStatus { enforced, failure, code, signal, cannot_mount: _ } = status;
        let killed = Some(Signal::KILL.as_raw());
        let (failure, code, signal) = match (failure, &enforced, code, signal, over) {
            (Some(failure), ..) => (Some(failure), None, None),
            (None, None, .., WaitEnd::Ended(status)) => {
                (Some(not_set_up(&self.policy.kind, status)), None, None)
            }
            (None, Some(_), None, None, _) | (None, None, .., WaitEnd::Stopped) => (None, None, killed),
            (None, Some(_), code, signal, _) => (None, code, signal),
        };
        (HelperReport { enforced, failure, signal, guarded }, code)
    }
}

/// Says among the command's output why it ends.
#[expect(clippy::print_stderr, reason = "standard error is the command's, and its reader wants to know")]
fn out_of_memory() {
    eprintln!("kode-ls: the command was ended because the machine has hardly any memory left");
}

/// Why there is no word from inside.
fn not_set_up(kind: &SandboxKind, status: WaitStatus) -> StartFailure {
    let how = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown end".to_owned(),
    };
    StartFailure::Sandbox(format!("{} could not set it up ({how})", kind.name()))
}

/// The inner process, below bubblewrap and its first process.
fn inner_of(bubblewrap: Pid) -> Option<Pid> {
    let init = children(bubblewrap).into_iter().next()?;
    children(init).into_iter().next()
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
