//! Programs that run on beside the agent and are spoken to over their standard input and output.
//!
//! Rule: such a program is a process group of its own, in the sandbox it was given; it is asked to end by the end of its
//! input, then by a signal, and is killed on every way out, also when no caller waits for it any more. On Linux it ends with
//! this process also when this process is killed.

#![expect(
    clippy::disallowed_methods,
    reason = "it starts programs that were found outside of writable folders, and it reads variables of the process for its callers"
)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::environment;
use crate::outcome::{CapturedOutput, Exit};
use crate::pipes::{self, Receiver, Sender};
use crate::process_group::ProcessTree;
use crate::programs;
use crate::sandbox::{PreparedService, Sandbox, SandboxRun, ServiceAccess, StartFailure, tied};
use kode_base::paths::AbsPath;
use kode_base::secret::Secret;

/// How long a program may take to end by itself once its input has ended.
const EOF_GRACE: Duration = Duration::from_millis(500);
/// How long it may take once it was asked by a signal; what holds it gives it a little less.
const TERM_GRACE: Duration = Duration::from_secs(2);
/// How long the end of one that was killed is waited for.
const KILL_GRACE: Duration = Duration::from_millis(500);

/// A program to start.
#[derive(Clone, Debug)]
pub struct ServedSpec {
    /// The program, by its path or a name in `PATH`.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The folder it runs in.
    pub directory: AbsPath,
    /// Variables it gets besides the usual ones.
    pub variables: BTreeMap<String, String>,
    /// The variables that it lacks unless they are given to it.
    pub secrets: Vec<Secret>,
    /// The sandbox it runs in; without one it runs with the user's rights.
    pub sandbox: Option<Arc<Sandbox>>,
    /// Whether it has the network to itself there.
    pub network: bool,
    /// Folders it may write in there besides those of commands.
    pub writable: Vec<AbsPath>,
    /// Folders it sees there wherever they lie.
    pub readable: Vec<AbsPath>,
    /// Whether outside the sandbox, too, nothing that it has started outlives it, also what has left its group; on Linux.
    pub holds: bool,
}

/// A program that was started.
pub struct ServedProgram {
    /// Its standard input.
    pub input: Sender,
    /// Its standard output.
    pub output: Receiver,
    /// Its standard error.
    pub errors: Receiver,
    /// The program.
    pub process: ServedProcess,
}

/// The process of a program; dropping it kills the group.
pub struct ServedProcess {
    group: ProcessTree,
    pending: Option<SandboxRun>,
    /// Its folder holds the program's temporary files.
    _sandbox: Option<Arc<Sandbox>>,
}

/// How a program has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceEnd {
    /// It ran and ended so.
    Ran(Exit),
    /// It was not there.
    NotFound(String),
    /// It was there and could not be started.
    NotStarted(String),
    /// The sandbox could not be set up.
    NoSandbox(String),
}

/// Starts a program.
///
/// # Errors
/// How it was not started.
pub async fn start(spec: ServedSpec) -> Result<ServedProgram, ServiceEnd> {
    let ServedSpec {
        program,
        arguments,
        directory,
        variables,
        secrets,
        sandbox,
        network,
        writable,
        readable,
        holds,
    } = spec;
    if !directory.as_path().is_dir() {
        return Err(ServiceEnd::NotStarted(format!("the folder {directory} is not there")));
    }
    let found = programs::find(&program).map_err(|error| ServiceEnd::NotFound(error.to_string()))?;
    // The helper of a sandbox ends with this process by itself.
    let mut command = match (&sandbox, holds) {
        (Some(_), _) => Command::new(found),
        (None, true) => tied::holding(found),
        (None, false) => tied::command(found),
    };
    command.args(arguments).current_dir(&directory).env_clear();
    command.envs(environment(std::env::vars_os(), &secrets)).env("PWD", directory.as_path());
    let sandboxed = |error: io::Error| ServiceEnd::NoSandbox(error.to_string());
    let (mut command, stdin, input, pending) = match &sandbox {
        Some(sandbox) => {
            let needs = ServiceAccess { variables, network, writable, readable };
            let PreparedService { prepared, input } =
                sandbox.prepare_lasting(&command, needs).await.map_err(sandboxed)?;
            (prepared.command, prepared.input, input, Some(prepared.pending))
        }
        None => {
            command.env("PATH", programs::search_path()).envs(&variables);
            let (reader, sender) = pipes::to_program().map_err(sandboxed)?;
            (command, Stdio::from(reader), sender, None)
        }
    };
    let started = (|| {
        let (output, stdout) = pipes::from_program()?;
        let (errors, stderr) = pipes::from_program()?;
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        // The command holds the program's ends of the pipes, and is gone with this.
        let group = ProcessTree::spawn(command)?;
        Ok(ServedProgram {
            input,
            output,
            errors,
            process: ServedProcess { group, pending, _sandbox: sandbox },
        })
    })();
    started.map_err(|error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => ServiceEnd::NotFound(format!("{program}: {error}")),
        _ => ServiceEnd::NotStarted(format!("{program}: {error}")),
    })
}

/// A program of the user's own that was started with all that this process has.
pub struct UnconfinedProgram {
    /// Its standard input.
    pub input: Sender,
    /// Its standard output.
    pub output: Receiver,
    /// The program.
    pub process: ServedProcess,
}

/// Starts a program that the user has named where they start this one: in the same folder, with the whole environment, without
/// a sandbox, and with the same standard error.
///
/// # Errors
/// How it was not started.
pub fn start_unconfined(program: &OsString, arguments: &[OsString]) -> Result<UnconfinedProgram, ServiceEnd> {
    let started = (|| {
        let (reader, input) = pipes::to_program()?;
        let (output, stdout) = pipes::from_program()?;
        // A program that is not there is an error of the start alone without the helper.
        let is_there = programs::on_path(program).is_some();
        let mut command = if is_there { tied::command(program) } else { Command::new(program) };
        command.args(arguments).stdin(reader).stdout(stdout).stderr(Stdio::inherit());
        let group = ProcessTree::spawn(command)?;
        Ok(UnconfinedProgram {
            input,
            output,
            process: ServedProcess { group, pending: None, _sandbox: None },
        })
    })();
    started.map_err(|error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => ServiceEnd::NotFound(error.to_string()),
        _ => ServiceEnd::NotStarted(error.to_string()),
    })
}

impl ServedProcess {
    /// Waits until the program has ended by itself. Safe to drop and to call again until it gives something.
    pub async fn ended(&mut self) -> ServiceEnd {
        let status = self.group.wait().await;
        self.group.kill();
        match status {
            Ok(status) => self.concluded(Exit::from(status)).await,
            Err(error) => ServiceEnd::NotStarted(error.to_string()),
        }
    }

    /// Ends the program and all that it has started, once its input was closed.
    pub async fn end(mut self) -> ServiceEnd {
        if timeout(EOF_GRACE, self.group.wait()).await.is_err() {
            self.group.ask_to_end();
            let _ = timeout(TERM_GRACE, self.group.wait()).await;
        }
        self.group.kill();
        match timeout(KILL_GRACE, self.group.wait()).await {
            Ok(Ok(status)) => self.concluded(Exit::from(status)).await,
            Ok(Err(_)) | Err(_) => ServiceEnd::Ran(Exit::Cancelled),
        }
    }

    async fn concluded(&mut self, exit: Exit) -> ServiceEnd {
        let Some(pending) = self.pending.take() else { return ServiceEnd::Ran(exit) };
        match pending.conclude(exit, &CapturedOutput::default()).await {
            Ok((exit, _)) => ServiceEnd::Ran(exit),
            Err(StartFailure::NotFound(why)) => ServiceEnd::NotFound(why),
            Err(StartFailure::NotStarted(why)) => ServiceEnd::NotStarted(why),
            Err(StartFailure::Sandbox(why)) => ServiceEnd::NoSandbox(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn spec(script: &str) -> ServedSpec {
        ServedSpec {
            program: "sh".to_owned(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            directory: AbsPath::new(std::env::temp_dir()).unwrap(),
            variables: BTreeMap::from([("GIVEN".to_owned(), "yes".to_owned())]),
            secrets: Vec::new(),
            sandbox: None,
            network: false,
            writable: Vec::new(),
            readable: Vec::new(),
            holds: false,
        }
    }

    #[tokio::test]
    async fn a_program_is_spoken_to_and_ends_with_its_input() {
        let mut served = start(spec("read line; echo \"$line $GIVEN\"; cat")).await.unwrap();
        served.input.write_all(b"hello\n").await.unwrap();
        let mut said = [0; 10];
        served.output.read_exact(&mut said).await.unwrap();
        assert_eq!(&said, b"hello yes\n");
        drop(served.input);
        assert_eq!(served.process.end().await, ServiceEnd::Ran(Exit::Code(0)));
    }

    #[tokio::test]
    async fn one_that_obeys_neither_is_killed_with_all_it_has_started() {
        let served = start(spec("trap '' TERM; echo up; sleep 1000 & sleep 1000")).await.unwrap();
        let mut output = served.output;
        let mut up = [0; 3];
        output.read_exact(&mut up).await.unwrap();
        drop(served.input);
        drop(served.process);
        // The end of the pipe comes when no writer is left.
        let mut rest = Vec::new();
        output.read_to_end(&mut rest).await.unwrap();
    }

    #[tokio::test]
    async fn one_that_is_not_there_says_so() {
        let missing = ServedSpec { program: "no-such-program-anywhere".to_owned(), ..spec("") };
        assert!(matches!(start(missing).await, Err(ServiceEnd::NotFound(_))));
    }
}
