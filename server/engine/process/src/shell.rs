//! Processes: the only place that spawns one.
//!
//! Rule: a command runs in a process group of its own, or in a terminal of the client where the user wants that, with no standard input, its output is bounded, and when it
//! ends, is cancelled or takes too long the whole group is gone before the result is given. It runs in the folder and in
//! the sandbox it was judged for; from one to the next the folder is carried over, the environment is not.

#![expect(
    clippy::disallowed_methods,
    reason = "it starts programs that were found outside of writable folders, and it reads variables of the process for its callers"
)]

mod console;
pub mod error_output;
mod foreground;
pub mod helper;
mod output;
pub mod piped;
pub mod powershell;
mod process;
pub mod served;
mod spill;
mod tasks;
pub mod terminal;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tempfile::TempPath;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use crate::interpreter;
use crate::outcome::{CapturedOutput, Exit};
use crate::programs;
use crate::sandbox::{GuardReport, PreparedCommand, Sandbox, SandboxRun, StartFailure, inherits};
use foreground::ForegroundSpec;
use kode_base::blocking;
use kode_base::command_shell::CommandShell;
use kode_base::ids::CallId;
use kode_base::paths::{self, AbsPath};
use kode_base::secret::Secret;
use output::{Capture, OutputBudget};
use process::{RunObserver, TimeLimit};
use terminal::{ClientTerminals, TerminalCommand};

pub use foreground::{ForegroundEnd, MoveError};
pub use output::{MAX_OUTPUT_BUDGET, OUTPUT_BUDGET};
pub use spill::{MAX_PAGE_BYTES, OutputPage, Outputs, page_of};
pub use tasks::{
    MAX_TASKS, MAX_TASKS_OVERALL, ShellTask, StartError, TaskEnd, TaskReport, TaskState, TaskView, Tasks,
};

/// The byte order mark of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The name of its shell for a command.
const SHELL_NAME: &str = "bash";
/// Variables that keep programs from waiting for someone at a terminal.
const UNATTENDED: [(&str, &str); 3] = [("GIT_TERMINAL_PROMPT", "0"), ("PAGER", "cat"), ("TERM", "dumb")];

/// Where a session's commands run.
#[derive(Debug)]
pub struct Shell {
    home: AbsPath,
    directory: Mutex<AbsPath>,
    secrets: Secrets,
    variables: Variables,
    /// Variables that hooks set for the commands after them, the same for all shells of a session.
    exported: SharedVariables,
    tasks: Arc<Tasks>,
    /// The terminals of the client, for commands outside of the sandbox.
    terminals: Option<Arc<dyn ClientTerminals>>,
}

/// Keys that no command is to see in its environment. Clones are the same ones; there are only ever more.
#[derive(Clone, Debug, Default)]
pub struct Secrets(Arc<Mutex<Vec<Secret>>>);

/// The variables that the settings give to commands. Clones are the same ones.
type Variables = Arc<Mutex<Vec<(String, String)>>>;

/// Variables that several shells share.
type SharedVariables = Arc<Mutex<BTreeMap<String, String>>>;

impl Secrets {
    /// These.
    #[must_use]
    pub fn new(secrets: Vec<Secret>) -> Self {
        Self(Arc::new(Mutex::new(secrets)))
    }

    /// Adds those that are not known yet.
    pub fn add(&self, secrets: Vec<Secret>) {
        let mut known = self.0.lock();
        for secret in secrets {
            if !known.contains(&secret) {
                known.push(secret);
            }
        }
    }

    /// All that are known now.
    pub fn all(&self) -> Vec<Secret> {
        self.0.lock().clone()
    }
}

/// A command to run.
#[derive(Clone, Debug)]
pub struct CommandSpec {
    /// The command line, in the shell's language.
    pub command: String,
    /// The shell that runs it.
    pub shell: CommandShell,
    /// The folder it runs in, wherever the shell has moved since this was settled.
    pub directory: AbsPath,
    /// How long it may take, unless it runs in the background.
    pub timeout: Duration,
    /// The sandbox it runs in; without one it runs with the user's rights.
    pub sandbox: Option<Arc<Sandbox>>,
    /// The call under which its whole output is kept; without one it is not.
    pub call: Option<CallId>,
}

/// How a command is carried out.
struct Execution<'a> {
    command: &'a str,
    shell: CommandShell,
    directory: AbsPath,
    /// The file its shell writes its last folder to.
    report: Option<&'a Path>,
    sandbox: Option<Arc<Sandbox>>,
    limit: Option<TimeLimit>,
    /// The call that it is of, if it is of one.
    call: Option<&'a CallId>,
    /// Whether its output is kept for the call here. If not, the observer keeps it.
    keeps_output: bool,
}

/// The observer of a foreground command.
struct OutputListener<F>(F);

impl<F: FnMut(&str) + Send> RunObserver for OutputListener<F> {
    fn started(&mut self) {}

    fn output(&mut self, text: &str) {
        (self.0)(text);
    }
}

/// The outcome of a command that could be started.
#[derive(Clone, Debug)]
pub struct CommandOutcome {
    /// How it ended.
    pub exit: Exit,
    /// Its output.
    pub output: CapturedOutput,
    /// How long it took.
    pub duration: Duration,
    /// Where the next command will start.
    pub directory: AbsPath,
    /// The outcome of guarded files; nothing without a sandbox.
    pub guarded: GuardReport,
}

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// There is nothing to run it with.
    #[error("{}", interpreter::missing(*.0))]
    NoShell(CommandShell),
    /// The folder the commands had moved to was removed meanwhile.
    #[error("the folder `{gone}` that commands ran in is gone; the next command starts in `{home}`")]
    NoDirectory {
        /// The folder that is gone.
        gone: AbsPath,
        /// Where the next command starts.
        home: AbsPath,
    },
    /// There is to be a sandbox, and it could not be made.
    #[error("the sandbox could not be set up: {reason}")]
    Sandbox {
        /// Why.
        reason: String,
    },
    /// The terminal of the client failed; the command may have begun.
    #[error("the terminal of the client failed: {reason}")]
    Terminal {
        /// Why.
        reason: String,
    },
    /// A fault in this program.
    #[error("a fault in kode-ls itself ended it")]
    Fault,
    /// The system refused.
    #[error("the shell could not be started in `{directory}`: {source}")]
    Start {
        /// Where it should have started.
        directory: AbsPath,
        /// The error of the system.
        source: io::Error,
    },
}

impl Shell {
    /// A shell whose commands start in `cwd`.
    #[must_use]
    pub fn new(cwd: AbsPath) -> Self {
        programs::exclude([&cwd]);
        Self {
            directory: Mutex::new(cwd.clone()),
            home: cwd,
            secrets: Secrets::default(),
            variables: Arc::default(),
            exported: SharedVariables::default(),
            tasks: Arc::default(),
            terminals: None,
        }
    }

    /// The same shell, whose commands outside of the sandbox run in these terminals where the user's settings say so.
    #[must_use]
    pub fn with_terminals(self, terminals: Option<Arc<dyn ClientTerminals>>) -> Self {
        Self { terminals, ..self }
    }

    /// The same shell, whose commands get no variable that holds one of these.
    #[must_use]
    pub fn withholding(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// The same shell, whose background commands are these.
    #[must_use]
    pub fn with_tasks(self, tasks: Arc<Tasks>) -> Self {
        Self { tasks, ..self }
    }

    /// Gives all later commands of the session these variables.
    pub fn export(&self, variables: impl IntoIterator<Item = (String, String)>) {
        self.exported.lock().extend(variables);
    }

    fn exported(&self) -> BTreeMap<String, String> {
        self.exported.lock().clone()
    }

    /// Its background commands.
    #[must_use]
    pub fn tasks(&self) -> &Arc<Tasks> {
        &self.tasks
    }

    /// Another shell that withholds the same and has the same background commands, and whose commands start in `cwd`.
    #[must_use]
    pub fn elsewhere(&self, cwd: AbsPath) -> Self {
        let shell = Self::new(cwd).withholding(self.secrets.clone()).with_tasks(Arc::clone(&self.tasks));
        Self {
            variables: Arc::clone(&self.variables),
            exported: Arc::clone(&self.exported),
            terminals: self.terminals.clone(),
            ..shell
        }
    }

    /// Gives commands these variables from now on, instead of what they would inherit under those names.
    pub fn set_variables<'v>(&self, variables: impl Iterator<Item = (&'v str, &'v str)>) {
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        *self.variables.lock() = variables.collect();
    }

    /// The keys that it withholds from commands.
    #[must_use]
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// The value of a variable that commands get.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<String> {
        let variables = self.variables.lock();
        let set = variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        set.or_else(|| std::env::var(name).ok())
    }

    /// How many characters of output are kept.
    fn budget(&self) -> OutputBudget {
        OutputBudget::of(self.variable(output::BUDGET_VARIABLE).as_deref())
    }

    /// Where the next command will start.
    #[must_use]
    pub fn directory(&self) -> AbsPath {
        self.current().clone()
    }

    /// Has the next command start where the first one did, and says where that is.
    pub fn return_home(&self) -> AbsPath {
        self.current().clone_from(&self.home);
        self.home.clone()
    }

    /// Runs one command to its end. `on_output` gets its output as it comes, undivided characters, uncut.
    /// Dropping the future kills the command.
    ///
    /// # Errors
    /// [`ShellError`] when the command could not be started; how it ended is the outcome, not an error.
    pub async fn run(
        &self,
        spec: CommandSpec,
        on_output: impl FnMut(&str) + Send,
        cancel: &CancellationToken,
    ) -> Result<CommandOutcome, ShellError> {
        let directory = self.present(&spec.directory)?;
        let sandbox = spec.sandbox;
        let report = directory_report(sandbox.as_deref());
        let execution = Execution {
            command: &spec.command,
            shell: spec.shell,
            directory,
            report: report.as_deref(),
            sandbox,
            limit: Some(TimeLimit::fixed(spec.timeout)),
            call: spec.call.as_ref(),
            keeps_output: true,
        };
        let outcome = self.execute(execution, &mut OutputListener(on_output), cancel).await?;
        Ok(self.followed(outcome, report.as_deref()).await)
    }

    /// Runs one command to its end as [`Shell::run`] does, or until it is moved to the background with
    /// [`Tasks::move_to_background`]: then it runs on without a limit in time, and does not move the folder. A command
    /// whose future is dropped is ended.
    ///
    /// # Errors
    /// [`ShellError`] when the command could not be started; how it ended is the outcome, not an error.
    pub async fn run_movable(
        self: &Arc<Self>,
        spec: CommandSpec,
        title: String,
        on_output: impl FnMut(&str) + Send + 'static,
        cancel: &CancellationToken,
    ) -> Result<ForegroundEnd, ShellError> {
        let directory = self.present(&spec.directory)?;
        let CommandSpec { command, shell: language, timeout, sandbox, call, .. } = spec;
        // The file has to be there as long as the command runs, wherever that is.
        let report = directory_report(sandbox.as_deref()).map(Arc::new);
        let named = ForegroundSpec {
            call: call.clone().unwrap_or_else(CallId::generate),
            title,
            budget: self.budget(),
        };
        let (shell, held) = (Arc::clone(self), report.clone());
        let execute = move |mut watch, stop: CancellationToken, lifted| async move {
            let execution = Execution {
                command: &command,
                shell: language,
                directory,
                report: held.as_ref().map(|report| &***report),
                sandbox,
                limit: Some(TimeLimit { after: timeout, lifted }),
                call: call.as_ref(),
                keeps_output: false,
            };
            shell.execute(execution, &mut watch, &stop).await
        };
        match self.tasks.run_in_foreground(named, on_output, cancel, execute).await? {
            ForegroundEnd::Ended(outcome) => {
                let report = report.as_ref().map(|report| &***report);
                Ok(ForegroundEnd::Ended(Box::new(self.followed(*outcome, report).await)))
            }
            moved @ ForegroundEnd::Moved(_) => Ok(moved),
        }
    }

    /// The outcome of a command after the shell has gone where the command went.
    async fn followed(&self, outcome: CommandOutcome, report: Option<&Path>) -> CommandOutcome {
        if let (Exit::Code(_), Some(report)) = (outcome.exit, report) {
            self.follow(report).await;
        }
        CommandOutcome { directory: self.directory(), ..outcome }
    }

    /// Starts a command in the background and gives it as soon as it runs. It ends by itself, when it is reported to, or
    /// with the session.
    ///
    /// # Errors
    /// [`StartError`]; nothing runs then.
    pub async fn start(
        self: &Arc<Self>,
        spec: CommandSpec,
        title: String,
    ) -> Result<Arc<ShellTask>, StartError> {
        let directory = self.present(&spec.directory)?;
        let sandbox = spec.sandbox.clone();
        let shell = Arc::clone(self);
        let call = spec.call.clone().unwrap_or_else(CallId::generate);
        self.tasks
            .start((call, self.budget()), title, move |mut watch, cancel| async move {
                let execution = Execution {
                    command: &spec.command,
                    shell: spec.shell,
                    directory,
                    report: None,
                    sandbox,
                    limit: None,
                    call: spec.call.as_ref(),
                    // The observer keeps it from the beginning.
                    keeps_output: false,
                };
                shell.execute(execution, &mut watch, &cancel).await
            })
            .await
    }

    /// Has other work done in the background, to be checked and ended as commands are. It says how it ended and what it has
    /// to say, and ends soon when it is reported to.
    ///
    /// # Errors
    /// [`StartError`]; nothing is done then.
    pub async fn start_work<R>(
        &self,
        call: CallId,
        title: String,
        work: impl FnOnce(CancellationToken) -> R + Send + 'static,
    ) -> Result<Arc<ShellTask>, StartError>
    where
        R: Future<Output = (Exit, String)> + Send + 'static,
    {
        let directory = self.directory();
        self.tasks
            .start((call, self.budget()), title, move |mut watch, cancel| async move {
                watch.started();
                let (exit, text) = work(cancel).await;
                watch.output(&text);
                let (output, guarded) = Default::default();
                Ok(CommandOutcome { exit, output, duration: Duration::ZERO, directory, guarded })
            })
            .await
    }

    /// The folder a command is to run in, if it is still there.
    fn present(&self, directory: &AbsPath) -> Result<AbsPath, ShellError> {
        if directory.as_path().is_dir() {
            return Ok(directory.clone());
        }
        Err(ShellError::NoDirectory { gone: directory.clone(), home: self.return_home() })
    }

    async fn execute(
        &self,
        execution: Execution<'_>,
        watch: &mut impl RunObserver,
        cancel: &CancellationToken,
    ) -> Result<CommandOutcome, ShellError> {
        let Execution { command, shell: language, directory, report, sandbox, limit, call, keeps_output } =
            execution;
        let started = Instant::now();
        let mut variables: BTreeMap<String, String> = self.variables.lock().iter().cloned().collect();
        variables.extend(self.exported());
        let failed = |source| ShellError::Start { directory: directory.clone(), source };
        // The file has to be there as long as the command runs.
        let script = match language {
            CommandShell::Bash => None,
            CommandShell::PowerShell => {
                Some(powershell::script_file(command, sandbox.as_deref()).map_err(failed)?)
            }
        };
        let files = [(powershell::SCRIPT, script.as_deref()), (powershell::REPORT, report)];
        if script.is_some() {
            let named = files.into_iter().filter_map(|(name, path)| Some((name, path?.to_str()?)));
            variables.extend(named.map(|(name, path)| (name.to_owned(), path.to_owned())));
        }
        for shell in programs::shells(language) {
            let arguments = match language {
                CommandShell::Bash => bash_arguments(command, report),
                CommandShell::PowerShell => powershell::arguments(),
            };
            let mut prepared = prepare(&shell, &arguments, &directory, &self.secrets.all());
            let kept = call.filter(|_| keeps_output).zip(self.tasks.outputs());
            let spill = kept.map(|(call, outputs)| outputs.spill(call));
            let keep = Capture::new(self.budget(), spill);
            if let (None, Some(call), Some(terminals)) = (&sandbox, call, &self.terminals)
                && terminals.are_chosen().await
            {
                prepared.envs(&variables);
                let terminal = TerminalCommand::of(&prepared, call, &directory);
                let ended = terminal::run(&**terminals, terminal, limit.as_ref(), keep, watch, cancel).await;
                let (exit, output) =
                    ended.map_err(|error| ShellError::Terminal { reason: error.to_string() })?;
                let (duration, guarded) = (started.elapsed(), GuardReport::default());
                return Ok(CommandOutcome { exit, output, duration, directory, guarded });
            }
            let (prepared, input, pending) =
                confined(sandbox.as_ref(), prepared, variables.clone(), limit.is_some())?;
            match process::run(prepared, input, limit.as_ref(), keep, watch, cancel).await {
                Err(error) if pending.is_some() => {
                    return Err(ShellError::Sandbox { reason: error.to_string() });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(ShellError::Start { directory, source }),
                Ok((exit, output)) => {
                    let duration = started.elapsed();
                    let (exit, guarded) = match concluded(pending, exit, &output).await {
                        Ok(concluded) => concluded,
                        Err(StartFailure::NotFound(_)) => continue,
                        Err(StartFailure::Sandbox(reason)) => return Err(ShellError::Sandbox { reason }),
                        Err(StartFailure::NotStarted(reason)) => {
                            return Err(ShellError::Start { directory, source: io::Error::other(reason) });
                        }
                    };
                    return Ok(CommandOutcome { exit, output, duration, directory, guarded });
                }
            }
        }
        Err(ShellError::NoShell(language))
    }

    /// Goes where the command has gone, if it said so and the folder is there.
    async fn follow(&self, report: &Path) {
        let report = report.to_owned();
        if let Some(directory) = blocking(move || reported_directory(&report)).await {
            *self.current() = directory;
        }
    }

    fn current(&self) -> MutexGuard<'_, AbsPath> {
        self.directory.lock()
    }
}

/// The folder that a command said it ended in, if it is there.
fn reported_directory(report: &Path) -> Option<AbsPath> {
    // The command could have put anything there, even something that is never read to its end.
    if !std::fs::symlink_metadata(report).ok()?.is_file() {
        return None;
    }
    let mut bytes = std::fs::read(report).ok()?;
    for end in [&b"\n"[..], b"\r"] {
        bytes.truncate(bytes.len() - usize::from(bytes.ends_with(end)));
    }
    // Windows PowerShell begins each file with one.
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
    let directory = AbsPath::new(paths::from_bytes(bytes)?).ok()?;
    directory.as_path().is_dir().then_some(directory)
}

/// The file a command's shell writes its last folder to. Without it the folder is just not carried over.
fn directory_report(sandbox: Option<&Sandbox>) -> Option<TempPath> {
    match tempfile::NamedTempFile::with_prefix_in("kode-ls-", scratch(sandbox)) {
        Ok(file) => Some(file.into_temp_path()),
        Err(error) => {
            tracing::warn!(%error, "no temporary file; the shell's folder is not carried over");
            None
        }
    }
}

/// The folder for files of ours that a command reads or writes.
fn scratch(sandbox: Option<&Sandbox>) -> PathBuf {
    sandbox.map_or_else(std::env::temp_dir, |sandbox| sandbox.scratch().as_path().to_path_buf())
}

/// The command in the sandbox, if there is to be one, with its standard input. `is_attended` says whether the user waits for
/// its end.
fn confined(
    sandbox: Option<&Arc<Sandbox>>,
    mut command: Command,
    variables: BTreeMap<String, String>,
    is_attended: bool,
) -> Result<(Command, Stdio, Option<SandboxRun>), ShellError> {
    let Some(sandbox) = sandbox else {
        command.envs(variables);
        return Ok((command, Stdio::null(), None));
    };
    let PreparedCommand { command, input, pending } = sandbox
        .prepare(&command, variables, is_attended)
        .map_err(|error| ShellError::Sandbox { reason: error.to_string() })?;
    Ok((command, input, Some(pending)))
}

/// How a command ended, and what became of guarded files; in a sandbox that is what the helper says.
async fn concluded(
    pending: Option<SandboxRun>,
    exit: Exit,
    output: &CapturedOutput,
) -> Result<(Exit, GuardReport), StartFailure> {
    match pending {
        Some(pending) => pending.conclude(exit, output).await,
        None => Ok((exit, GuardReport::default())),
    }
}

fn prepare(shell: &Path, arguments: &[String], directory: &AbsPath, secrets: &[Secret]) -> Command {
    let mut prepared = Command::new(shell);
    prepared
        .current_dir(directory)
        .env_clear()
        .envs(environment(std::env::vars_os(), secrets))
        .env("PWD", directory.as_path())
        .args(arguments);
    prepared
}

/// The arguments with which bash runs a command.
fn bash_arguments(command: &str, report: Option<&Path>) -> Vec<String> {
    match report.and_then(Path::to_str) {
        Some(report) => ["-c", &reporting_script(report), SHELL_NAME, command].map(str::to_owned).to_vec(),
        None => ["-c", command].map(str::to_owned).to_vec(),
    }
}

/// A script that runs its first argument as if that were the script, and writes the folder it ended in to a file.
///
/// A trap sees `exit` and failures too. The command goes through `eval` so that the line numbers in its error
/// messages are its own and nothing of this script is ever quoted in them.
fn reporting_script(report: &str) -> String {
    let trap = format!("{{ set +vx; {} >|{}; }} 2>/dev/null", interpreter::PWD, quoted(report));
    format!("trap {} EXIT; command_line=$1; set --; eval \"$command_line\"", quoted(&trap))
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The environment of a command from `inherited`.
fn environment(
    inherited: impl Iterator<Item = (OsString, OsString)>,
    secrets: &[Secret],
) -> impl Iterator<Item = (OsString, OsString)> {
    // By value as well: users may keep a key in a variable of any name.
    let is_secret = |value: &OsStr| secrets.iter().any(|secret| value == OsStr::new(secret.expose()));
    inherited
        .filter(move |(name, value)| inherits(&name.to_string_lossy()) && !is_secret(value))
        .chain(UNATTENDED.map(|(name, value)| (name.into(), value.into())))
}
