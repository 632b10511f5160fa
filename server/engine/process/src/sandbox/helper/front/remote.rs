//! The front process of commands that run elsewhere: in a container of an engine, or by a program of the user's.
//!
//! Rule: the launcher is the user's own and is trusted with the policy. What it starts ends with the command, and a command
//! without a sign that it was started counts as not run.

#![expect(
    clippy::disallowed_methods,
    reason = "it starts the user's launcher, with variables of the process, and it writes files of its own"
)]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use rustix::process::{
    Pid, Resource, Signal, getegid, geteuid, getpid, getrlimit, kill_process, set_child_subreaper,
};

use super::super::mounts::{self, MountKind, MountStandIns, Mounts};
use super::super::processes::{WaitEnd, collect_all, kill_all_below, supervise};
use super::{CommandEnd, EXIT_NOT_RUN, FrontSystem, HelperFront, TMPDIR, environment, starter_is_gone};
use crate::sandbox::environment::{is_for_launcher, is_portable};
use crate::sandbox::guard::GuardSnapshot;
use crate::sandbox::policy::{CommandLauncher, HelperRequest, REMOTE_REQUEST, REMOTE_VERSION, RemoteRequest};
use crate::sandbox::{Enforcement, Network, SandboxPolicy, StartFailure};
use kode_base::paths::real_path;

/// The time from the request to end until a launcher is killed, and a container with it: shorter than the server's patience with
/// this process.
const PATIENCE: Duration = Duration::from_millis(700);

/// The longest wait for an engine that kills or removes a container.
const ENGINE_LIMIT: Duration = Duration::from_secs(5);

/// The file that the container writes to before the command: the sign that it was started.
const STARTED: &str = "started";

/// The file with the variables of the settings, in the folder of the helper's files, which its user alone reads.
const VARIABLES: &str = "variables";

/// The path of the sign in the container.
const STARTED_INSIDE: &str = "/run/kode-ls-started";

/// The folder for temporary files in the container.
const TMP: &str = "/tmp";

/// The additions of a launcher to the state before the command starts.
pub(super) struct RemoteSystem<'a> {
    launcher: &'a CommandLauncher,
    /// The folder of the helper's files, out of the reach of the command.
    control: PathBuf,
    /// The held and hidden paths in the folders to write in.
    mounts: Mounts,
    /// The files that are restored afterwards, where nothing shows that the launcher holds them.
    kept: Option<GuardSnapshot>,
    /// A name that no other command has.
    id: String,
}

impl<'a> RemoteSystem<'a> {
    pub(super) fn new(
        front: &HelperFront<'_>,
        request: &HelperRequest,
        launcher: &'a CommandLauncher,
    ) -> io::Result<Self> {
        let (places, survey) = (&front.handed.places, &front.handed.survey);
        let mut mounts = mounts::of(places, survey);
        mounts.retain(|path, _| places.is_writable(path));
        let kept = match launcher {
            CommandLauncher::Engine { .. } => None,
            CommandLauncher::Program { .. } => {
                Some(GuardSnapshot::contents(survey, &places.link_targets(survey))?)
            }
        };
        let control = real_path(request.control.as_path())?;
        let id = format!("kode-ls-{}", uuid::Uuid::new_v4().simple());
        Ok(Self { launcher, control, mounts, kept, id })
    }

    /// The client of an engine, with a container of this command alone.
    fn container(
        &self,
        (program, image, options): (&[String], &str, &[String]),
        front: &HelperFront<'_>,
        command: &[OsString],
    ) -> io::Result<Command> {
        let policy = front.policy;
        let directory = std::env::current_dir()?;
        let mut container = started(program)?;
        container.args(["run", "--rm", "--pull", "never", "--name", &self.id, "--label", "kode-ls=command"]);
        container.args(["--cap-drop", "ALL", "--security-opt", "no-new-privileges"]);
        if policy.network != Network::On && !names_network(options) {
            container.args(["--network", "none"]);
        }
        // An image may name a user of its own, who may not write in the folders.
        container.arg("--user").arg(format!("{}:{}", geteuid().as_raw(), getegid().as_raw()));
        if !geteuid().is_root() {
            container.args(["--env", "HOME=/tmp"]);
            // Without a daemon of the system the numbers are those of another user, unless they are mapped.
            if program.first().is_some_and(|program| Path::new(program).ends_with("podman")) {
                container.args(["--userns", "keep-id"]);
            }
        }
        let limits = policy.limits;
        let open_files = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX).min(limits.open_files);
        container.args(["--pids-limit", &limits.processes.to_string()]);
        container.args(["--ulimit", &format!("nofile={open_files}:{open_files}")]);
        container.args(["--ulimit", &format!("fsize={0}:{0}", limits.file_size)]);
        for mount in self.container_mounts(front, &directory)? {
            container.args(["--mount", &mount]);
        }
        container.arg("--workdir").arg(&directory);
        for (name, _) in environment().filter(|(name, _)| name.to_str().is_some_and(is_portable)) {
            // The client has it under the same name.
            container.arg("--env").arg(name);
        }
        self.write_variables(policy, &mut container)?;
        container.arg("--env").arg(format!("{TMPDIR}={TMP}"));
        // Many images have a program of their own that takes the command as its arguments.
        container.args(["--entrypoint", "sh"]).args(options).arg(image);
        let sign = format!("echo started >{STARTED_INSIDE} && exec \"$@\"");
        container.args(["-c", &sign, "kode-ls"]);
        if let Some((name, arguments)) = command.split_first() {
            // The path is that of the program on this machine; the image has one of the same name.
            container.arg(Path::new(name).file_name().unwrap_or(name)).args(arguments);
        }
        Ok(container)
    }

    /// Gives a container the variables of the settings in a file: the list of processes shows arguments, and the engine's client
    /// would obey some of them itself.
    fn write_variables(&self, policy: &SandboxPolicy, container: &mut Command) -> io::Result<()> {
        let mut lines = String::new();
        for (name, value) in &policy.variables {
            match value.contains('\n') {
                true => _ = container.arg("--env").arg(format!("{name}={value}")),
                false => lines.extend([name, "=", value, "\n"]),
            }
        }
        let file = self.control.join(VARIABLES);
        fs::write(&file, lines)?;
        container.arg("--env-file").arg(file);
        Ok(())
    }

    /// The mounts of a container, as values of `--mount`.
    fn container_mounts(&self, front: &HelperFront<'_>, directory: &Path) -> io::Result<Vec<String>> {
        let stand_ins = MountStandIns::in_folder(&self.control);
        stand_ins.create(&self.mounts)?;
        let sign = self.control.join(STARTED);
        fs::write(&sign, "")?;
        let scratch = &front.handed.places.scratch;
        // An engine refuses two mounts at one place; of several here the last counts.
        let mut mounts = BTreeMap::new();
        let mut add = |target: &Path, mount: String| mounts.insert(target.to_path_buf(), mount);
        add(Path::new(STARTED_INSIDE), bind(&sign, Path::new(STARTED_INSIDE), false)?);
        for at in [Path::new(TMP), Path::new("/var/tmp"), scratch] {
            add(at, bind(scratch, at, false)?);
        }
        if !front.handed.places.is_writable(directory) {
            let directory = directory.display();
            return Err(io::Error::other(format!(
                "the container has no folder {directory}; add it to the workspace"
            )));
        }
        for folder in &front.handed.places.writable {
            add(folder, bind(folder, folder, false)?);
        }
        for (path, kind) in &self.mounts {
            let held = |stand_in: &Path| bind(stand_in, path, true);
            let mount = match kind {
                // It would follow the link.
                MountKind::PinnedLink => continue,
                MountKind::Pinned | MountKind::Writable => bind(path, path, false)?,
                MountKind::ReadOnly => held(path)?,
                MountKind::HiddenFile => held(stand_ins.file())?,
                MountKind::ClosedFile => held(stand_ins.closed_file())?,
                MountKind::HiddenFolder | MountKind::ClosedFolder if self.is_above_others(path) => {
                    format!("type=tmpfs,{}", field("target", path)?)
                }
                MountKind::HiddenFolder => held(stand_ins.folder())?,
                MountKind::ClosedFolder => held(stand_ins.closed_folder())?,
            };
            add(path, mount);
        }
        Ok(mounts.into_values().collect())
    }

    fn is_above_others(&self, folder: &Path) -> bool {
        self.mounts.keys().any(|path| path != folder && path.starts_with(folder))
    }

    /// The user's program, with the request in a variable.
    fn launch(
        &self,
        program: &[String],
        front: &HelperFront<'_>,
        command: &[OsString],
    ) -> io::Result<Command> {
        let policy = front.policy;
        let of = |is_wanted: fn(&MountKind) -> bool| {
            self.mounts.iter().filter(|(_, kind)| is_wanted(kind)).map(|(path, _)| path.clone()).collect()
        };
        let (network, hosts) = match &policy.network {
            Network::Off => ("off", Vec::new()),
            Network::On => ("on", Vec::new()),
            Network::Allowed { hosts, .. } if hosts.is_empty() => ("off", Vec::new()),
            Network::Allowed { hosts, .. } => ("hosts", hosts.iter().map(ToString::to_string).collect()),
        };
        let request = RemoteRequest {
            version: REMOTE_VERSION,
            id: &self.id,
            directory: std::env::current_dir()?,
            writable: &front.handed.places.writable,
            temporary: &front.handed.places.scratch,
            read_only: of(|kind| *kind == MountKind::ReadOnly),
            hidden: of(|kind| {
                use MountKind::{ClosedFile, ClosedFolder, HiddenFile, HiddenFolder};
                matches!(kind, HiddenFile | HiddenFolder | ClosedFile | ClosedFolder)
            }),
            network,
            hosts,
            variables: &policy.variables,
            limits: policy.limits,
        };
        let mut launched = started(program)?;
        launched.env(REMOTE_REQUEST, serde_json::to_string(&request)?).args(command);
        Ok(launched)
    }

    /// Whether the command was started, by the sign of a container; other launchers say otherwise by their exit code.
    fn was_started(&self, over: &WaitEnd) -> bool {
        match (self.launcher, over) {
            (CommandLauncher::Engine { .. }, _) => {
                fs::metadata(self.control.join(STARTED)).is_ok_and(|sign| sign.len() > 0)
            }
            (CommandLauncher::Program { .. }, WaitEnd::Ended(status)) => {
                status.exit_status() != Some(EXIT_NOT_RUN.into())
            }
            (CommandLauncher::Program { .. }, WaitEnd::Stopped) => true,
        }
    }

    /// Has an engine kill and remove the container, which may outlive its client. It may be gone, or not there yet.
    fn remove_container(&self) {
        let CommandLauncher::Engine { program, .. } = self.launcher else { return };
        // Podman gives a container that it removes 10 s to end, and a killed one none.
        for words in [&["kill", "--signal", "KILL"][..], &["rm", "--force"]] {
            let Ok(mut engine) = started(program) else { return };
            engine.args(words).arg(&self.id).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let Ok(mut running) = engine.spawn() else { return };
            let deadline = Instant::now() + ENGINE_LIMIT;
            while matches!(running.try_wait(), Ok(None)) && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(5));
            }
        }
    }

    fn enforcement(&self, policy: &SandboxPolicy) -> Enforcement {
        let mut weaker = Vec::new();
        let network = match (&policy.network, self.launcher) {
            (Network::On, _) => "on",
            (_, CommandLauncher::Engine { options, .. }) if names_network(options) => {
                weaker.push("the network is that of `sandbox.remote.options`".to_owned());
                "on"
            }
            (Network::Allowed { hosts, .. }, CommandLauncher::Program { .. }) if !hosts.is_empty() => {
                "listed hosts"
            }
            (network, _) => {
                if network.needs_proxy() {
                    weaker.push(
                        "single hosts cannot be reached out of a container; the network is off".to_owned(),
                    );
                }
                "off"
            }
        };
        if let CommandLauncher::Program { .. } = self.launcher {
            weaker.push("the launcher that `sandbox.remote` names holds the command".to_owned());
        }
        let (kind, landlock) = ("remote".to_owned(), "none".to_owned());
        Enforcement { kind, landlock, seccomp: false, network: network.to_owned(), weaker }
    }
}

impl FrontSystem for RemoteSystem<'_> {
    fn kept(&self) -> Option<&GuardSnapshot> {
        self.kept.as_ref()
    }

    fn run(&self, front: &HelperFront<'_>, command: &[OsString]) -> io::Result<CommandEnd> {
        // Orphans come here, so that they can be ended.
        set_child_subreaper(Some(getpid()))?;
        let (program, mut prepared) = match self.launcher {
            CommandLauncher::Engine { program, image, options } => {
                (program, self.container((program, image, options), front, command)?)
            }
            CommandLauncher::Program { program } => (program, self.launch(program, front, command)?),
        };
        // A group of its own: signals for this one are handed on, not shared.
        prepared.stdin(Stdio::null()).process_group(0);
        let is_asked = Cell::new(false);
        let forward = |child: Pid, signal: Signal| {
            is_asked.set(true);
            // It may be ending by itself.
            let _ = kill_process(child, signal);
        };
        let start = || {
            let child = prepared
                .spawn()
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", program.join(" "))))?;
            Ok(Pid::from_child(&child))
        };
        let over = supervise(start, forward, collect_all, PATIENCE, starter_is_gone(front.policy))?;
        let is_over = matches!(&over, WaitEnd::Ended(status) if status.exit_status().is_some());
        kill_all_below(&[]);
        if !is_over || is_asked.get() {
            self.remove_container();
            kill_all_below(&[]);
        }
        let mut end = CommandEnd { is_orphan: matches!(over, WaitEnd::Stopped), ..CommandEnd::default() };
        if !self.was_started(&over) && !is_asked.get() {
            let how = match &over {
                WaitEnd::Ended(status) => match status.exit_status() {
                    Some(code) => format!("exit code {code}"),
                    None => "a signal".to_owned(),
                },
                WaitEnd::Stopped => "no end".to_owned(),
            };
            let program = program.join(" ");
            end.failure = Some(StartFailure::Sandbox(format!(
                "{program} did not start the command ({how}); `sandbox.remote` in your settings names it"
            )));
            return Ok(end);
        }
        end.enforced = Some(self.enforcement(front.policy));
        match over {
            WaitEnd::Ended(status) => {
                (end.code, end.signal) = (status.exit_status(), status.terminating_signal());
            }
            WaitEnd::Stopped => end.signal = Some(Signal::KILL.as_raw()),
        }
        Ok(end)
    }
}

/// A launcher with its first arguments and the variables that engines find their servers by.
fn started(program: &[String]) -> io::Result<Command> {
    let (name, arguments) =
        program.split_first().ok_or_else(|| io::Error::other("`sandbox.remote` names no program"))?;
    let mut command = Command::new(name);
    let of_launchers = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_for_launcher));
    command.args(arguments).env_clear().envs(environment().chain(of_launchers));
    Ok(command)
}

/// Whether options of `run` choose a network; engines take no second one.
fn names_network(options: &[String]) -> bool {
    let names = ["--network", "--net"];
    options.iter().any(|option| names.contains(&option.split('=').next().unwrap_or_default()))
}

fn bind(source: &Path, target: &Path, is_read_only: bool) -> io::Result<String> {
    let suffix = if is_read_only { ",readonly" } else { "" };
    Ok(format!("type=bind,{},{}{suffix}", field("source", source)?, field("target", target)?))
}

/// A field of a line of comma-separated values, which engines read.
fn field(name: &str, path: &Path) -> io::Result<String> {
    let path = path.to_str().ok_or_else(|| {
        io::Error::other(format!("{} is no UTF-8, and engines take no other paths", path.display()))
    })?;
    let value = format!("{name}={path}");
    Ok(match value.contains([',', '"', '\n']) {
        true => format!("\"{}\"", value.replace('"', "\"\"")),
        false => value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_of_any_name_is_one_line_of_values() {
        let mount = |path: &str| bind(Path::new(path), Path::new(path), true).unwrap();
        assert_eq!(mount("/work"), "type=bind,source=/work,target=/work,readonly");
        assert_eq!(mount("/a,b \"c\""), r#"type=bind,"source=/a,b ""c""","target=/a,b ""c""",readonly"#);
    }
}
