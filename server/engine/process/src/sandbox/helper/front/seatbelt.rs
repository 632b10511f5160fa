//! The front process on macOS: the command below `sandbox-exec`, in a process group of its own.
//!
//! Rule: `sandbox-exec` is taken from its fixed place. It is tried with the very policy before the command, so that a policy
//! that the system does not take is never reported as a command that failed.

#![expect(
    clippy::disallowed_methods,
    reason = "it starts programs of the system, and reads variables of the process for the command"
)]

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};

use super::super::limits;
use super::super::processes::{WaitEnd, collect_child, supervise};
use super::{
    CommandEnd, FrontHost, FrontSystem, HelperFront, PATIENCE, TMPDIR, environment, starter_is_gone,
};
use crate::sandbox::guard::GuardSnapshot;
use crate::sandbox::policy::{HelperRequest, ProxyAddress};
use crate::sandbox::seatbelt::{SeatbeltAccess, SeatbeltNetwork, SeatbeltProfile};
use crate::sandbox::{Enforcement, InputMode, Network, SandboxKind, StartFailure, proxy, trial};

/// The program that applies a policy to itself and becomes another program.
pub(in crate::sandbox) const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";
/// The program of a trial, which does nothing.
pub(in crate::sandbox) const NOTHING: &str = "/usr/bin/true";
/// How long processes may still take that a command started without waiting for them, as on Linux.
const LINGER: Duration = Duration::from_millis(100);
/// The time between two checks of it.
const PAUSE: Duration = Duration::from_millis(2);

/// The additions of macOS to the state before the command starts.
#[derive(Debug)]
pub(super) struct SeatbeltSystem {
    program: PathBuf,
    /// Its arguments before the command.
    arguments: Vec<OsString>,
    /// The variables that lead to the proxy.
    variables: Vec<(&'static str, String)>,
    network: SeatbeltNetwork,
    /// Whether a person is at the terminal that the command reads from: then it stays in the group that may read it.
    is_at_terminal: bool,
    weaker: Vec<String>,
}

impl SeatbeltSystem {
    #[cfg_attr(not(target_os = "macos"), expect(dead_code, reason = "tests name another program"))]
    pub(super) fn new(
        front: &HelperFront<'_>,
        request: &HelperRequest,
        _host: FrontHost,
    ) -> io::Result<Self> {
        let is_at_terminal = front.policy.input == InputMode::Rest && io::stdin().is_terminal();
        Self::by(Path::new(SANDBOX_EXEC), is_at_terminal, front, request)
    }

    /// With another program in the place of `sandbox-exec`.
    fn by(
        program: &Path,
        is_at_terminal: bool,
        front: &HelperFront<'_>,
        request: &HelperRequest,
    ) -> io::Result<Self> {
        let policy = front.policy;
        if policy.kind != SandboxKind::Seatbelt {
            return Err(io::Error::other(format!("{} is a sandbox of Linux", policy.kind.name())));
        }
        let mut weaker = vec![
            "a process that leaves the group of the command lives on after it, inside its sandbox".to_owned(),
            "the memory that the command takes is not limited".to_owned(),
        ];
        let mut variables = Vec::new();
        let network = match (&policy.network, &request.proxy) {
            (Network::On, _) => SeatbeltNetwork::On,
            (Network::Allowed { .. }, Some(ProxyAddress::Loopback { port, token }))
                if policy.network.needs_proxy() =>
            {
                variables.extend(proxy::variables(&proxy::url(*port, Some(token))));
                SeatbeltNetwork::Proxy(*port)
            }
            (Network::Allowed { .. }, _) if policy.network.needs_proxy() => {
                weaker.push("there is no proxy to reach single hosts through; the network is off".to_owned());
                SeatbeltNetwork::Off
            }
            (Network::Off | Network::Allowed { .. }, _) => SeatbeltNetwork::Off,
        };
        if is_at_terminal {
            weaker.push("processes that the command leaves behind live on, inside its sandbox".to_owned());
        }
        let access = SeatbeltAccess { network, refuses_names: !request.is_checkout };
        let survey = &front.handed.survey;
        let held = front.handed.places.held(survey);
        let arguments = SeatbeltProfile::of(&front.handed.places, survey, &held, access).arguments()?;
        Ok(Self { program: program.to_path_buf(), arguments, variables, network, is_at_terminal, weaker })
    }

    /// The command, below the program.
    fn prepare(&self, front: &HelperFront<'_>, command: &[OsString]) -> Command {
        let policy = front.policy;
        let mut prepared = Command::new(&self.program);
        prepared.args(&self.arguments).args(command).env_clear().envs(environment());
        prepared.envs(&policy.variables).envs(self.variables.iter().map(|(name, value)| (name, value)));
        prepared.env(TMPDIR, &front.handed.places.scratch);
        if policy.input == InputMode::None {
            prepared.stdin(Stdio::null());
        }
        if !self.is_at_terminal {
            prepared.process_group(0);
        }
        prepared
    }

    fn enforced(&self) -> Enforcement {
        let network = match self.network {
            SeatbeltNetwork::Off => "off",
            SeatbeltNetwork::Proxy(_) => "listed hosts",
            SeatbeltNetwork::On => "on",
        };
        Enforcement {
            kind: SandboxKind::Seatbelt.name().to_owned(),
            landlock: "none".to_owned(),
            seccomp: false,
            network: network.to_owned(),
            weaker: self.weaker.clone(),
        }
    }
}

impl FrontSystem for SeatbeltSystem {
    fn kept(&self) -> Option<&GuardSnapshot> {
        // Guarded files cannot be changed, so that none has to be put back.
        None
    }

    fn run(&self, front: &HelperFront<'_>, command: &[OsString]) -> io::Result<CommandEnd> {
        let not_run = |failure| Ok(CommandEnd { failure: Some(failure), ..CommandEnd::default() });
        let trial = self.arguments.iter().map(OsString::as_os_str).chain([OsStr::new(NOTHING)]);
        if let Err(reason) = trial::said(&self.program, &trial.collect::<Vec<_>>()) {
            return not_run(StartFailure::Sandbox(format!("Seatbelt does not take the policy: {reason}")));
        }
        if let Err(failure) = can_start(command) {
            return not_run(failure);
        }
        limits::lower(&front.policy.limits)?;
        let mut prepared = self.prepare(front, command);
        let is_grouped = !self.is_at_terminal;
        let forward = |child: Pid, signal: Signal| {
            // It may be ending by itself. The terminal sends its signals to the command as well.
            let _ = if is_grouped { kill_process_group(child, signal) } else { kill_process(child, signal) };
        };
        let mut started = None;
        let start = || {
            let child = Pid::from_child(&prepared.spawn()?);
            started = Some(child);
            Ok(child)
        };
        let over = supervise(start, forward, collect_child, PATIENCE, starter_is_gone(front.policy));
        if let Some(child) = started {
            end_all(child, is_grouped, matches!(over, Ok(WaitEnd::Ended(_))));
        }
        let enforced = Some(self.enforced());
        Ok(match over? {
            WaitEnd::Ended(status) => CommandEnd {
                enforced,
                code: status.exit_status(),
                signal: status.terminating_signal(),
                ..CommandEnd::default()
            },
            WaitEnd::Stopped => CommandEnd {
                enforced,
                signal: Some(Signal::KILL.as_raw()),
                is_orphan: true,
                ..CommandEnd::default()
            },
        })
    }
}

/// Ends the remaining processes of a command. Those that it did not wait for have a moment, which process substitutions need.
fn end_all(child: Pid, is_grouped: bool, has_ended: bool) {
    if !is_grouped {
        if !has_ended {
            // Gone meanwhile is as good.
            let _ = kill_process(child, Signal::KILL);
        }
        return;
    }
    let deadline = Instant::now() + if has_ended { LINGER } else { Duration::ZERO };
    while test_kill_process_group(child).is_ok() && Instant::now() < deadline {
        thread::sleep(PAUSE);
    }
    // An empty group is as good.
    let _ = kill_process_group(child, Signal::KILL);
}

/// Whether a command names a program that can be started: `sandbox-exec` says so in words alone.
fn can_start(command: &[OsString]) -> Result<(), StartFailure> {
    let Some(program) = command.first() else {
        return Err(StartFailure::NotStarted("there is no command".to_owned()));
    };
    let named = Path::new(program);
    let candidates: Vec<PathBuf> = if named.iter().count() > 1 {
        vec![named.to_path_buf()]
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|folder| folder.join(named)).collect()
    };
    let found: Vec<_> = candidates.iter().filter_map(|path| path.metadata().ok()).collect();
    let is_program = |found: &std::fs::Metadata| found.is_file() && found.permissions().mode() & 0o111 != 0;
    if found.iter().any(is_program) {
        return Ok(());
    }
    let shown = named.display();
    Err(match found.is_empty() {
        true => StartFailure::NotFound(format!("{shown}: there is no such program")),
        false => StartFailure::NotStarted(format!("{shown}: it is no program that may be run")),
    })
}

#[cfg(test)]
mod tests;
