//! Commands that print one thing, such as a key.
//!
//! Rule: those of the user's own run with the user's rights and environment, in the user's home, where nothing of a workspace
//! is treated as a part of them; others by their options. None has input; their output is bounded, goes to no process but
//! the caller, and is in no error. When the wait ends, for whatever reason, the whole process group is gone.

#![expect(
    clippy::disallowed_methods,
    reason = "it starts programs that were found outside of writable folders"
)]

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::timeout;

use super::served::{self, ServedProgram, ServedSpec, ServiceEnd};
use crate::outcome::Exit;
use crate::pipes;
use crate::process_group::ProcessTree;
use crate::programs;

/// The most bytes of output that is dropped.
const MAX_DROPPED: usize = 65_536;

/// Why a command gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum HelperFailure {
    /// It could not be started.
    #[error("could not be started: {0}")]
    Start(io::Error),
    /// It could not be started as it was to be.
    #[error("could not be started: {0}")]
    NotRun(String),
    /// It ended otherwise than with exit code 0.
    #[error("failed ({0})")]
    Failed(String),
    /// It took too long.
    #[error("was stopped after {} seconds", .0.as_secs())]
    TimedOut(Duration),
    /// It printed too much.
    #[error("printed more than {0} bytes")]
    TooLong(usize),
    /// It printed invalid UTF-8.
    #[error("printed invalid UTF-8")]
    NoText,
}

/// The standard output of a command; its standard error is dropped.
///
/// # Errors
/// [`HelperFailure`], which holds nothing of the output. Dropping the future kills the command.
pub async fn output_of(command: &str, limit: Duration, max_bytes: usize) -> Result<String, HelperFailure> {
    output_with(command, &[], limit, max_bytes).await
}

/// As [`output_of`], with these variables besides those of the user.
///
/// # Errors
/// As [`output_of`].
pub async fn output_with(
    command: &str,
    variables: &[(&str, &str)],
    limit: Duration,
    max_bytes: usize,
) -> Result<String, HelperFailure> {
    output(("sh", &["-c", command]), variables, limit, max_bytes).await
}

/// Runs a program of the system with arguments, without a shell; its output is dropped.
///
/// # Errors
/// As [`output_of`].
pub async fn run(program: &str, arguments: &[&str], limit: Duration) -> Result<(), HelperFailure> {
    output((program, arguments), &[], limit, MAX_DROPPED).await.map(drop)
}

/// The standard output of a program that is called with arguments and gets these variables besides those of the user.
///
/// # Errors
/// As [`output_of`].
pub(super) async fn output(
    (program, arguments): (&str, &[&str]),
    variables: &[(&str, &str)],
    limit: Duration,
    max_bytes: usize,
) -> Result<String, HelperFailure> {
    let program = programs::find(program).map_err(|error| HelperFailure::NotRun(error.to_string()))?;
    let mut run = Command::new(program);
    run.env("PATH", programs::search_path()).envs(variables.iter().copied());
    if let Some(home) = std::env::home_dir().filter(|home| home.is_dir()) {
        run.current_dir(home);
    }
    let (stdout, their_stdout) = pipes::from_program().map_err(HelperFailure::Start)?;
    run.args(arguments).stdin(Stdio::null()).stdout(their_stdout).stderr(Stdio::null());
    let mut group = ProcessTree::spawn(run).map_err(HelperFailure::Start)?;
    let printed = async {
        let bytes = read(stdout, max_bytes).await?;
        let status = group.wait().await.map_err(HelperFailure::Start)?;
        if !status.success() {
            return Err(HelperFailure::Failed(status.to_string()));
        }
        String::from_utf8(bytes).map_err(|_| HelperFailure::NoText)
    };
    timeout(limit, printed).await.unwrap_or(Err(HelperFailure::TimedOut(limit)))
}

/// As [`output_of`], of a program that is held back as it is reported to be.
///
/// # Errors
/// As [`output_of`].
pub async fn output_of_program(
    spec: ServedSpec,
    limit: Duration,
    max_bytes: usize,
) -> Result<String, HelperFailure> {
    let ServedProgram { input, output, mut errors, mut process } =
        served::start(spec).await.map_err(not_run)?;
    drop(input);
    let printed = async {
        let bytes = read(output, max_bytes).await?;
        match process.ended().await {
            ServiceEnd::Ran(Exit::Code(0)) => String::from_utf8(bytes).map_err(|_| HelperFailure::NoText),
            ended => Err(not_run(ended)),
        }
    };
    // It must not wait for a reader of its complaints.
    let unheard = async {
        if let Err(error) = tokio::io::copy(&mut errors, &mut tokio::io::sink()).await {
            tracing::debug!(%error, "the error output of a command is not read");
        }
        std::future::pending().await
    };
    let printed = async {
        tokio::select! {
            printed = printed => printed,
            never = unheard => never,
        }
    };
    timeout(limit, printed).await.unwrap_or(Err(HelperFailure::TimedOut(limit)))
}

async fn read(output: impl AsyncRead + Unpin, max_bytes: usize) -> Result<Vec<u8>, HelperFailure> {
    let mut bytes = Vec::new();
    let bound = u64::try_from(max_bytes).unwrap_or(u64::MAX).saturating_add(1);
    output.take(bound).read_to_end(&mut bytes).await.map_err(HelperFailure::Start)?;
    if bytes.len() > max_bytes { Err(HelperFailure::TooLong(max_bytes)) } else { Ok(bytes) }
}

/// The meaning of a program's end.
fn not_run(ended: ServiceEnd) -> HelperFailure {
    match ended {
        ServiceEnd::Ran(Exit::Code(code)) => HelperFailure::Failed(format!("exit status: {code}")),
        ServiceEnd::Ran(Exit::Signal(signal)) => HelperFailure::Failed(format!("signal: {signal}")),
        ServiceEnd::Ran(Exit::TimedOut | Exit::Cancelled) => {
            HelperFailure::Failed("it was stopped".to_owned())
        }
        ServiceEnd::NotFound(why) | ServiceEnd::NotStarted(why) => HelperFailure::NotRun(why),
        ServiceEnd::NoSandbox(why) => {
            HelperFailure::NotRun(format!("the sandbox could not be set up: {why}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use kode_base::paths::AbsPath;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn what_a_command_prints_is_given_and_nothing_else() {
        let printed = output_of("echo key; echo hush >&2; cat", LONG, 100).await.unwrap();
        assert_eq!(printed, "key\n");
    }

    #[tokio::test]
    async fn failures_say_why_and_hold_no_output() {
        for (command, bytes, expected) in [
            ("echo hush; exit 3", 100, "exit status: 3"),
            ("echo hush-hush", 4, "more than 4 bytes"),
            ("printf 'hush\\377'", 100, "invalid UTF-8"),
        ] {
            let failure = output_of(command, LONG, bytes).await.unwrap_err();
            assert!(failure.to_string().contains(expected), "{command}: {failure}");
            assert!(!format!("{failure} {failure:?}").contains("hush"), "{command}: {failure:?}");
        }
    }

    fn program(script: &str) -> ServedSpec {
        ServedSpec {
            program: "sh".to_owned(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            directory: AbsPath::new(kode_base::paths::real_path(std::env::temp_dir()).unwrap()).unwrap(),
            variables: BTreeMap::new(),
            secrets: Vec::new(),
            sandbox: None,
            network: false,
            writable: Vec::new(),
            readable: Vec::new(),
            holds: false,
        }
    }

    #[tokio::test]
    async fn a_program_that_is_held_back_is_bounded_alike() {
        let printed = output_of_program(program("pwd; echo hush >&2; cat"), LONG, 100).await.unwrap();
        assert_eq!(
            printed.trim(),
            kode_base::paths::real_path(std::env::temp_dir()).unwrap().to_str().unwrap()
        );
        for (command, expected) in [
            ("echo hush; exit 3", "exit status: 3"),
            ("yes hush", "more than 100 bytes"),
            ("printf '\\377'", "invalid UTF-8"),
        ] {
            let failure = output_of_program(program(command), LONG, 100).await.unwrap_err();
            assert!(failure.to_string().contains(expected), "{command}: {failure}");
            assert!(!format!("{failure} {failure:?}").contains("hush"), "{command}: {failure:?}");
        }
        let failure =
            output_of_program(program("sleep 1000"), Duration::from_millis(10), 100).await.unwrap_err();
        assert!(matches!(failure, HelperFailure::TimedOut(_)), "{failure}");
    }

    #[tokio::test]
    async fn a_command_of_the_user_runs_where_no_workspace_is_a_part_of_it() {
        let printed = output_of("pwd -P", LONG, 4_096).await.unwrap();
        let home = kode_base::paths::real_path(std::env::home_dir().unwrap()).unwrap();
        assert_eq!(printed.trim(), home.to_str().unwrap());
    }

    #[tokio::test]
    async fn a_command_that_takes_too_long_is_stopped() {
        let failure = output_of("sleep 1000", Duration::from_millis(10), 100).await.unwrap_err();
        assert!(matches!(failure, HelperFailure::TimedOut(_)), "{failure}");
    }

    #[tokio::test]
    async fn when_nobody_waits_any_more_all_it_has_started_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut reader = tokio::net::unix::pipe::OpenOptions::new().open_receiver(&pipe).unwrap();
        let command = format!("sh -c 'exec 3>{}; echo up >&3; sleep 1000' & wait", pipe.display());
        let mut up = [0; 3];
        {
            let run = output_of(&command, LONG, 100);
            tokio::pin!(run);
            loop {
                tokio::select! {
                    ended = &mut run => panic!("{ended:?}"),
                    read = reader.read(&mut up) => if read.unwrap() > 0 { break },
                }
            }
        }
        // The end of the pipe comes when no writer is left.
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).await.unwrap();
    }
}
