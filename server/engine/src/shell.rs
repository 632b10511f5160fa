//! Processes: the only place that spawns one.
//!
//! Rule: a command runs in a process group of its own with no standard input, its output is bounded, and when it
//! ends, is cancelled or takes too long the whole group is gone before the result is given. From one command to
//! the next the folder is carried over, the environment is not.

mod output;
mod process;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempPath;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use crate::model::profile::Secret;
use crate::paths::AbsPath;
use crate::sandbox::{Failure, GuardReport, Pending, Prepared, Sandbox};

pub use output::{Captured, OUTPUT_BUDGET};
pub use process::Exit;

/// The shells that run commands, the preferred one first.
const SHELLS: [&str; 2] = ["bash", "sh"];
/// Variables that commands do not get: the keys of the models.
const WITHHELD: [&str; 3] = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"];
/// Variables with this prefix are the server's own; commands do not get them either.
const WITHHELD_PREFIX: &str = "KODE_LS_";
/// Variables that keep programs from waiting for someone at a terminal.
const UNATTENDED: [(&str, &str); 3] = [("GIT_TERMINAL_PROMPT", "0"), ("PAGER", "cat"), ("TERM", "dumb")];

/// Where a session's commands run.
#[derive(Debug)]
pub struct Shell {
    home: AbsPath,
    directory: Mutex<AbsPath>,
    secrets: Vec<Secret>,
    sandbox: Mutex<Option<Arc<Sandbox>>>,
}

/// A command to run.
#[derive(Clone, Debug)]
pub struct CommandSpec {
    /// The command line, in the shell's language.
    pub command: String,
    /// How long it may take.
    pub timeout: Duration,
    /// Whether it runs outside the sandbox, where there is one.
    pub outside_sandbox: bool,
}

/// What became of a command that could be started.
#[derive(Clone, Debug)]
pub struct CommandOutcome {
    /// How it ended.
    pub exit: Exit,
    /// What it wrote.
    pub output: Captured,
    /// How long it took.
    pub duration: Duration,
    /// Where the next command will start.
    pub directory: AbsPath,
    /// What became of guarded files; nothing without a sandbox.
    pub guarded: GuardReport,
}

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// There is nothing to run it with.
    #[error("no shell was found: neither `bash` nor `sh` is in PATH")]
    NoShell,
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
    /// The system refused.
    #[error("the shell could not be started in `{directory}`: {source}")]
    Start {
        /// Where it should have started.
        directory: AbsPath,
        /// What the system said.
        source: io::Error,
    },
}

impl Shell {
    /// A shell whose commands start in `cwd`.
    #[must_use]
    pub fn new(cwd: AbsPath) -> Self {
        Self { directory: Mutex::new(cwd.clone()), home: cwd, secrets: Vec::new(), sandbox: Mutex::default() }
    }

    /// The same shell, whose commands get no variable that holds one of these.
    #[must_use]
    pub fn withholding(self, secrets: Vec<Secret>) -> Self {
        Self { secrets, ..self }
    }

    /// The same shell, whose commands run in this sandbox, or in none.
    #[must_use]
    pub fn sandboxed(self, sandbox: Option<Arc<Sandbox>>) -> Self {
        Self { sandbox: Mutex::new(sandbox), ..self }
    }

    /// Has commands run in this sandbox from now on, or in none.
    pub fn confine(&self, sandbox: Option<Arc<Sandbox>>) {
        *self.sandbox.lock().unwrap_or_else(PoisonError::into_inner) = sandbox;
    }

    /// The sandbox commands run in, if there is one.
    #[must_use]
    pub fn sandbox(&self) -> Option<Arc<Sandbox>> {
        self.sandbox.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Another shell that withholds the same, has the same sandbox, and whose commands start in `cwd`.
    #[must_use]
    pub fn elsewhere(&self, cwd: AbsPath) -> Self {
        Self::new(cwd).withholding(self.secrets.clone()).sandboxed(self.sandbox())
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
        mut on_output: impl FnMut(&str) + Send,
        cancel: &CancellationToken,
    ) -> Result<CommandOutcome, ShellError> {
        let directory = self.directory();
        if !directory.as_path().is_dir() {
            return Err(ShellError::NoDirectory { gone: directory, home: self.return_home() });
        }
        let sandbox = self.sandbox().filter(|_| !spec.outside_sandbox);
        let report = directory_report(sandbox.as_deref());
        let started = Instant::now();
        for shell in SHELLS {
            let (command, input, pending) = confined(
                sandbox.as_deref(),
                prepare(shell, &spec.command, &directory, report.as_deref(), &self.secrets),
            )?;
            match process::run(command, input, spec.timeout, &mut on_output, cancel).await {
                Err(error) if pending.is_some() => {
                    return Err(ShellError::Sandbox { reason: error.to_string() });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(ShellError::Start { directory, source }),
                Ok((exit, output)) => {
                    let duration = started.elapsed();
                    let (exit, guarded) = match concluded(pending, exit, &output) {
                        Ok(concluded) => concluded,
                        Err(Failure::NotFound(_)) => continue,
                        Err(Failure::Sandbox(reason)) => return Err(ShellError::Sandbox { reason }),
                        Err(Failure::NotStarted(reason)) => {
                            return Err(ShellError::Start { directory, source: io::Error::other(reason) });
                        }
                    };
                    if let (Exit::Code(_), Some(report)) = (exit, &report) {
                        self.follow(report).await;
                    }
                    let directory = self.directory();
                    return Ok(CommandOutcome { exit, output, duration, directory, guarded });
                }
            }
        }
        Err(ShellError::NoShell)
    }

    /// Goes where the command has gone, if it said so and the folder is there.
    async fn follow(&self, report: &Path) {
        // The command could have put anything there, even something that is never read to its end.
        if !tokio::fs::symlink_metadata(report).await.is_ok_and(|found| found.is_file()) {
            return;
        }
        let Ok(mut bytes) = tokio::fs::read(report).await else { return };
        bytes.truncate(bytes.len() - usize::from(bytes.ends_with(b"\n")));
        let Ok(directory) = AbsPath::new(PathBuf::from(OsString::from_vec(bytes))) else { return };
        if directory.as_path().is_dir() {
            *self.current() = directory;
        }
    }

    fn current(&self) -> MutexGuard<'_, AbsPath> {
        self.directory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The file a command's shell writes its last folder to. Without it the folder is just not carried over.
fn directory_report(sandbox: Option<&Sandbox>) -> Option<TempPath> {
    let folder = sandbox.map_or_else(std::env::temp_dir, |sandbox| sandbox.scratch().as_path().to_path_buf());
    match tempfile::NamedTempFile::with_prefix_in("kode-ls-", folder) {
        Ok(file) => Some(file.into_temp_path()),
        Err(error) => {
            tracing::warn!(%error, "no temporary file; the shell's folder is not carried over");
            None
        }
    }
}

/// The command in the sandbox, if there is to be one, with its standard input.
fn confined(
    sandbox: Option<&Sandbox>,
    command: Command,
) -> Result<(Command, Stdio, Option<Pending>), ShellError> {
    let Some(sandbox) = sandbox else { return Ok((command, Stdio::null(), None)) };
    let Prepared { command, input, pending } =
        sandbox.prepare(&command).map_err(|error| ShellError::Sandbox { reason: error.to_string() })?;
    Ok((command, input, Some(pending)))
}

/// How a command ended, and what became of guarded files; in a sandbox that is what the helper says.
fn concluded(
    pending: Option<Pending>,
    exit: Exit,
    output: &Captured,
) -> Result<(Exit, GuardReport), Failure> {
    match pending {
        Some(pending) => pending.conclude(exit, output),
        None => Ok((exit, GuardReport::default())),
    }
}

fn prepare(
    shell: &str,
    command: &str,
    directory: &AbsPath,
    report: Option<&Path>,
    secrets: &[Secret],
) -> Command {
    let mut prepared = Command::new(shell);
    prepared
        .current_dir(directory)
        .env_clear()
        .envs(environment(std::env::vars_os(), secrets))
        .env("PWD", directory.as_path());
    match report.and_then(Path::to_str) {
        Some(report) => prepared.args(["-c", &reporting_script(report), shell, command]),
        None => prepared.args(["-c", command]),
    };
    prepared
}

/// A script that runs its first argument as if that were the script, and writes the folder it ended in to a file.
///
/// A trap sees `exit` and failures too. The command goes through `eval` so that the line numbers in its error
/// messages are its own and nothing of this script is ever quoted in them.
fn reporting_script(report: &str) -> String {
    let trap = format!("{{ set +vx; command pwd >|{}; }} 2>/dev/null", quoted(report));
    format!("trap {} EXIT; command_line=$1; set --; eval \"$command_line\"", quoted(&trap))
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// What a command gets of the environment `inherited`.
fn environment(
    inherited: impl Iterator<Item = (OsString, OsString)>,
    secrets: &[Secret],
) -> impl Iterator<Item = (OsString, OsString)> {
    // By value as well: users may keep a key in a variable of any name.
    let is_secret = |value: &OsStr| secrets.iter().any(|secret| value == OsStr::new(secret.expose()));
    inherited
        .filter(move |(name, value)| !is_withheld(name) && !is_secret(value))
        .chain(UNATTENDED.map(|(name, value)| (name.into(), value.into())))
}

fn is_withheld(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    WITHHELD.contains(&&*name) || name.starts_with(WITHHELD_PREFIX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustix::process::{Pid, Signal};
    use tokio::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn shell() -> (tempfile::TempDir, Shell) {
        let folder = tempfile::tempdir().unwrap();
        let cwd = AbsPath::new(folder.path().canonicalize().unwrap()).unwrap();
        (folder, Shell::new(cwd))
    }

    fn spec(command: &str, timeout: Duration) -> CommandSpec {
        CommandSpec { command: command.to_owned(), timeout, outside_sandbox: false }
    }

    async fn run(shell: &Shell, command: &str) -> CommandOutcome {
        shell.run(spec(command, LONG), |_| (), &CancellationToken::new()).await.unwrap()
    }

    async fn text(shell: &Shell, command: &str) -> String {
        run(shell, command).await.output.text
    }

    /// Runs a command that prints the ids of processes, cancels it when the line `ready` has come, and gives the
    /// outcome.
    async fn cancelled_when_ready(shell: &Shell, command: &str) -> CommandOutcome {
        let cancel = CancellationToken::new();
        let mut seen = String::new();
        let on_output = |text: &str| {
            seen.push_str(text);
            if seen.contains("ready\n") {
                cancel.cancel();
            }
        };
        shell.run(spec(command, LONG), on_output, &cancel).await.unwrap()
    }

    /// Whether a process runs; one that is dead and not yet collected does not.
    fn runs(id: &str) -> bool {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { return false };
        let state = stat.rsplit(')').next().unwrap().trim_start();
        !state.starts_with(['Z', 'X'])
    }

    /// A signal is sent before the result is given, but the system may take a moment to carry it out.
    async fn assert_gone(id: &str) {
        for _ in 0..500 {
            if !runs(id) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("process {id} is still running");
    }

    fn id_after<'a>(text: &'a str, label: &str) -> &'a str {
        let rest = text.split_once(label).unwrap().1;
        rest.split_once('\n').unwrap().0
    }

    #[tokio::test]
    async fn both_streams_come_in_the_order_they_were_written() {
        let (_folder, shell) = shell();
        let command = "for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done";
        let expected: String = (1..=5).map(|i| format!("out {i}\nerr {i}\n")).collect();
        assert_eq!(text(&shell, command).await, expected);
    }

    #[tokio::test]
    async fn exit_codes_and_signals_are_told_apart() {
        let (_folder, shell) = shell();
        assert_eq!(run(&shell, "exit 3").await.exit, Exit::Code(3));
        assert_eq!(run(&shell, "kill -9 $$").await.exit, Exit::Signal(9));
    }

    #[tokio::test]
    async fn output_is_handed_on_while_the_command_runs() {
        let (folder, shell) = shell();
        let go_on = folder.path().join("go-on");
        let on_output = |text: &str| {
            if text.contains("first") {
                std::fs::write(&go_on, "").unwrap();
            }
        };
        let command = "echo first; until [ -e go-on ]; do sleep 0.01; done; echo second";
        let outcome = shell.run(spec(command, LONG), on_output, &CancellationToken::new()).await.unwrap();
        assert_eq!(outcome.output.text, "first\nsecond\n");
    }

    #[tokio::test]
    async fn there_is_no_standard_input() {
        let (_folder, shell) = shell();
        assert_eq!(text(&shell, "cat; echo done").await, "done\n");
    }

    #[tokio::test]
    async fn cancelling_ends_the_command_with_its_children_and_keeps_the_output() {
        let (_folder, shell) = shell();
        let command = "sleep 600 & echo child $!; echo shell $$; echo ready; wait";
        let outcome = cancelled_when_ready(&shell, command).await;
        assert_eq!(outcome.exit, Exit::Cancelled);
        assert!(outcome.output.text.ends_with("ready\n"), "{}", outcome.output.text);
        assert_gone(id_after(&outcome.output.text, "child ")).await;
        assert_gone(id_after(&outcome.output.text, "shell ")).await;
    }

    #[tokio::test]
    async fn a_command_may_clean_up_when_it_is_asked_to_end() {
        let (_folder, shell) = shell();
        let command = "trap 'echo cleaned; exit 0' TERM; echo ready; while :; do :; done";
        let outcome = cancelled_when_ready(&shell, command).await;
        assert_eq!((outcome.exit, &*outcome.output.text), (Exit::Cancelled, "ready\ncleaned\n"));
    }

    #[tokio::test]
    async fn a_command_that_ignores_the_request_to_end_is_killed() {
        let (_folder, shell) = shell();
        let command = "trap '' TERM; echo shell $$; echo ready; while :; do sleep 0.01; done";
        let outcome = cancelled_when_ready(&shell, command).await;
        assert_eq!(outcome.exit, Exit::Cancelled);
        assert_gone(id_after(&outcome.output.text, "shell ")).await;
    }

    #[tokio::test]
    async fn a_command_that_takes_too_long_is_stopped_and_its_output_kept() {
        let (_folder, shell) = shell();
        let command = "echo child $$; sleep 600";
        let limit = Duration::from_millis(300);
        let outcome = shell.run(spec(command, limit), |_| (), &CancellationToken::new()).await.unwrap();
        assert_eq!(outcome.exit, Exit::TimedOut);
        assert_gone(id_after(&outcome.output.text, "child ")).await;
    }

    #[tokio::test]
    async fn background_jobs_do_not_outlive_the_command() {
        let (_folder, shell) = shell();
        let outcome = run(&shell, "sleep 600 & echo child $!").await;
        assert_eq!(outcome.exit, Exit::Code(0));
        assert_gone(id_after(&outcome.output.text, "child ")).await;
    }

    #[tokio::test]
    async fn a_process_that_left_the_group_with_the_pipe_does_not_hold_up_the_result() {
        let (_folder, shell) = shell();
        let command = "setsid sh -c 'echo child $$; echo > started; exec sleep 600' & until [ -e started ]; do sleep 0.01; done";
        let outcome = tokio::time::timeout(LONG, run(&shell, command)).await.unwrap();
        assert_eq!(outcome.exit, Exit::Code(0));
        let child = id_after(&outcome.output.text, "child ").parse().unwrap();
        rustix::process::kill_process(Pid::from_raw(child).unwrap(), Signal::KILL).unwrap();
    }

    #[tokio::test]
    async fn what_a_process_substitution_still_writes_is_kept() {
        let (_folder, shell) = shell();
        assert_eq!(text(&shell, "echo seen > >(sed s/seen/changed/)").await, "changed\n");
    }

    #[tokio::test]
    async fn dropping_the_future_kills_the_group() {
        let (_folder, shell) = shell();
        let shell = Arc::new(shell);
        let (sender, mut output) = mpsc::unbounded_channel();
        let task = tokio::spawn({
            let shell = Arc::clone(&shell);
            async move {
                let on_output = move |text: &str| sender.send(text.to_owned()).unwrap();
                let command = "sleep 600 & echo child $!; echo shell $$; wait";
                shell.run(spec(command, LONG), on_output, &CancellationToken::new()).await
            }
        });
        let mut seen = String::new();
        while !(seen.contains("shell ") && seen.ends_with('\n')) {
            seen.push_str(&output.recv().await.unwrap());
        }
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        assert_gone(id_after(&seen, "child ")).await;
        assert_gone(id_after(&seen, "shell ")).await;
    }

    #[tokio::test]
    async fn the_folder_is_carried_over_and_the_environment_is_not() {
        let (_folder, shell) = shell();
        let home = shell.directory();
        let outcome = run(&shell, "mkdir -p \"it's a\"; cd \"it's a\"; export LEFT=1; false").await;
        assert_eq!(outcome.directory, home.join("it's a"));
        assert_eq!(text(&shell, "pwd; echo ${LEFT-unset}").await, format!("{home}/it's a\nunset\n"));
        run(&shell, "cd ..; exit 4").await;
        assert_eq!(shell.directory(), home);
        run(&shell, "(cd /); set -eux -o noclobber; cd /; false").await;
        assert_eq!(shell.directory().as_path(), Path::new("/"));
        assert_eq!(shell.return_home(), home);
        assert_eq!(text(&shell, "pwd").await, format!("{home}\n"));
    }

    #[tokio::test]
    async fn nothing_of_how_commands_are_run_shows_in_their_output() {
        let (_folder, shell) = shell();
        let cases = [
            ("nosuch-program", "bash: line 1: nosuch-program: command not found\n"),
            ("echo $# $0", "0 bash\n"),
            ("set -x; cd .", "++ cd .\n"),
            (
                "echo a\nif then",
                "a\nbash: eval: line 2: syntax error near unexpected token `then'\nbash: eval: line 2: `if then'\n",
            ),
        ];
        for (command, expected) in cases {
            assert_eq!(text(&shell, command).await, expected, "{command}");
        }
    }

    #[tokio::test]
    async fn a_folder_that_is_gone_is_said_so_and_left() {
        let (folder, shell) = shell();
        run(&shell, "mkdir sub; cd sub").await;
        std::fs::remove_dir(folder.path().join("sub")).unwrap();
        let error = shell.run(spec("pwd", LONG), |_| (), &CancellationToken::new()).await.unwrap_err();
        assert!(
            matches!(&error, ShellError::NoDirectory { gone, .. } if gone.file_name() == "sub"),
            "{error}"
        );
        assert_eq!(run(&shell, "true").await.exit, Exit::Code(0));
    }

    #[tokio::test]
    async fn commands_know_that_nobody_is_at_a_terminal() {
        let (_folder, shell) = shell();
        assert_eq!(text(&shell, "echo $TERM $PAGER $GIT_TERMINAL_PROMPT").await, "dumb cat 0\n");
    }

    #[test]
    fn a_shell_elsewhere_withholds_the_same() {
        let (folder, shell) = shell();
        let place = AbsPath::new(folder.path()).unwrap().join("sub");
        let shell = shell.withholding(vec![Secret::new("sk-1")]).elsewhere(place.clone());
        let withheld: Vec<_> = shell.secrets.iter().map(Secret::expose).collect();
        assert_eq!((shell.directory(), withheld.as_slice()), (place, ["sk-1"].as_slice()));
    }

    #[test]
    fn keys_are_withheld_from_commands() {
        let inherited =
            ["PATH", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "KODE_LS_HOME", "TERM"];
        let inherited = inherited.map(|name| (OsString::from(name), OsString::from("value")));
        let inherited = inherited.into_iter().chain([("MY_KEY".into(), "sk-1".into())]);
        let given: Vec<_> = environment(inherited, &[Secret::new("sk-1")]).map(|(name, _)| name).collect();
        assert_eq!(given, ["PATH", "TERM", "GIT_TERMINAL_PROMPT", "PAGER", "TERM"]);
    }
}
