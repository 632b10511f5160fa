//! Commands that are given something to read and whose two outputs are distinguished.
//!
//! Rule: such a command is a process group of its own, in the sandbox it was given; it has a limit in time and in its kept
//! output, and when the wait ends, for whatever reason, the whole group is gone.

#![expect(
    clippy::disallowed_methods,
    reason = "it starts programs that were found outside of writable folders, and it reads variables of the process for its callers"
)]

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::process::{TimeLimit, ended};
use crate::outcome::{CapturedOutput, Exit};
use crate::pipes::{self, Receiver, Sender};
use crate::process_group::ProcessTree;
use crate::programs;
use crate::sandbox::{PreparedService, Sandbox, SandboxRun, StartFailure};
use kode_base::paths::AbsPath;

/// How long a command that was asked to end may take before it is killed; what holds it in a sandbox gives it no more.
const GRACE: Duration = Duration::from_millis(500);
/// How long what a command has started may still write once it has ended.
const LINGER: Duration = Duration::from_millis(100);
/// How long the end of the output is waited for once everything has been killed.
const DRAIN: Duration = Duration::from_millis(500);
/// How much is read at once.
const READ_SIZE: usize = 16 * 1024;

/// A command to run.
#[derive(Clone, Debug)]
pub struct PipedSpec {
    /// The program, by its path or a name in `PATH`.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The folder it runs in.
    pub directory: AbsPath,
    /// Variables it gets besides the usual ones.
    pub variables: BTreeMap<String, String>,
    /// Its standard input.
    pub input: Vec<u8>,
    /// How long it may take.
    pub limit: Duration,
    /// Maximum bytes of each output that are kept; the rest is read and dropped.
    pub max_bytes: usize,
    /// The sandbox it runs in; without one it runs with the user's rights.
    pub sandbox: Option<Arc<Sandbox>>,
}

/// The outcome of a command that was started.
#[derive(Clone, Debug)]
pub struct PipedOutcome {
    /// How it ended.
    pub exit: Exit,
    /// Its standard output, bounded.
    pub stdout: String,
    /// Its standard error, bounded.
    pub stderr: String,
}

impl super::Shell {
    /// Runs a command to its end. Dropping the future kills it.
    ///
    /// # Errors
    /// Why it could not be started, for people.
    pub async fn run_piped(
        &self,
        spec: PipedSpec,
        cancel: &CancellationToken,
    ) -> Result<PipedOutcome, String> {
        let mut command = Command::new(programs::find(&spec.program).map_err(|error| error.to_string())?);
        command.args(&spec.arguments).current_dir(&spec.directory).env_clear();
        command.envs(super::environment(std::env::vars_os(), &self.secrets.all()));
        command.env("PWD", spec.directory.as_path());
        let (command, stdin, input, pending) = match &spec.sandbox {
            Some(sandbox) => {
                let fed = sandbox.prepare_fed(&command, spec.variables).await.map_err(no_sandbox)?;
                let PreparedService { prepared, input } = fed;
                (prepared.command, prepared.input, input, Some(prepared.pending))
            }
            None => {
                command.env("PATH", programs::search_path()).envs(&spec.variables);
                let (reader, sender) = pipes::to_program().map_err(|error| error.to_string())?;
                (command, Stdio::from(reader), sender, None)
            }
        };
        let running = start(command, stdin, input).map_err(|error| match pending {
            Some(_) => no_sandbox(error),
            None => error.to_string(),
        })?;
        let limits = (spec.limit, spec.max_bytes);
        let (exit, stdout, stderr) = to_end(running, spec.input, limits, cancel).await;
        let exit = concluded(pending, exit, &stderr).await?;
        Ok(PipedOutcome { exit, stdout, stderr })
    }
}

fn no_sandbox(error: io::Error) -> String {
    format!("the sandbox could not be set up: {error}")
}

/// How a command ended; in a sandbox that is what the helper says.
async fn concluded(pending: Option<SandboxRun>, exit: Exit, stderr: &str) -> Result<Exit, String> {
    let Some(pending) = pending else { return Ok(exit) };
    let output = CapturedOutput { text: stderr.to_owned(), ..CapturedOutput::default() };
    match pending.conclude(exit, &output).await {
        Ok((exit, _)) => Ok(exit),
        Err(StartFailure::Sandbox(reason)) => Err(format!("the sandbox could not be set up: {reason}")),
        Err(StartFailure::NotFound(reason) | StartFailure::NotStarted(reason)) => Err(reason),
    }
}

struct RunningProcess {
    group: ProcessTree,
    input: Sender,
    stdout: Receiver,
    stderr: Receiver,
}

fn start(mut command: Command, stdin: Stdio, input: Sender) -> io::Result<RunningProcess> {
    let (stdout, their_stdout) = pipes::from_program()?;
    let (stderr, their_stderr) = pipes::from_program()?;
    command.stdin(stdin).stdout(their_stdout).stderr(their_stderr);
    // The command holds the program's ends of the pipes, and is gone with this.
    let group = ProcessTree::spawn(command)?;
    Ok(RunningProcess { group, input, stdout, stderr })
}

/// Feeds the command and takes in what it says until it has ended or has to be stopped.
async fn to_end(
    running: RunningProcess,
    bytes: Vec<u8>,
    (limit, max_bytes): (Duration, usize),
    cancel: &CancellationToken,
) -> (Exit, String, String) {
    let RunningProcess { mut group, mut input, mut stdout, mut stderr } = running;
    let (mut out, mut err) = (LimitedOutput::new(max_bytes), LimitedOutput::new(max_bytes));
    let exit = {
        let feeding = async move {
            if let Err(error) = input.write_all(&bytes).await {
                tracing::debug!(%error, "a command has not read all it was given");
            }
            // With this the input ends.
            drop(input);
        };
        let mut streams = pin!(async {
            tokio::join!(feeding, out.take_in(&mut stdout), err.take_in(&mut stderr));
        });
        let mut is_over = false;
        let limit = TimeLimit::fixed(limit);
        let ended = beside(&mut streams, &mut is_over, ended(&mut group, Some(&limit), cancel)).await;
        let exit = match ended {
            Ok(status) => {
                if !is_over {
                    is_over = timeout(LINGER, &mut streams).await.is_ok();
                }
                group.kill();
                status.map_or(Exit::Signal(0), Exit::from)
            }
            Err(stopped) => {
                group.ask_to_end();
                let _ = timeout(GRACE, beside(&mut streams, &mut is_over, group.wait())).await;
                group.kill();
                let _ = timeout(DRAIN, group.wait()).await;
                stopped
            }
        };
        if !is_over {
            // Only a process that left the group can still hold the pipes.
            let _ = timeout(DRAIN, streams).await;
        }
        exit
    };
    (exit, out.text(), err.text())
}

/// Awaits an event while the streams continue.
async fn beside<T>(
    streams: &mut Pin<&mut impl Future<Output = ()>>,
    is_over: &mut bool,
    event: impl Future<Output = T>,
) -> T {
    let mut event = pin!(event);
    loop {
        tokio::select! {
            biased;
            happened = &mut event => return happened,
            () = &mut *streams, if !*is_over => *is_over = true,
        }
    }
}

/// The beginning of an output.
struct LimitedOutput {
    bytes: Vec<u8>,
    most: usize,
}

impl LimitedOutput {
    fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), most }
    }

    /// Reads to the end, and keeps the beginning.
    async fn take_in(&mut self, pipe: &mut Receiver) {
        let mut buffer = vec![0; READ_SIZE];
        while let Ok(length @ 1..) = pipe.read(&mut buffer).await {
            let room = self.most.saturating_sub(self.bytes.len());
            self.bytes.extend_from_slice(&buffer[..length.min(room)]);
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::Shell;

    fn spec(command: &str, input: Vec<u8>) -> PipedSpec {
        PipedSpec {
            program: "sh".to_owned(),
            arguments: vec!["-c".to_owned(), command.to_owned()],
            directory: AbsPath::new(std::env::temp_dir()).unwrap(),
            variables: BTreeMap::from([("GIVEN".to_owned(), "g v".to_owned())]),
            input,
            limit: Duration::from_secs(60),
            max_bytes: 1000,
            sandbox: None,
        }
    }

    async fn run(spec: PipedSpec) -> Result<PipedOutcome, String> {
        let shell = Shell::new(spec.directory.clone());
        shell.run_piped(spec, &CancellationToken::new()).await
    }

    #[tokio::test]
    async fn the_input_ends_and_the_outputs_are_distinguished() {
        let piped = run(spec("cat; echo $GIVEN >&2; exit 2", b"{}".to_vec())).await.unwrap();
        assert_eq!((piped.exit, &*piped.stdout, &*piped.stderr), (Exit::Code(2), "{}", "g v\n"));
    }

    #[tokio::test]
    async fn what_nobody_reads_and_what_is_too_much_holds_nothing_up() {
        let piped = run(spec("yes | head -c 1000000; exit 0", vec![b'x'; 1_000_000])).await.unwrap();
        assert_eq!((piped.exit, piped.stdout.len()), (Exit::Code(0), 1000));
    }

    #[tokio::test]
    async fn what_hangs_is_stopped_and_what_it_has_started_as_well() {
        let hangs = PipedSpec { limit: Duration::from_millis(20), ..spec("echo up; sleep 1000", Vec::new()) };
        let piped = run(hangs).await.unwrap();
        assert_eq!(piped.exit, Exit::TimedOut);
        // A child that holds the pipes ends with the command.
        let piped = run(spec("sleep 1000 & echo done", Vec::new())).await.unwrap();
        assert_eq!((piped.exit, &*piped.stdout), (Exit::Code(0), "done\n"));
    }

    #[tokio::test]
    async fn what_is_not_there_cannot_be_started() {
        let absent = PipedSpec { program: "no-such-program".to_owned(), ..spec("", Vec::new()) };
        assert!(run(absent).await.unwrap_err().contains("is in no folder of PATH"));
    }
}
