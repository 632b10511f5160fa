//! The inner process: inside the sandbox, it lowers the limits, puts the filters on itself, and starts the command.
//!
//! Rule: what holds the command holds this process before the command is there; the file it answers in was opened
//! before that and is out of the command's reach.

#![expect(
    clippy::disallowed_methods,
    reason = "it starts programs that were found outside of writable folders"
)]

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::future::pending;
use std::io::{self, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use ::landlock::RulesetStatus;
use rustix::process::{
    DumpableBehavior, Pid, Signal, getpid, getppid, kill_process_group, set_child_subreaper,
    set_dumpable_behavior, set_parent_process_death_signal, setsid,
};
use rustix::thread::set_no_new_privs;

use super::bridge::Bridge;
use super::landlock::{self, FileRules};
use super::mounts::{self, MountError, MountStandIns};
use super::processes::{WaitEnd, collect_all, kill_all_below, linger, supervise};
use super::seccomp::{self, Sockets};
use super::{
    EXIT_NOT_FOUND, EXIT_NOT_RUN, EXIT_NOT_STARTED, HelperPlan, HelperStatus, PLAN, STATUS, code_of, limits,
    memory, not_run, read_json,
};
use crate::sandbox::{Enforcement, Network, SandboxKind, StartFailure};

/// How long what a command started without waiting for it may still take. Process substitutions (`> >(tee log)`) need
/// this moment.
const LINGER: Duration = Duration::from_millis(100);
/// How long a command has that was asked to end; the front process has less patience.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs the command of the plan in the folder `control`.
pub(super) fn main(control: &Path, command: &[OsString]) -> ExitCode {
    match read_json::<HelperPlan>(&control.join(PLAN)) {
        Ok(plan) => ExitCode::from(run_plan(&plan, control, command, |_| {})),
        Err(error) => not_run(&format!("there is no plan for the sandbox: {error}")),
    }
}

/// Sets up the inner process and runs the command, which `confine` gives what it does not have from this process. The answer is
/// the exit code for it.
pub(super) fn run_plan(
    plan: &HelperPlan,
    control: &Path,
    command: &[OsString],
    confine: impl FnOnce(&mut Command),
) -> u8 {
    let mut file = match OpenOptions::new().write(true).open(control.join(STATUS)) {
        Ok(file) => file,
        Err(error) => return refused(&format!("the answer could not be opened: {error}")),
    };
    let mut status = HelperStatus::default();
    let code = match restrict(plan, control) {
        Ok((enforced, bridge)) => {
            status.enforced = Some(enforced);
            // Said before, so that it is known when this process is killed with the command.
            if let Err(error) = answer(&mut file, &status) {
                return refused(&format!("the answer could not be written: {error}"));
            }
            run(command, confine, bridge.as_ref(), &mut status)
        }
        Err(SetupRefusal { reason, cannot_mount }) => {
            status.failure = Some(StartFailure::Sandbox(reason));
            status.cannot_mount = cannot_mount;
            EXIT_NOT_RUN
        }
    };
    match answer(&mut file, &status) {
        Ok(()) => code,
        Err(error) => refused(&format!("the answer could not be written: {error}")),
    }
}

fn refused(reason: &str) -> u8 {
    not_run(reason);
    EXIT_NOT_RUN
}

/// Writes an answer over an earlier one; spaces cover the rest of a longer one. The file is not cut, because ext4 writes a file out
/// when it is closed that was cut to nothing.
fn answer(file: &mut File, status: &HelperStatus) -> io::Result<()> {
    let mut json = serde_json::to_vec(status)?;
    let earlier = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    json.resize(json.len().max(earlier), b' ');
    file.rewind()?;
    file.write_all(&json)
}

/// Why the walls do not stand.
struct SetupRefusal {
    reason: String,
    cannot_mount: bool,
}

impl From<String> for SetupRefusal {
    fn from(reason: String) -> Self {
        Self { reason, cannot_mount: false }
    }
}

impl From<MountError> for SetupRefusal {
    fn from(error: MountError) -> Self {
        let cannot_mount = matches!(error, MountError::NotPermitted(_));
        Self { reason: error.to_string(), cannot_mount }
    }
}

/// Puts the walls up around this process, but for the bridge, which has some of its own.
fn restrict(plan: &HelperPlan, control: &Path) -> Result<(Enforcement, Option<Bridge>), SetupRefusal> {
    let said = |what: &str, error: io::Error| format!("{what}: {error}");
    let is_alone = plan.policy.kind == SandboxKind::Landlock;
    if is_alone {
        leave(plan).map_err(|error| said("the process could not be set apart", error))?;
    }
    set_child_subreaper(Some(getpid())).map_err(|error| said("orphans could not be had", error.into()))?;
    set_no_new_privs(true).map_err(|error| said("privileges could not be given up", error.into()))?;
    memory::end_first();
    limits::lower(&plan.policy.limits).map_err(|error| said("limits could not be lowered", error))?;
    make_mounts(plan, &MountStandIns::in_folder(control))?;
    limits::drop_capabilities().map_err(|error| said("capabilities could not be given up", error))?;
    let sockets = if is_alone { Sockets::without_namespace(&plan.policy.network) } else { Sockets::Internet };
    let bridge = plan.has_proxy.then(Bridge::start).transpose()?;
    let mut writable = plan.writable.clone();
    if !is_alone {
        writable.extend(["/tmp", "/var/tmp"].map(PathBuf::from));
    }
    // A folder with nothing to hide takes one rule instead of one for each of its entries: `/etc` takes some 200 otherwise.
    let hidden: Vec<_> = plan.hidden.iter().filter(|path| !landlock::is_shut(path)).cloned().collect();
    let files = FileRules { writable: &writable, hidden: &hidden, shown: &plan.shown, alone: is_alone };
    let landlock = landlock::apply(&files)?;
    seccomp::apply(sockets, is_alone, files.hides_in_writable())
        .map_err(|error| format!("seccomp: {error}"))?;
    // The command has the same user, and may neither read nor change the memory of this process.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| said("the memory of the helper could not be closed", error.into()))?;
    let mut weaker = plan.weaker.clone();
    let landlock = match landlock {
        RulesetStatus::FullyEnforced => "full",
        RulesetStatus::PartiallyEnforced => {
            if is_alone {
                weaker.push("this kernel has an older Landlock: signals may reach outside".to_owned());
            }
            "partial"
        }
        RulesetStatus::NotEnforced if is_alone => {
            return Err("Landlock did not take effect".to_owned().into());
        }
        // The first process inside keeps a view without the mounts; Landlock alone keeps the command from it.
        RulesetStatus::NotEnforced if !plan.mounts.is_empty() => {
            let reason = "without Landlock no mounts can be made inside".to_owned();
            return Err(SetupRefusal { reason, cannot_mount: true });
        }
        RulesetStatus::NotEnforced => {
            weaker.push("this kernel has no Landlock; there is no second wall".to_owned());
            "none"
        }
    };
    let network = match (&plan.policy.network, &bridge) {
        (Network::Allowed { .. }, Some(_)) => "listed hosts",
        (Network::Off | Network::Allowed { .. }, _) => "off",
        (Network::On, _) => "on",
    };
    let enforced = Enforcement {
        kind: plan.policy.kind.name().to_owned(),
        landlock: landlock.to_owned(),
        seccomp: true,
        network: network.to_owned(),
        weaker,
    };
    Ok((enforced, bridge))
}

/// Makes the mounts, then enters the working directory again: the one from before lies below them, and relative paths from it
/// would pass by all of them.
fn make_mounts(plan: &HelperPlan, stand_ins: &MountStandIns) -> Result<(), SetupRefusal> {
    let said = |error: io::Error| format!("the working directory could not be entered: {error}");
    let cwd = std::env::current_dir().map_err(said)?;
    mounts::make(&plan.mounts, stand_ins)?;
    Ok(std::env::set_current_dir(cwd).map_err(said)?)
}

/// Leaves the terminal and the group that are shared with the process that started this, and ends when the front one does.
fn leave(plan: &HelperPlan) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::HUP))?;
    if getppid().map(Pid::as_raw_pid) != plan.front {
        return Err(io::Error::other("the helper outside is gone"));
    }
    setsid()?;
    Ok(())
}

/// Runs the command, enters how it ended, and gives the exit code for it.
fn run(
    command: &[OsString],
    confine: impl FnOnce(&mut Command),
    bridge: Option<&Bridge>,
    status: &mut HelperStatus,
) -> u8 {
    let Some((program, arguments)) = command.split_first() else {
        status.failure = Some(StartFailure::NotStarted("there is no command".to_owned()));
        return EXIT_NOT_STARTED;
    };
    // It ends with this process, and is not counted among what the command started.
    let except: Vec<Pid> = bridge.map(Bridge::id).into_iter().collect();
    let mut failure = None;
    let start = || {
        let mut prepared = Command::new(program);
        confine(&mut prepared);
        prepared.envs(bridge.into_iter().flat_map(Bridge::variables));
        match prepared.args(arguments).process_group(0).spawn() {
            Ok(child) => Ok(Pid::from_child(&child)),
            Err(error) => {
                let said = format!("{}: {error}", program.display());
                failure = Some(match error.kind() {
                    io::ErrorKind::NotFound => StartFailure::NotFound(said),
                    _ => StartFailure::NotStarted(said),
                });
                Err(error)
            }
        }
    };
    let forward = |child: Pid, signal: Signal| {
        if signal == Signal::HUP {
            kill_all_below(&except);
        }
        // It may be ending by itself.
        let _ = kill_process_group(child, signal);
    };
    let over = supervise(start, forward, collect_all, PATIENCE, pending());
    linger(&except, LINGER);
    kill_all_below(&except);
    if let Some(failure) = failure {
        let code =
            if matches!(failure, StartFailure::NotFound(_)) { EXIT_NOT_FOUND } else { EXIT_NOT_STARTED };
        status.failure = Some(failure);
        return code;
    }
    match over {
        Ok(WaitEnd::Ended(ended)) => {
            (status.code, status.signal) = (ended.exit_status(), ended.terminating_signal());
        }
        Ok(WaitEnd::Stopped) => status.signal = Some(Signal::KILL.as_raw()),
        Err(error) => {
            status.failure =
                Some(StartFailure::Sandbox(format!("the command could not be waited for: {error}")));
            return EXIT_NOT_RUN;
        }
    }
    match (status.code, status.signal) {
        (Some(code), _) => u8::try_from(code & 0xff).unwrap_or(u8::MAX),
        (None, signal) => code_of(signal.unwrap_or_default()),
    }
}
