//! The front process on Linux: bubblewrap or Landlock, with an inner process that puts the walls up.
//!
//! Rule: nothing below it outlives it: orphans come to it, and when it is killed at once the kernel ends the inner processes.

#![expect(
    clippy::disallowed_methods,
    reason = "it starts programs that were found outside of writable folders, and it writes files of its own"
)]

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use fork::{Fork, fork};
use rustix::process::{Pid, Signal, WaitStatus, geteuid, getpid, kill_process, set_child_subreaper};

use super::super::bubblewrap::{self, InsidePaths};
use super::super::inner;
use super::super::limits::ProcessGroup;
use super::super::memory;
use super::super::mounts::{self, MountStandIns, Mounts};
use super::super::processes::{WaitEnd, children, collect_all, kill_all_below, supervise};
use super::super::{ARGUMENT, HelperPlan, HelperStatus, INNER, PLAN, STATUS, read_json};
use super::{
    CommandEnd, EXIT_NOT_RUN, FrontHost, FrontSystem, HelperFront, PATIENCE, TMPDIR, environment,
    starter_is_gone,
};
use crate::sandbox::guard::GuardSnapshot;
use crate::sandbox::policy::{HelperRequest, ProxyAddress};
use crate::sandbox::{InputMode, SandboxKind, StartFailure};
use kode_base::paths::{AbsPath, real_path};

/// The file beside the control folder that says that mounts cannot be made inside.
const MOUNTED_OUTSIDE: &str = "mounted-outside";
/// The folder of all devices: disks, cameras, key strokes, and shared memory of all programs. Those that commands get are allowed
/// one by one.
const DEVICES: &str = "/dev";

/// The threads of this process.
const OWN_THREADS: &str = "/proc/self/task";

/// The additions of Linux to the state before the command starts.
pub(super) struct LinuxSystem<'a> {
    /// The folder of the helper's files, out of the reach of the command.
    control: PathBuf,
    /// The socket of the proxy, where one is needed and can be shown inside.
    proxy: Option<&'a Path>,
    mounts: Mounts,
    /// The files that are restored afterwards.
    kept: Option<GuardSnapshot>,
    host: FrontHost,
}

/// An inner process that is a copy of the front one.
struct ForkedInner {
    id: Pid,
    /// One byte lets the command start.
    release: io::PipeWriter,
}

impl ForkedInner {
    /// Lets the command start.
    fn release(mut self) -> Pid {
        // It may have ended before it came to the command.
        let _ = self.release.write_all(&[0]);
        self.id
    }
}

impl<'a> LinuxSystem<'a> {
    pub(super) fn new(
        front: &HelperFront<'_>,
        request: &'a HelperRequest,
        host: FrontHost,
    ) -> io::Result<Self> {
        let (policy, places, survey) = (front.policy, &front.handed.places, &front.handed.survey);
        let (mounts, kept) = match policy.kind {
            SandboxKind::Bubblewrap { .. } => (mounts::of(places, survey), None),
            // A file that is restored when such a one ends might be the user's own work.
            SandboxKind::Landlock if policy.lasting => (Mounts::new(), None),
            SandboxKind::Landlock => {
                let targets = places.link_targets(survey);
                (Mounts::new(), Some(GuardSnapshot::contents(survey, &targets)?))
            }
            SandboxKind::Seatbelt => return Err(io::Error::other("Seatbelt is the sandbox of macOS")),
        };
        let is_wanted = policy.network.needs_proxy() && is_bubblewrap(&policy.kind);
        let proxy = match &request.proxy {
            Some(ProxyAddress::Socket(socket)) if is_wanted => Some(AbsPath::as_path(socket)),
            Some(ProxyAddress::Socket(_) | ProxyAddress::Loopback { .. }) | None => None,
        };
        Ok(Self { control: real_path(request.control.as_path())?, proxy, mounts, kept, host })
    }
}

impl FrontSystem for LinuxSystem<'_> {
    fn kept(&self) -> Option<&GuardSnapshot> {
        self.kept.as_ref()
    }

    fn run(&self, front: &HelperFront<'_>, command: &[OsString]) -> io::Result<CommandEnd> {
        let group = ProcessGroup::enter(front.policy.limits.processes);
        let over = self.start_and_wait(front, command, group.is_some());
        kill_all_below(&[]);
        drop(group);
        over.map(|(over, is_orphan)| self.end(front, over, is_orphan))
    }
}

impl LinuxSystem<'_> {
    /// Runs the command; whether the process that started this was gone before it ended.
    fn start_and_wait(
        &self,
        front: &HelperFront<'_>,
        command: &[OsString],
        is_grouped: bool,
    ) -> io::Result<(WaitEnd, bool)> {
        // Orphans come here, so that they can be ended.
        set_child_subreaper(Some(getpid()))?;
        let is_bubblewrap = is_bubblewrap(&front.policy.kind);
        // The findings of an earlier command of the session.
        let outside = self.control.with_file_name(MOUNTED_OUTSIDE);
        if is_bubblewrap && outside.exists() {
            return self.try_to_run(front, command, is_grouped, false);
        }
        let (over, is_orphan) = self.try_to_run(front, command, is_grouped, true)?;
        let status = read_json::<HelperStatus>(&self.control.join(STATUS)).unwrap_or_default();
        let was_not_run = status.enforced.is_none() && (status.failure.is_none() || status.cannot_mount);
        if is_bubblewrap && was_not_run && !is_orphan && matches!(over, WaitEnd::Ended(_)) {
            fs::write(outside, "")?;
            return self.try_to_run(front, command, is_grouped, false);
        }
        Ok((over, is_orphan))
    }

    /// Runs the command, with the mounts made inside or by bubblewrap.
    fn try_to_run(
        &self,
        front: &HelperFront<'_>,
        command: &[OsString],
        is_grouped: bool,
        mounts_inside: bool,
    ) -> io::Result<(WaitEnd, bool)> {
        let plan = self.plan(front, is_grouped, mounts_inside);
        MountStandIns::in_folder(&self.control).create(&self.mounts)?;
        fs::write(self.control.join(STATUS), "")?;
        let is_bubblewrap = is_bubblewrap(&front.policy.kind);
        let forward = |child: Pid, signal: Signal| {
            let inner = if is_bubblewrap { inner_of(child) } else { Some(child) };
            if let Some(inner) = inner {
                // It may be ending by itself.
                let _ = kill_process(inner, signal);
            }
        };
        // Before there is a runtime, which would be in both processes.
        let forked = if !is_bubblewrap && self.host == FrontHost::Helper && has_one_thread() {
            Some(self.fork_inner(front, &plan, command)?)
        } else {
            fs::write(self.control.join(PLAN), serde_json::to_vec(&plan)?)?;
            None
        };
        let start = || match forked {
            Some(forked) => Ok(forked.release()),
            None => Ok(Pid::from_child(&self.prepare(front, command, mounts_inside)?.spawn()?)),
        };
        let stop = async {
            tokio::select! {
                () = starter_is_gone(front.policy) => {}
                () = memory::is_exhausted() => out_of_memory(),
            }
        };
        let over = supervise(start, forward, collect_all, PATIENCE, stop)?;
        Ok((over, matches!(over, WaitEnd::Stopped)))
    }

    fn plan(&self, front: &HelperFront<'_>, is_grouped: bool, mounts_inside: bool) -> HelperPlan {
        let (hidden, outside) = match front.policy.kind {
            SandboxKind::Bubblewrap { .. } | SandboxKind::Seatbelt => (Vec::new(), None),
            SandboxKind::Landlock => {
                let hidden = front.handed.places.hidden.iter().chain(&front.handed.survey.hidden).cloned();
                (hidden.chain([DEVICES.into()]).collect(), Some(getpid().as_raw_pid()))
            }
        };
        let writable =
            front.handed.places.writable.iter().chain([&front.handed.places.scratch]).cloned().collect();
        let weaker = self.weaker(front, is_grouped);
        let has_proxy = self.proxy.is_some();
        let mounts = if mounts_inside { self.mounts.clone() } else { Mounts::new() };
        let (policy, shown) = (front.policy.clone(), front.handed.places.shown.clone());
        HelperPlan { policy, writable, hidden, shown, front: outside, mounts, has_proxy, weaker }
    }

    /// Starts the inner process as a copy of this one, which saves the start of a program. The command waits until this process
    /// hands signals on: one that came earlier would end this process, and the command without its own clean-up.
    fn fork_inner(
        &self,
        front: &HelperFront<'_>,
        plan: &HelperPlan,
        command: &[OsString],
    ) -> io::Result<ForkedInner> {
        let (mut released, release) = io::pipe()?;
        match fork()? {
            Fork::Child => {
                drop(release);
                let code = inner::run_plan(plan, &self.control, command, |command| {
                    confine(front, command);
                    if released.read_exact(&mut [0]).is_err() {
                        // The front process is gone.
                        std::process::exit(EXIT_NOT_RUN.into());
                    }
                });
                std::process::exit(code.into());
            }
            Fork::Parent(inner) => {
                // Where both are on one processor, the command waits for the inner one alone.
                std::thread::yield_now();
                let id = Pid::from_raw(inner).ok_or_else(|| io::Error::other("a process without an id"))?;
                Ok(ForkedInner { id, release })
            }
        }
    }

    fn weaker(&self, front: &HelperFront<'_>, is_grouped: bool) -> Vec<String> {
        let mut weaker = Vec::new();
        if geteuid().is_root() && !is_grouped {
            weaker.push("the number of processes is not limited: root is not bound by that limit".to_owned());
        }
        if front.policy.network.needs_proxy() && self.proxy.is_none() {
            weaker.push(
                match front.policy.kind {
                    SandboxKind::Bubblewrap { .. } | SandboxKind::Seatbelt => {
                        "there is no proxy to reach single hosts through; the network is off"
                    }
                    SandboxKind::Landlock => {
                        "single hosts can be reached only out of bubblewrap; the network is off"
                    }
                }
                .to_owned(),
            );
        }
        if front.policy.kind == SandboxKind::Landlock {
            weaker.push(
                "guarded files can be changed while the command runs; they are put back after".to_owned(),
            );
            weaker.push("modes, owners and times of the user's files everywhere can be changed".to_owned());
            weaker.push("other processes can be listed".to_owned());
            let mut hidden = front.handed.places.hidden.iter().chain(&front.handed.survey.hidden);
            if hidden.any(|path| front.handed.places.is_writable(path)) {
                weaker.push(
                    "in folders with hidden files, a command cannot read what it makes, remove or rename"
                        .to_owned(),
                );
            }
        }
        weaker
    }

    fn prepare(
        &self,
        front: &HelperFront<'_>,
        command: &[OsString],
        mounts_inside: bool,
    ) -> io::Result<Command> {
        let helper = std::env::current_exe()?;
        let mut prepared = match &front.policy.kind {
            SandboxKind::Bubblewrap { program } => {
                let cwd = std::env::current_dir()?;
                let stand_ins = MountStandIns::in_folder(&self.control);
                let outside = (!mounts_inside).then_some((&self.mounts, &stand_ins));
                let shown = InsidePaths { helper: &helper, control: &self.control, proxy: self.proxy };
                let mut prepared = Command::new(program.as_path());
                let network = &front.policy.network;
                prepared.args(bubblewrap::arguments(&front.handed.places, network, &cwd, shown, outside));
                prepared.arg(bubblewrap::inside("helper")).args([ARGUMENT, INNER]);
                // A group of its own: signals for this one are handed on, not shared.
                prepared.arg(bubblewrap::inside("control")).process_group(0);
                prepared
            }
            SandboxKind::Landlock | SandboxKind::Seatbelt => {
                // It leaves this one's group itself, for a session of its own.
                let mut prepared = Command::new(helper);
                prepared.args([ARGUMENT, INNER]).arg(&self.control);
                prepared
            }
        };
        prepared.args(command);
        confine(front, &mut prepared);
        Ok(prepared)
    }

    /// The end of the command, by the words of the process inside.
    fn end(&self, front: &HelperFront<'_>, over: WaitEnd, is_orphan: bool) -> CommandEnd {
        let status = read_json::<HelperStatus>(&self.control.join(STATUS)).ok().unwrap_or_default();
        let HelperStatus { enforced, failure, code, signal, cannot_mount: _ } = status;
        let killed = Some(Signal::KILL.as_raw());
        let (failure, code, signal) = match (failure, &enforced, code, signal, over) {
            (Some(failure), ..) => (Some(failure), None, None),
            (None, None, .., WaitEnd::Ended(status)) => {
                (Some(not_set_up(&front.policy.kind, status)), None, None)
            }
            (None, Some(_), None, None, _) | (None, None, .., WaitEnd::Stopped) => (None, None, killed),
            (None, Some(_), code, signal, _) => (None, code, signal),
        };
        CommandEnd { enforced, failure, code, signal, is_orphan }
    }
}

/// Gives a process inside the command's environment and input.
fn confine(front: &HelperFront<'_>, command: &mut Command) {
    command.env_clear().envs(environment());
    command.envs(&front.policy.variables).env(TMPDIR, &front.handed.places.scratch);
    if front.policy.input == InputMode::None {
        command.stdin(Stdio::null());
    }
}

/// Whether a copy of this process would have all of it: other threads are not copied, nor are the locks released that they hold.
fn has_one_thread() -> bool {
    fs::read_dir(OWN_THREADS).is_ok_and(|threads| threads.count() == 1)
}

fn is_bubblewrap(kind: &SandboxKind) -> bool {
    matches!(kind, SandboxKind::Bubblewrap { .. })
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
