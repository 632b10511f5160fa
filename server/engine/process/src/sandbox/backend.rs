//! The sandbox of systems whose kernel holds commands: Linux and macOS.
//!
//! Rule: a helper process, this same program started again, sets the sandbox up and reports what it did. Guarded files are
//! watched from the start of a command to its end.

#![expect(
    clippy::disallowed_methods,
    reason = "it starts programs that were found outside of writable folders, and it writes files of its own, or those that a call was allowed"
)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, PipeReader, PipeWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::process::Command;
use tokio::task::JoinHandle;

use super::environment::{is_for_launcher, keeps};
use super::guard::{FileGuard, GuardLease, LeaseKind, Quarantine};
use super::helper::places::PolicyPaths;
use super::hidden::HiddenFilter;
use super::known::{KnownDisk, PlaceCache};
use super::policy::{
    CommandLauncher, GuardReport, HelperReport, HelperRequest, InputMode, Network, ProxyAddress,
    QuarantinedFile, SandboxKind, SandboxPolicy, StartFailure,
};
use super::proxy::{ProxyRules, SandboxProxy};
use super::{HelperProgram, PreparedCommand, PreparedService, REPORT, SandboxOptions, ServiceAccess};
use crate::outcome::{CapturedOutput, Exit};
use crate::pipes::Sender;
use crate::programs;
use kode_base::paths::{AbsPath, real_path};
use kode_base::scratch::Scratch;
use kode_base::{blocking, private, task};
use kode_net::client::SystemLookup;

/// The file that lists the guarded files for the helper.
const GUARD: &str = "guard.json";
/// The folder for temporary files of commands.
const SCRATCH: &str = "tmp";
/// The socket of the proxy.
const PROXY: &str = "proxy";

/// The sandbox of a session, with a folder for temporary files that lives as long.
#[derive(Debug)]
pub struct Sandbox {
    helper: HelperProgram,
    policy: SandboxPolicy,
    hides: Option<HiddenFilter>,
    scripts: Vec<AbsPath>,
    /// The folder of files that are set aside.
    store: Quarantine,
    /// The watches of its folders, which know them from one command to the next.
    guards: Mutex<Vec<Arc<FileGuard>>>,
    places: PlaceCache,
    /// Whether its commands check out commits for the server.
    is_for_checkouts: bool,
    remote: Option<RemoteCommands>,
    proxy: Mutex<Option<SandboxProxy>>,
    folder: Scratch,
    next: AtomicU64,
}

/// How commands run elsewhere. Services, and git as the server runs it, stay on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RemoteCommands {
    launcher: CommandLauncher,
    /// Folders that they see and do not write in. Commands on this machine see them anyway.
    seen: Vec<AbsPath>,
}

/// A command in the sandbox that has been prepared. Dropping it ends the command.
#[derive(Debug)]
pub struct SandboxRun(RequestProgress);

#[derive(Debug)]
enum RequestProgress {
    /// The helper is started, and waits for its request.
    Requested(JoinHandle<io::Result<GuardedRun>>),
    Ready(GuardedRun),
}

/// A command whose guarded files are watched.
#[derive(Debug)]
struct GuardedRun {
    control: ControlFolder,
    /// The watch over guarded files until it has ended.
    watched: GuardLease,
    /// Nothing where it is the command's standard input.
    _alive: Option<PipeWriter>,
}

/// The folder of one command for the helper's files, until it is dropped.
#[derive(Debug)]
struct ControlFolder(PathBuf);

impl Sandbox {
    /// Makes the sandbox of a session.
    ///
    /// # Errors
    /// When there is no place for its temporary files.
    pub fn new(options: SandboxOptions) -> io::Result<Self> {
        let (folder, scratch) = temporary()?;
        let SandboxOptions {
            helper,
            kind,
            writable,
            mut read_only,
            mut scripts,
            hidden,
            hides,
            home,
            state,
            network,
            limits,
            remote,
        } = options;
        // They run outside of the sandbox.
        let (there, awaited) = helper.files_in(&writable);
        if let (SandboxKind::Landlock, Some(program)) = (&kind, there.first()) {
            return Err(io::Error::other(format!(
                "{program} lies in a folder that commands write in, and landlock alone cannot hold it there; install bubblewrap, or use kode-ls from another folder"
            )));
        }
        read_only.extend(there);
        scripts.extend(awaited);
        let store = Quarantine::of(state.as_path());
        programs::exclude(&writable);
        let mut all_hidden = kode_base::secret_places::places(home.as_ref(), &state);
        all_hidden.extend(hidden);
        let policy = SandboxPolicy {
            kind,
            writable,
            scratch,
            read_only,
            hidden: all_hidden,
            shown: kode_base::secret_places::shown(home.as_ref()),
            home,
            network,
            limits,
            input: InputMode::None,
            variables: BTreeMap::new(),
            lasting: false,
        };
        let (guards, proxy, next) = Default::default();
        let is_for_checkouts = false;
        let remote = remote.map(|launcher| RemoteCommands { launcher, seen: Vec::new() });
        Ok(Self {
            helper,
            policy,
            hides,
            scripts,
            store,
            guards,
            places: PlaceCache::default(),
            is_for_checkouts,
            remote,
            proxy,
            folder,
            next,
        })
    }

    /// Whether it holds commands as another one does, whatever the folders for temporary files are.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let scratch = self.policy.scratch.clone();
        self.helper == other.helper
            && self.hides == other.hides
            && self.scripts == other.scripts
            && self.remote() == other.remote()
            && self.policy == SandboxPolicy { scratch, ..other.policy.clone() }
    }

    /// The limits of its commands.
    #[must_use]
    pub fn policy(&self) -> &SandboxPolicy {
        &self.policy
    }

    /// The program that starts its commands elsewhere; nothing where they run on this machine.
    #[must_use]
    pub fn remote(&self) -> Option<&CommandLauncher> {
        self.remote.as_ref().map(|remote| &remote.launcher)
    }

    /// The folder for temporary files, which commands find under the same path.
    #[must_use]
    pub fn scratch(&self) -> &AbsPath {
        &self.policy.scratch
    }

    /// A folder of one command for the helper's files.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn control(&self) -> io::Result<AbsPath> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let control = real_path(self.folder.path())?.join(format!("command-{number}"));
        private::create_folder(&control)?;
        AbsPath::new(control).map_err(io::Error::other)
    }

    /// The proxy that its commands reach listed hosts through; nothing where they reach none. It is started when this is
    /// asked for the first time, in the runtime that is then at hand, and ends with the sandbox.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn proxy(&self) -> io::Result<Option<ProxyAddress>> {
        let Network::Allowed { hosts, denied, local } = &self.policy.network else { return Ok(None) };
        // Without a network of the command's own there is nowhere to put the way to it.
        if hosts.is_empty() || self.policy.kind == SandboxKind::Landlock {
            return Ok(None);
        }
        let mut proxy = self.proxy.lock();
        if let Some(proxy) = &*proxy {
            return Ok(Some(proxy.address().clone()));
        }
        let rules = ProxyRules {
            allowed: hosts.clone(),
            denied: denied.clone(),
            local: *local,
            lookup: Arc::new(SystemLookup),
        };
        let started = match self.policy.kind {
            // Its commands have no namespace of the network to themselves that a way to a socket could lie in.
            SandboxKind::Seatbelt => SandboxProxy::on_loopback(rules),
            SandboxKind::Bubblewrap { .. } | SandboxKind::Landlock => {
                let socket = real_path(self.folder.path())?.join(PROXY);
                AbsPath::new(socket)
                    .map_err(io::Error::other)
                    .and_then(|socket| SandboxProxy::on_socket(socket, rules))
            }
        };
        let started = started.map_err(|error| {
            io::Error::new(error.kind(), format!("the proxy for the network could not be started: {error}"))
        })?;
        Ok(Some(proxy.insert(started).address().clone()))
    }

    /// The same sandbox for commands that may write in these folders and in no others, with a folder for temporary files of its
    /// own. They see the folders `readable` wherever they lie.
    ///
    /// # Errors
    /// When there is no place for its temporary files.
    pub fn writing_in(&self, mut writable: Vec<AbsPath>, readable: &[AbsPath]) -> io::Result<Self> {
        let (folder, scratch) = temporary()?;
        let mut read_only = self.policy.read_only.clone();
        match self.policy.kind {
            SandboxKind::Bubblewrap { .. } | SandboxKind::Seatbelt => {
                // Visible files are put there like writable ones, and then held.
                writable.extend(readable.iter().cloned());
                read_only.extend(readable.iter().cloned());
            }
            SandboxKind::Landlock => {}
        }
        let policy = SandboxPolicy { writable, read_only, scratch, ..self.policy.clone() };
        let (helper, proxy, next) = (self.helper.clone(), Mutex::default(), AtomicU64::new(0));
        let (hides, scripts) = (self.hides.clone(), self.scripts.clone());
        let (store, guards, is_for_checkouts) = (self.store.clone(), Mutex::default(), false);
        let mut remote = self.remote.clone();
        if let Some(RemoteCommands { seen, .. }) = &mut remote {
            seen.extend(self.policy.writable.iter().cloned());
            seen.retain(|folder| !policy.writable.contains(folder));
        }
        Ok(Self {
            helper,
            policy,
            hides,
            scripts,
            store,
            guards,
            places: PlaceCache::default(),
            is_for_checkouts,
            remote,
            proxy,
            folder,
            next,
        })
    }

    /// The same sandbox, whose commands have this network.
    #[must_use]
    pub fn reaching(mut self, network: Network) -> Self {
        self.policy.network = network;
        self
    }

    /// The same sandbox, whose commands get these variables.
    #[must_use]
    pub fn giving<'v>(mut self, variables: impl Iterator<Item = (&'v str, &'v str)>) -> Self {
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        self.policy.variables = variables.collect();
        self
    }

    /// The same sandbox for git as the server runs it, to check out commits of the repository: files that steer programs stay when
    /// a commit holds them.
    #[must_use]
    pub(crate) fn for_checkouts(self) -> Self {
        Self { is_for_checkouts: true, ..self }
    }

    /// Has a command under this policy watched, and makes the request for it. `is_attended` says whether the user waits for
    /// its end. The proxy it may need is started in the runtime at hand. Blocks on the disk.
    ///
    /// # Errors
    /// Why the guarded files could not all be found, or the proxy could not be started; the command must not run.
    pub fn request(
        &self,
        policy: SandboxPolicy,
        is_attended: bool,
    ) -> io::Result<(HelperRequest, GuardLease)> {
        let kind = match is_attended {
            _ if policy.lasting || self.is_for_checkouts => LeaseKind::Exempt,
            true => LeaseKind::Attended,
            false => LeaseKind::Background,
        };
        let known = self.places.current();
        let disk = KnownDisk { known: known.as_deref(), ..KnownDisk::default() };
        let places = PolicyPaths::on(&policy, &disk)?;
        let mut watched = self.guard(&places).begin(kind)?;
        if self.is_for_checkouts {
            watched.release_worktrees();
        }
        let proxy = if policy.network == Network::On { None } else { self.proxy()? };
        let control = self.control()?;
        let guard = control.join(GUARD);
        watched.hand_over(places, guard.as_path())?;
        // The helper gets them resolved, with the list of guarded files.
        let policy = SandboxPolicy { hidden: Vec::new(), shown: Vec::new(), ..policy };
        let is_checkout = self.is_for_checkouts;
        let (guard, launcher) = (Some(guard), None);
        Ok((HelperRequest { policy, control, proxy, guard, launcher, is_checkout }, watched))
    }

    /// Returns the walk through the workspace, to be done ahead of the first command. It blocks on the disk and does not keep the
    /// sandbox alive.
    pub fn walk_ahead(self: &Arc<Self>) -> impl FnOnce() + Send + 'static {
        let sandbox = Arc::downgrade(self);
        move || {
            let guard = sandbox.upgrade().map(|sandbox| {
                let places = PolicyPaths::of(&sandbox.policy)?;
                Ok(sandbox.guard(&places))
            });
            if let Some(Err(error)) = guard.map(|guard: io::Result<_>| guard?.survey()) {
                tracing::info!(%error, "Guarded files could not be searched for");
            }
            if let Some(sandbox) = sandbox.upgrade() {
                sandbox.renew_places();
            }
        }
    }

    /// Follows the secret places ahead of the next command. Blocks on the disk.
    fn renew_places(&self) {
        let SandboxPolicy { hidden, shown, home, .. } = &self.policy;
        self.places.renew(hidden.iter().chain(shown).chain(home));
    }

    /// Files of commands that steer other programs, without the user's decision yet.
    #[must_use]
    pub fn undecided(&self) -> Vec<QuarantinedFile> {
        let guards = self.guards.lock();
        guards.iter().flat_map(|guard| guard.undecided()).collect()
    }

    fn guard(&self, places: &PolicyPaths) -> Arc<FileGuard> {
        let mut ground = places.ground();
        ground.roots.sort();
        ground.roots.dedup();
        ground.hides.clone_from(&self.hides);
        ground.scripts = self.scripts.iter().map(|script| script.as_path().to_path_buf()).collect();
        let guard = FileGuard::over(ground, self.store.clone());
        let mut known = self.guards.lock();
        if !known.iter().any(|known| Arc::ptr_eq(known, &guard)) {
            known.push(Arc::clone(&guard));
        }
        guard
    }

    /// As [`Sandbox::request`], off the async threads.
    async fn requested(
        self: &Arc<Self>,
        policy: SandboxPolicy,
        is_attended: bool,
    ) -> io::Result<(HelperRequest, GuardLease)> {
        let sandbox = Arc::clone(self);
        blocking(move || sandbox.request(policy, is_attended)).await
    }

    /// Prepares a command to run as it would have run without, with `variables` and those of its own that commands in a
    /// sandbox keep. Its streams are not carried over. `is_attended` says whether the user waits for its end. The
    /// request is made while the helper starts; that it could not be made is an error of [`SandboxRun::conclude`].
    ///
    /// # Errors
    /// When there is no pipe to the helper.
    pub fn prepare(
        self: &Arc<Self>,
        command: &Command,
        variables: BTreeMap<String, String>,
        is_attended: bool,
    ) -> io::Result<PreparedCommand> {
        let mut policy = SandboxPolicy { variables: self.with(variables), ..self.policy.clone() };
        let remote = self.remote.as_ref().filter(|_| !self.is_for_checkouts);
        if let Some(RemoteCommands { seen, .. }) = remote {
            // Visible files are put there like writable ones, and then held.
            policy.writable.extend(seen.iter().cloned());
            policy.read_only.extend(seen.iter().cloned());
        }
        let (reader, mut writer) = io::pipe()?;
        let (sandbox, launcher) = (Arc::clone(self), remote.map(|remote| remote.launcher.clone()));
        // While the helper starts. Without a request it runs nothing.
        let requested = task::spawn_blocking(move || {
            let (mut request, watched) = sandbox.request(policy, is_attended)?;
            let control = ControlFolder(request.control.as_path().to_path_buf());
            request.launcher = launcher;
            match request.send(&mut writer) {
                // The helper has ended. Its report says why, or a missing report does.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                sent => sent?,
            }
            // For the next command, beside this one.
            sandbox.renew_places();
            Ok(GuardedRun { control, watched, _alive: Some(writer) })
        });
        let mut command = self.helper_for(command);
        if remote.is_some() {
            let wanted = |(name, _): &(OsString, OsString)| name.to_str().is_some_and(is_for_launcher);
            command.envs(std::env::vars_os().filter(wanted));
        }
        let pending = SandboxRun(RequestProgress::Requested(requested));
        Ok(PreparedCommand { command, input: reader.into(), pending })
    }

    /// Prepares a program that runs on beside the user. Where guarded files are not held while it runs but put back afterwards,
    /// it cannot write in the workspace, because restored files might be the user's own work.
    ///
    /// # Errors
    /// As [`Sandbox::prepare`].
    pub async fn prepare_lasting(
        self: &Arc<Self>,
        command: &Command,
        needs: ServiceAccess,
    ) -> io::Result<PreparedService> {
        let ServiceAccess { variables, network, mut writable, readable } = needs;
        let mut read_only = self.policy.read_only.clone();
        let variables = self.with(variables);
        match self.policy.kind {
            SandboxKind::Bubblewrap { .. } | SandboxKind::Seatbelt => {
                writable.extend(self.policy.writable.iter().cloned());
                // Visible files are put there like writable ones, and then held.
                writable.extend(readable.iter().cloned());
                read_only.extend(readable);
            }
            SandboxKind::Landlock => {}
        }
        let network = if network { Network::On } else { self.policy.network.clone() };
        let policy = SandboxPolicy {
            writable,
            read_only,
            network,
            variables,
            input: InputMode::Rest,
            lasting: true,
            ..self.policy.clone()
        };
        let (request, watched) = self.requested(policy, false).await?;
        let (reader, mut writer) = io::pipe()?;
        request.send(&mut writer)?;
        Ok(PreparedService {
            prepared: self.prepared(command, (request.control, watched), reader),
            input: Sender::from_owned_fd(writer.into())?,
        })
    }

    /// Prepares a command that is given something to read, and variables besides those that commands keep.
    ///
    /// # Errors
    /// As [`Sandbox::prepare`].
    pub async fn prepare_fed(
        self: &Arc<Self>,
        command: &Command,
        variables: BTreeMap<String, String>,
    ) -> io::Result<PreparedService> {
        let variables = self.with(variables);
        let policy = SandboxPolicy { variables, input: InputMode::Rest, ..self.policy.clone() };
        let (request, watched) = self.requested(policy, true).await?;
        let (reader, mut writer) = io::pipe()?;
        request.send(&mut writer)?;
        Ok(PreparedService {
            prepared: self.prepared(command, (request.control, watched), reader),
            input: Sender::from_owned_fd(writer.into())?,
        })
    }

    /// The variables of the settings, and these, which are stronger.
    fn with(&self, variables: BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut all = self.policy.variables.clone();
        all.extend(variables);
        all
    }

    fn prepared(
        &self,
        command: &Command,
        (control, watched): (AbsPath, GuardLease),
        input: PipeReader,
    ) -> PreparedCommand {
        let control = ControlFolder(control.into());
        let pending = SandboxRun(RequestProgress::Ready(GuardedRun { control, watched, _alive: None }));
        PreparedCommand { command: self.helper_for(command), input: input.into(), pending }
    }

    /// The helper, with a command in its arguments.
    fn helper_for(&self, command: &Command) -> Command {
        let command = command.as_std();
        let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let kept = set.filter(|(name, _)| name.to_str().is_some_and(keeps));
        let mut prepared = Command::new(self.helper.file());
        prepared.args(self.helper.arguments()).arg("--").arg(command.get_program()).args(command.get_args());
        prepared.env_clear().envs(kept);
        if let Some(cwd) = command.get_current_dir() {
            prepared.current_dir(cwd);
        }
        prepared
    }
}

/// A folder for a sandbox's own files, and the one in it for temporary files of commands.
fn temporary() -> io::Result<(Scratch, AbsPath)> {
    let folder = Scratch::new()?;
    let scratch = real_path(folder.path())?.join(SCRATCH);
    private::create_folder(&scratch)?;
    Ok((folder, AbsPath::new(scratch).map_err(io::Error::other)?))
}

impl SandboxRun {
    /// How the command ended, and what became of guarded files. `exit` is how the helper ended.
    ///
    /// # Errors
    /// Why the command was not run. Without a report of a helper that ended by itself nothing may be assumed.
    pub async fn conclude(
        self,
        exit: Exit,
        output: &CapturedOutput,
    ) -> Result<(Exit, GuardReport), StartFailure> {
        let run = match self.0 {
            RequestProgress::Ready(run) => Ok(run),
            RequestProgress::Requested(requested) => {
                requested.await.unwrap_or_else(|error| Err(io::Error::other(error)))
            }
        };
        let GuardedRun { control, watched, _alive } = match run {
            Ok(run) => run,
            Err(_) if matches!(exit, Exit::TimedOut | Exit::Cancelled) => {
                return Ok((exit, GuardReport::default()));
            }
            Err(error) => return Err(StartFailure::Sandbox(error.to_string())),
        };
        let (report, left) = blocking(move || {
            let report = fs::read(control.0.join(REPORT)).and_then(|json| {
                let report: HelperReport = serde_json::from_slice(&json)?;
                Ok(report)
            });
            let restored = report.as_ref().map(|report| report.guarded.restored.clone());
            let left = watched.end(&restored.unwrap_or_default());
            (report, left)
        })
        .await;
        let ended = match (exit, report) {
            (Exit::TimedOut | Exit::Cancelled, report) => Ok((exit, report.unwrap_or_default().guarded)),
            (Exit::Code(_) | Exit::Signal(_), Err(error)) => {
                Err(StartFailure::Sandbox(format!("there is no report of it: {error}")))
            }
            (Exit::Code(_) | Exit::Signal(_), Ok(report)) => match report {
                HelperReport { failure: Some(StartFailure::Sandbox(reason)), .. } => {
                    let said = output.text.trim();
                    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
                    Err(StartFailure::Sandbox(format!("{reason}{said}")))
                }
                HelperReport { failure: Some(failure), .. } => Err(failure),
                HelperReport { enforced: None, .. } => {
                    Err(StartFailure::Sandbox("nothing was enforced".to_owned()))
                }
                HelperReport { signal: Some(signal), guarded, .. } => Ok((Exit::Signal(signal), guarded)),
                HelperReport { signal: None, guarded, .. } => Ok((exit, guarded)),
            },
        };
        ended.map(|(exit, guarded)| (exit, guarded.and(left)))
    }
}

impl Drop for ControlFolder {
    /// Removes it; in a runtime beside what follows the command.
    fn drop(&mut self) {
        let control = std::mem::take(&mut self.0);
        match tokio::runtime::Handle::try_current() {
            Ok(_) => drop(task::spawn_blocking(move || remove(&control))),
            Err(_) => remove(&control),
        }
    }
}

fn remove(folder: &Path) {
    // The helper may be writing its report yet; the folder goes with the session at the latest.
    if let Err(error) = fs::remove_dir_all(folder) {
        tracing::debug!(%error, folder = %folder.display(), "the folder of a command is left until the session ends");
    }
}
